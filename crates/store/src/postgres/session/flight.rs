//! Flights: several requests that are sent together, so that they cost one round trip.
//!
//! The server answers them in their order. After a failure it refuses the rest of the transaction, and turns its commit
//! into a rollback.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, SimpleQueryMessage, Statement};

use super::Session;
use super::error::Failure;

/// A statement in PostgreSQL's own syntax, with its parameters.
pub(in crate::postgres) struct Request<'a> {
    pub(in crate::postgres) sql: &'a str,
    pub(in crate::postgres) params: Vec<(&'a (dyn ToSql + Sync), Type)>,
}

/// What a session knows about a statement of a flight.
#[derive(Clone)]
pub(super) enum Usage {
    /// It ran once, without a name. Many sessions run a statement only once, and preparing it would cost a round trip.
    Once,
    Prepared(Statement),
}

/// The answers to a flight.
pub(in crate::postgres) struct Flown {
    /// The last value of the opening statements.
    pub(in crate::postgres) opening: Option<String>,
    pub(in crate::postgres) rows: Vec<Vec<Row>>,
}

enum Answer {
    Rows(Vec<Row>),
    Messages(Vec<SimpleQueryMessage>),
}

/// A request that is sent when it is first polled.
type Sending<'f, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'f>>;

impl Session {
    /// Sends the opening statements, the requests and the closing statement together.
    pub(in crate::postgres) fn fly(
        &self,
        opening: Option<&str>,
        requests: &[Request<'_>],
        closing: Option<&str>,
    ) -> Result<Flown, Failure> {
        let statements = self.prepare_repeated(requests)?;
        let mut flight: Vec<Sending<'_, Answer>> = Vec::with_capacity(requests.len() + 2);
        flight.extend(opening.map(|sql| self.send_simple(sql)));
        for (request, statement) in requests.iter().zip(statements) {
            flight.push(self.send(request, statement));
        }
        flight.extend(closing.map(|sql| self.send_simple(sql)));
        let answers = self.wait(in_order(flight))?;
        let mut flown = Flown { opening: None, rows: Vec::with_capacity(requests.len()) };
        for answer in answers {
            match answer {
                Answer::Rows(rows) => flown.rows.push(rows),
                Answer::Messages(messages) => flown.opening = flown.opening.or(super::last_value(&messages)),
            }
        }
        Ok(flown)
    }

    fn send_simple<'f>(&'f self, sql: &'f str) -> Sending<'f, Answer> {
        Box::pin(async { self.client.simple_query(sql).await.map(Answer::Messages) })
    }

    fn send<'f>(&'f self, request: &'f Request<'_>, statement: Option<Statement>) -> Sending<'f, Answer> {
        Box::pin(async move {
            let rows = match statement {
                Some(statement) => {
                    let values: Vec<&(dyn ToSql + Sync)> =
                        request.params.iter().map(|(value, _)| *value).collect();
                    self.client.query(&statement, &values).await
                }
                None => self.client.query_typed(request.sql, &request.params).await,
            };
            rows.map(Answer::Rows)
        })
    }

    /// Prepares the statements that ran before, all in one round trip. Behind a pooler each runs without a name.
    fn prepare_repeated(&self, requests: &[Request<'_>]) -> Result<Vec<Option<Statement>>, Failure> {
        if self.is_pooled() {
            return Ok(requests.iter().map(|_| None).collect());
        }
        let repeated =
            |request: &&Request<'_>| matches!(self.repeated.borrow().get(request.sql), Some(Usage::Once));
        let missing: Vec<&Request<'_>> = requests.iter().filter(repeated).collect();
        if !missing.is_empty() {
            let preparing = missing.iter().map(|request| self.send_preparation(request)).collect();
            let prepared = self.wait(in_order(preparing))?;
            let mut known = self.repeated.borrow_mut();
            for (request, statement) in missing.iter().zip(prepared) {
                known.insert(request.sql.to_owned(), Usage::Prepared(statement));
            }
        }
        Ok(requests.iter().map(|request| self.statement(request.sql)).collect())
    }

    fn send_preparation<'f>(&'f self, request: &'f Request<'_>) -> Sending<'f, Statement> {
        let types: Vec<Type> = request.params.iter().map(|(_, ty)| ty.clone()).collect();
        Box::pin(async move { self.client.prepare_typed(request.sql, &types).await })
    }

    fn statement(&self, sql: &str) -> Option<Statement> {
        let mut known = self.repeated.borrow_mut();
        match known.get(sql) {
            Some(Usage::Prepared(statement)) => Some(statement.clone()),
            Some(Usage::Once) => None,
            None => {
                known.insert(sql.to_owned(), Usage::Once);
                None
            }
        }
    }
}

/// Waits for all of these. Each is sent when it is first polled, so they are sent in their order.
async fn in_order<T>(mut requests: Vec<Sending<'_, T>>) -> Result<Vec<T>, Error> {
    let mut answers: Vec<Option<Result<T, Error>>> = requests.iter().map(|_| None).collect();
    let poll_all = |context: &mut Context<'_>| {
        let mut is_ready = true;
        for (request, answer) in requests.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none())
        {
            match request.as_mut().poll(context) {
                Poll::Ready(value) => *answer = Some(value),
                Poll::Pending => is_ready = false,
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    };
    poll_fn(poll_all).await;
    answers.into_iter().flatten().collect()
}

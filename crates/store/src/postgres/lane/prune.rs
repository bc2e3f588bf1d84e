//! Deleting expired jobs in the lane. The first flight reads the next finished jobs, the second locks those that have expired
//! and reads what else the verb asks about them. Jobs with dependents, with dependencies or in a batch leave the lane.

use std::collections::HashSet;
use std::rc::Rc;

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::Lane;
use super::answers::{Answer, parts};
use crate::postgres::session::error::Failure;
use crate::postgres::session::flight::Request;
use crate::postgres::session::{ServerTime, Session};
use crate::rows::jobs::row::select_jobs;
use crate::rows::jobs::{dependencies, row, unique_keys};
use crate::rows::tables::settings;
use crate::rows::verbs::{prune, remove};
use crate::{Prunable, PruneStep};
use domain::job::life::StateName;

/// An enqueue that has locked a job as a dependency commits first, and the later questions see its dependents.
const EXPIRED: &str = select_jobs!(
    ", j.tags, j.depends_on",
    "where j.seq = any($1) and j.state = $2 order by j.seq for update of j"
);
const LINKED: &str = "select distinct parent_seq from dependencies where parent_seq = any($1)";
const HOLDING: &str = "select j.seq from jobs j join unique_keys k on k.key = j.unique_key and k.seq = j.seq
     where j.seq = any($1) and (k.held_until is null or k.held_until > $2)";

/// Where the columns of a job end in a row of [`EXPIRED`].
const MORE: usize = 26;

/// What a step of retention asks.
pub(in crate::postgres) struct Questions {
    state: &'static str,
    after: i64,
    limit: i64,
    before: i64,
    finished: String,
}

/// The answers of both flights.
pub(in crate::postgres) struct Found {
    stored: Vec<Row>,
    finished: Vec<Row>,
    expired: Vec<Row>,
    linked: HashSet<i64>,
    holding: HashSet<i64>,
}

impl Questions {
    /// `None` if the step has to run alone in any case.
    pub(in crate::postgres) fn of(step: &PruneStep) -> Option<Self> {
        let state = match step.what {
            Prunable::Jobs(state) => state,
            Prunable::ReportedJobs => StateName::Dead,
            Prunable::Outputs
            | Prunable::Events
            | Prunable::Minutes { .. }
            | Prunable::StaleRows
            | Prunable::Space => return None,
        };
        Some(Self {
            state: state.name(),
            after: i64::try_from(step.after.0).ok()?,
            limit: i64::try_from(step.limit).ok()?,
            before: step.before.as_millis(),
            finished: prune::FINISHED.replace('?', "$"),
        })
    }

    /// Begins the transaction and asks. `now` is the time of a test.
    pub(in crate::postgres) fn ask(
        &self,
        session: &Session,
        now: Option<i64>,
    ) -> Result<(ServerTime, Found), Failure> {
        let params: Vec<(&(dyn ToSql + Sync), Type)> =
            vec![(&self.state, Type::TEXT), (&self.after, Type::INT8), (&self.limit, Type::INT8)];
        let (time, flown) = session.begin_together(&[
            Request { sql: settings::ALL, params: Vec::new() },
            Request { sql: &self.finished, params },
        ])?;
        let mut rows = flown.rows.into_iter();
        let mut next = || rows.next().unwrap_or_default();
        let (stored, finished) = (next(), next());
        let seqs: Vec<i64> =
            finished.iter().filter(|row| self.is_expired(row)).map(|row| row.get(0)).collect();
        let now = now.unwrap_or(time.millis);
        let flown = session.fly(
            None,
            &[
                Request { sql: EXPIRED, params: vec![(&seqs, Type::INT8_ARRAY), (&self.state, Type::TEXT)] },
                Request { sql: LINKED, params: vec![(&seqs, Type::INT8_ARRAY)] },
                Request { sql: HOLDING, params: vec![(&seqs, Type::INT8_ARRAY), (&now, Type::INT8)] },
            ],
            None,
        )?;
        let mut rows = flown.rows.into_iter();
        let mut next = || rows.next().unwrap_or_default();
        let (expired, linked, holding) = (next(), next(), next());
        Ok((time, Found { stored, finished, expired, linked: numbers(&linked), holding: numbers(&holding) }))
    }

    fn is_expired(&self, row: &Row) -> bool {
        row.get::<_, Option<i64>>(2).is_some_and(|finished_at| finished_at <= self.before)
    }
}

fn numbers(rows: &[Row]) -> HashSet<i64> {
    rows.iter().map(|row| row.get(0)).collect()
}

/// Makes the answers known to the lane.
pub(in crate::postgres) fn board(lane: &mut Lane<'_>, found: Found) {
    lane.answers.otherwise(settings::ALL, parts(found.stored));
    lane.answers.otherwise(prune::FINISHED, parts(found.finished));
    for row in found.expired {
        let row = Rc::new(row);
        let seq: i64 = row.get(0);
        let part = |from| vec![Answer::Part(Rc::clone(&row), from)];
        if !found.linked.contains(&seq) {
            lane.answers.of_integer(dependencies::WAITING_AFTER, seq, Vec::new());
            lane.answers.of_integer(dependencies::HAS_DEPENDENTS, seq, Vec::new());
        }
        let held =
            if found.holding.contains(&seq) { vec![Answer::Integers(vec![Some(1)])] } else { Vec::new() };
        lane.answers.of_integer(unique_keys::IS_HELD, seq, held);
        lane.answers.of_integer(remove::TAGS, seq, part(MORE));
        lane.answers.of_integer(dependencies::PARENTS, seq, part(MORE + 1));
        lane.answers.of_integer(row::BY_SEQ, seq, part(0));
    }
}

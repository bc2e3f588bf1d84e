//! The lane of a verb that passes the gate together with others.
//!
//! The verb is the same code as everywhere, but it talks to a [`Lane`] instead of the server. The first flight has read and
//! locked every row that the verb usually needs, and the lane answers its questions from that. The lane collects what the
//! verb writes, and the second flight sends one statement for each kind of write, and the commit.
//!
//! A question that the first flight has no answer to, or a write without a set-based form, means that the verb needs rows
//! which others may be changing. The verb then *leaves* the lane: everything is rolled back, and it runs alone, or in the
//! case of an enqueue row by row. So a case that this module does not foresee is slow, and not wrong.
//!
//! Why several writers at a time do each other no harm:
//! - A turn changes jobs that its worker holds, whose rows the first flight has locked, and jobs whose rows in `ready` it
//!   has locked. A claim skips those that another has locked.
//! - Counters are added to a shard of the worker, or to a random one by an enqueue, in the order of their keys.
//! - A turn adds to rows of `minutes` in the shard of its worker. It has locked the row of the worker.
//! - An enqueue that runs row by row locks the jobs that new ones depend on, and batches. A turn asks for dependents of a
//!   job after it has locked the job.
//! - Retention deletes jobs that are finished, whose rows it has locked. Only verbs that run alone change such a job, and an
//!   enqueue that makes others depend on it locks it too.
//! - Every other row that a verb reads here is only changed by verbs that run alone.

pub(super) mod answers;
pub(super) mod enqueue;
pub(super) mod exchange;
pub(super) mod extend;
mod minutes;
pub(super) mod promote;
pub(super) mod prune;
mod set_form;
mod writes;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use self::answers::{Answers, first_parameter};
use self::set_form::{CTID_FORM, form_of};
use self::writes::Writes;
use super::session::Session;
use super::session::error::Failure;
use crate::rows::jobs::{environments, ready};
use crate::rows::sql::{Params, Row, Sql};
use crate::rows::value::Value;
use crate::rows::{Dialect, params};
use crate::{Result, StoreError};

/// Questions about rows that never change: the lane passes them on to the server.
const CONSTANT: [&str; 1] = [environments::VARIABLES];

pub(super) struct Lane<'s> {
    session: &'s Session,
    pub(super) answers: Answers,
    /// Where the claimed jobs are in `ready`, by their numbers.
    places: HashMap<i64, String>,
    writes: RefCell<Writes>,
    has_left: Cell<bool>,
}

impl<'s> Lane<'s> {
    pub(super) fn new(session: &'s Session) -> Self {
        Self {
            session,
            answers: Answers::default(),
            places: HashMap::new(),
            writes: RefCell::default(),
            has_left: Cell::new(false),
        }
    }

    /// Whether the verb must run alone instead.
    pub(super) fn has_left(&self) -> bool {
        self.has_left.get()
    }

    /// Has the verb run alone.
    pub(super) fn leave(&self) -> StoreError {
        self.has_left.set(true);
        StoreError::Unavailable { source: "the verb has to run alone".into() }
    }

    /// Sends the writes and the commit.
    pub(super) fn commit(&self) -> Result<(), Failure> {
        let writes = self.writes.borrow();
        self.session.fly(None, &writes.requests(), Some("commit")).map(drop)
    }

    pub(super) fn roll_back(&self) {
        self.session.roll_back();
    }

    /// A claimed job leaves `ready`, by the place of its row.
    fn remove_ready(&self, params: Params<'_>) -> Result<usize> {
        let place = match params {
            Params::Positional([.., Value::Integer(seq)]) => self.places.get(seq),
            Params::Positional(_) | Params::Named(_) => None,
        };
        let place = place.ok_or_else(|| self.leave())?;
        self.collect(ready::REMOVE.postgres, &CTID_FORM, params![place])
    }

    fn collect(
        &self,
        sql: &'static str,
        form: &'static set_form::SetForm,
        params: Params<'_>,
    ) -> Result<usize> {
        let values = match params {
            Params::Positional(values) => values,
            Params::Named(_) => return Err(self.leave()),
        };
        if self.writes.borrow_mut().add(sql, form, values) { Ok(1) } else { Err(self.leave()) }
    }
}

impl Sql for Lane<'_> {
    fn query(
        &self,
        sql: &str,
        params: Params<'_>,
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        if CONSTANT.contains(&sql) {
            return self.session.query(sql, params, each);
        }
        let Some(rows) = self.answers.find(sql, first_parameter(params)) else {
            return Err(self.leave());
        };
        for row in rows.iter() {
            if !each(&Row::new(row))? {
                break;
            }
        }
        Ok(())
    }

    /// A write is taken to change one row: if it changes another number, the second flight fails.
    fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize> {
        if sql == ready::REMOVE.postgres {
            return self.remove_ready(params);
        }
        let (sql, form) = form_of(sql).ok_or_else(|| self.leave())?;
        self.collect(sql, form, params)
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn conflict(&self) -> StoreError {
        self.leave()
    }
}

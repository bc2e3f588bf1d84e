//! The verbs that pass the gate together with others: see [`crate::postgres::lane`].

use std::time::{Duration, Instant};

use tokio_postgres::types::Type;

use super::{Opened, PostgresStore, Transaction};
use crate::postgres::floors;
use crate::postgres::lane::exchange::{Boarding, Found};
use crate::postgres::lane::promote::PROMOTE;
use crate::postgres::lane::{Lane, enqueue, exchange, extend, prune};
use crate::postgres::link::Link;
use crate::postgres::session::error::Failure;
use crate::postgres::session::flight::{Flown, Request};
use crate::postgres::session::{Health, Passage, ServerTime, Session};
use crate::rows::jobs::ready::PROMOTED_PER_TRANSACTION;
use crate::rows::transaction::{Verdict, WriteWork};
use crate::rows::tx::{Effects, Tx};
use crate::{Exchange, ExchangeResult, PruneStep, Result, Store};
use domain::job::NewJob;
use domain::values::name::WorkerId;
use sys::failpoint;

/// How often the floors are raised while jobs run.
const FLOORS_EVERY: Duration = Duration::from_secs(1);

impl PostgresStore {
    /// `None` if the turn has to run alone.
    pub(super) fn exchange_together(&self, turn: &Exchange<'_>) -> Result<Option<ExchangeResult>> {
        let Some(questions) = exchange::Questions::of(turn, self.now()?) else {
            return Ok(None);
        };
        let mut opened = self.lock();
        let mut has_promoted = false;
        loop {
            let Opened { link, last_environment, .. } = &mut *opened;
            let (session, (time, flown)) = begin(link, &questions.requests())?;
            let transaction = Transaction(session);
            let mut lane = Lane::new(session);
            // The clock is asked once: the turn must not find that another job has become due meanwhile.
            let (now, lease_now) = self.times(time);
            let found = match questions.board(&mut lane, flown.rows, now)? {
                Boarding::Boarded(found) => found,
                Boarding::Alone => break,
                Boarding::HasDue => {
                    drop((lane, transaction));
                    self.promote(&mut opened)?;
                    has_promoted = true;
                    continue;
                }
            };
            let mut tx = Tx::new(&lane, last_environment, time.asked, now, lease_now);
            tx.shard = found.worker_seq;
            if has_promoted {
                tx.note_ready();
            }
            let Some((exchanged, effects)) = take_turn(tx, &lane, turn, &found, transaction)? else {
                break;
            };
            opened.has_claimed |= !exchanged.claimed.is_empty();
            // A few claims start first: the worker has room, and its next turn comes soon.
            if exchanged.claimed.is_empty() || exchanged.claimed.len() == turn.want {
                self.raise_floors(&mut opened);
            }
            drop(opened);
            self.wake_worker(effects.wakes_workers);
            return Ok(Some(exchanged));
        }
        drop(opened);
        self.wake_worker(has_promoted);
        Ok(None)
    }

    /// Makes due jobs ready.
    fn promote(&self, opened: &mut Opened) -> Result<()> {
        let (session, (time, _)) = begin(&mut opened.link, &[])?;
        let (now, transaction) = (self.times(time).0.as_millis(), Transaction(session));
        let limit = i64::try_from(PROMOTED_PER_TRANSACTION).unwrap_or(i64::MAX);
        let params: Vec<(&(dyn tokio_postgres::types::ToSql + Sync), Type)> =
            vec![(&now, Type::INT8), (&limit, Type::INT8)];
        session.fly(None, &[Request { sql: &floors::lowering(PROMOTE), params }], None)?;
        transaction.commit()
    }

    /// A failure costs nothing but time: the next claims pass more dead rows.
    fn raise_floors(&self, opened: &mut Opened) {
        if !opened.has_claimed || Instant::now() < opened.floors_due {
            return;
        }
        opened.has_claimed = false;
        opened.floors_due = Instant::now() + FLOORS_EVERY;
        if let Ok(session) = opened.link.session() {
            let now = self.clock.as_ref().map(|clock| clock.wall_millis());
            if floors::raise(session, now, FLOORS_EVERY).is_err() {
                session.roll_back();
            }
        }
    }

    /// An enqueue that leaves the lane stays together with others: it asks row by row, and locks what it relies on. So a
    /// role that can only enqueue never needs to be alone in the gate, which it may not.
    pub(super) fn enqueue_together(&self, jobs: &[NewJob], work: &mut WriteWork<'_>) -> Result<Effects> {
        let mut opened = self.lock();
        if let Some(questions) = enqueue::Questions::of(jobs)
            && let Some(effects) = self.enqueue_in_lane(&mut opened, &questions, work)?
        {
            return Ok(effects);
        }
        self.write_rows(&mut opened, Passage::Together, "enqueue", work)
    }

    fn enqueue_in_lane(
        &self,
        opened: &mut Opened,
        questions: &enqueue::Questions<'_>,
        work: &mut WriteWork<'_>,
    ) -> Result<Option<Effects>> {
        let Opened { link, last_environment, .. } = opened;
        // A session that was lost is noticed, and opened again, by the transaction.
        if questions.have_environments() && !link.session()?.can_compare_environments().unwrap_or(false) {
            return Ok(None);
        }
        let test_now = self.clock.as_ref().map(|clock| clock.wall_millis());
        let (session, (time, rows)) = Self::enter(link, |session| questions.ask(session, test_now))?;
        let transaction = Transaction(session);
        let mut lane = Lane::new(session);
        enqueue::board(&mut lane, rows);
        let mut tx = self.tx(&lane, last_environment, time);
        tx.shard = enqueue::shard();
        work_together("enqueue", tx, &lane, work, transaction)
    }

    pub(super) fn extend_together(
        &self,
        worker: &WorkerId,
        work: &mut WriteWork<'_>,
    ) -> Result<Option<Effects>> {
        let mut opened = self.lock();
        let Opened { link, last_environment, .. } = &mut *opened;
        let (session, (time, flown)) = begin(link, &extend::requests(&worker.as_str()))?;
        let transaction = Transaction(session);
        let mut lane = Lane::new(session);
        let Some(shard) = extend::board(&mut lane, worker.as_str(), flown.rows) else {
            return Ok(None);
        };
        let mut tx = self.tx(&lane, last_environment, time);
        tx.shard = shard;
        work_together("extend", tx, &lane, work, transaction)
    }

    pub(super) fn prune_together(
        &self,
        step: &PruneStep,
        work: &mut WriteWork<'_>,
    ) -> Result<Option<Effects>> {
        let Some(questions) = prune::Questions::of(step) else {
            return Ok(None);
        };
        let mut opened = self.lock();
        let Opened { link, last_environment, .. } = &mut *opened;
        let test_now = self.clock.as_ref().map(|clock| clock.wall_millis());
        let (session, (time, found)) = Self::enter(link, |session| questions.ask(session, test_now))?;
        let transaction = Transaction(session);
        let mut lane = Lane::new(session);
        prune::board(&mut lane, found);
        let mut tx = self.tx(&lane, last_environment, time);
        tx.shard = enqueue::shard();
        work_together("prune", tx, &lane, work, transaction)
    }
}

fn take_turn(
    mut tx: Tx<'_>,
    lane: &Lane<'_>,
    turn: &Exchange<'_>,
    found: &Found,
    transaction: Transaction<'_>,
) -> Result<Option<(ExchangeResult, Effects)>> {
    let exchanged = exchange::turn(&mut tx, lane, turn, found);
    let exchanged = exchanged.and_then(|exchanged| Ok((exchanged, tx.finish()?)));
    if lane.has_left() {
        return Ok(None);
    }
    let exchanged = exchanged?;
    let is_committed = commit_together("exchange", lane, transaction)?;
    Ok(is_committed.then_some(exchanged))
}

fn work_together(
    verb: &str,
    mut tx: Tx<'_>,
    lane: &Lane<'_>,
    work: &mut WriteWork<'_>,
    transaction: Transaction<'_>,
) -> Result<Option<Effects>> {
    let verdict = work(&mut tx);
    if lane.has_left() {
        return Ok(None);
    }
    if verdict? == Verdict::RollBack {
        return Ok(Some(Effects::default()));
    }
    let effects = tx.finish();
    if lane.has_left() {
        return Ok(None);
    }
    let effects = effects?;
    let is_committed = commit_together(verb, lane, transaction)?;
    Ok(is_committed.then_some(effects))
}

/// `false` if the server refused a write, so that nothing has changed: alone, the verb finds out why.
fn commit_together(verb: &str, lane: &Lane<'_>, transaction: Transaction<'_>) -> Result<bool> {
    failpoint::hit(format_args!("{verb}.before_commit"));
    std::mem::forget(transaction);
    match lane.commit() {
        Ok(()) => {
            failpoint::hit(format_args!("{verb}.after_commit"));
            Ok(true)
        }
        Err(failure) => match failure.health() {
            Health::Fit | Health::Aborted | Health::Conflict => {
                // The commit became a rollback, unless preparing the statements failed before it.
                lane.roll_back();
                Ok(false)
            }
            Health::Broken => Err(failure.of_commit()),
        },
    }
}

fn begin<'l>(link: &'l mut Link, requests: &[Request<'_>]) -> Result<(&'l Session, (ServerTime, Flown))> {
    let begin =
        |session: &Session| -> Result<(ServerTime, Flown), Failure> { session.begin_together(requests) };
    PostgresStore::enter(link, begin)
}

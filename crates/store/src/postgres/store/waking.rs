//! Waking workers after a commit, and what a worker does before it sleeps: see [`crate::postgres::wake`].

use std::sync::{Arc, PoisonError};

use super::{Opened, PostgresStore};
use crate::postgres::identifier::literal;
use crate::postgres::link::Link;
use crate::postgres::wake::{Hearing, Listener, ReadyJobs, Silence, Way, name_sleeper, notify, store_id};
use crate::{Exchange, ExchangeResult, NewWorker, Notice, Result, Store, Wake};
use domain::values::name::WorkerId;
use sys::bell;
use sys::guards;
use sys::guards::Guard;

impl PostgresStore {
    /// A worker for certain jobs polls: it lives as long as they do, and others are named for them.
    pub(super) fn listen_for(&self, worker: &NewWorker) -> Result<Box<dyn Wake>> {
        let way = if worker.served.takes_new_jobs() { self.way_to_listen()? } else { None };
        let Some(way) = way else {
            return Ok(Box::new(Silence::new()?));
        };
        let listener = Listener::open(way, &worker.id)?;
        *self.hearing.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener.hearing());
        Ok(Box::new(listener))
    }

    /// `None` behind a pooler, through which nothing is heard, unless the address names another way.
    fn way_to_listen(&self) -> Result<Option<Way>> {
        let mut opened = self.lock();
        // The session knows whether there is a pooler.
        opened.link.session()?;
        let address = opened.link.address().clone();
        let schema = address.schema.clone();
        match address.listen {
            Some(direct) => {
                let store_id = opened.link.session()?.batch(&store_id(&schema))?;
                Ok(Some(Way { address: *direct, schema, store_id }))
            }
            None if opened.link.is_pooled() => Ok(None),
            None => Ok(Some(Way { address, schema, store_id: None })),
        }
    }

    /// Fails if the address names a way to listen that leads elsewhere.
    pub(super) fn check_way_to_listen(&self) -> Result<()> {
        match self.way_to_listen()? {
            Some(way) if way.store_id.is_some() => way.check(),
            Some(_) | None => Ok(()),
        }
    }

    /// A pooler may be noticed after the worker began to listen through it.
    pub(super) fn notice_pooler(&self, link: &Link) {
        if link.is_pooled()
            && link.address().listen.is_none()
            && let Some(hearing) = self.hearing()
        {
            hearing.set_deaf();
        }
    }

    pub(super) fn hearing(&self) -> Option<Arc<Hearing>> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Names a worker that sleeps, if a commit has made jobs ready. To be called after every commit.
    pub(super) fn wake_worker(&self, wakes: bool) {
        self.wake_worker_for(wakes, &ReadyJobs::Anywhere);
    }

    /// The same for a commit that has made jobs ready in known queues.
    pub(super) fn wake_worker_for(&self, wakes: bool, ready: &ReadyJobs<'_>) {
        let mut opened = self.lock();
        let owes_another = opened.sender.owes();
        if opened.sender.is_due(wakes) {
            self.name_sleeper(&opened, if owes_another { &ReadyJobs::Anywhere } else { ready });
        }
    }

    /// A process that ends sends what it has left out.
    pub(super) fn send_owed(&self) {
        let mut opened = self.lock();
        if opened.sender.take_owed() {
            self.name_sleeper(&opened, &ReadyJobs::Anywhere);
        }
    }

    fn name_sleeper(&self, opened: &Opened, ready: &ReadyJobs<'_>) {
        let hearing = self.hearing();
        let except = hearing.as_ref().map(|hearing| &hearing.worker);
        opened.link.tell(&name_sleeper(&opened.link.address().schema, ready, bell::MAX_HOPS, except));
    }

    pub(super) fn send_notice(&self, notice: Notice<'_>) -> Result<()> {
        let mut opened = self.lock();
        let sql = notify(&opened.link.address().schema, notice);
        opened.link.session()?.transact(&sql)?;
        Ok(())
    }

    /// Makes up for a mark that the last turn has put off. This turn is the look after it.
    pub(super) fn make_up_mark(&self, exchange: &Exchange<'_>) {
        let hearing = self.hearing().filter(|hearing| hearing.worker == *exchange.worker);
        if let Some(hearing) = hearing.filter(|hearing| hearing.lives() && exchange.want > 0)
            && hearing.take_owed_mark()
        {
            self.mark(&hearing);
        }
    }

    /// Marks a worker as listening. Returns whether that succeeded.
    fn mark(&self, hearing: &Hearing) -> bool {
        let mark = mark(&hearing.worker, true);
        let marked = self.lock().link.session().and_then(|session| Ok(session.transact(&mark)?));
        if marked.is_ok() {
            hearing.note_mark(true);
        }
        marked.is_ok()
    }

    /// A worker that could start more marks itself as listening and looks once more, so that no job that became ready in
    /// between waits for its next poll. A worker that has no room takes its mark away.
    pub(super) fn prepare_sleep(
        &self,
        exchange: &Exchange<'_>,
        first: ExchangeResult,
    ) -> Result<ExchangeResult> {
        let Some(hearing) = self.hearing().filter(|hearing| hearing.worker == *exchange.worker) else {
            return Ok(first);
        };
        if exchange.want == 0 || first.retired {
            return Ok(first);
        }
        let has_room = first.claimed.len() < exchange.want;
        let Some(listens) = hearing.note_room(has_room) else {
            return Ok(first);
        };
        if listens && !first.claimed.is_empty() {
            hearing.put_off_mark();
            return Ok(ExchangeResult { next_due: Some(self.now()?), ..first });
        }
        if !listens {
            self.lock().link.tell(&mark(exchange.worker, false));
            hearing.note_mark(false);
            // Another worker has to be awake when the next job is due.
            self.wake_worker(first.next_due.is_some());
            return Ok(first);
        }
        // Settlements of the first turn must not get lost: a failure is left to the next turn.
        if !self.mark(&hearing) || guards::is_off(Guard::SecondLook) {
            return Ok(first);
        }
        match self.one_turn(&second_look(exchange)) {
            Ok(second) => Ok(joined(first, second)),
            Err(error) if first.settled.is_empty() && first.stale.is_empty() => Err(error),
            // If it claimed jobs, the next heartbeat releases them.
            Err(_) => Ok(first),
        }
    }
}

/// The turn once more, after one that has claimed nothing.
fn second_look<'a>(exchange: &Exchange<'a>) -> Exchange<'a> {
    Exchange { settlements: &[], ..*exchange }
}

fn joined(first: ExchangeResult, second: ExchangeResult) -> ExchangeResult {
    ExchangeResult { settled: first.settled, stale: first.stale, ..second }
}

fn mark(worker: &WorkerId, listens: bool) -> String {
    let listens = u8::from(listens);
    format!(
        "set local synchronous_commit = off;
         update workers set listens = {listens} where id = {} and listens <> {listens}",
        literal(worker.as_str()),
    )
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.send_owed();
    }
}

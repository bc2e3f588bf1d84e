//! Waking workers after a commit, and what a worker does before it sleeps: see [`crate::postgres::wake`].

use std::sync::{Arc, PoisonError};

use super::{Opened, PostgresStore};
use crate::postgres::identifier::literal;
use crate::postgres::link::Link;
use crate::postgres::wake::{Hearing, Listener, Silence, Way, name_sleeper, notify, store_id};
use crate::{Exchange, ExchangeResult, NewWorker, Notice, Result, Wake};
use sys::bell;

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
        let mut opened = self.lock();
        if opened.sender.is_due(wakes) {
            self.name_sleeper(&opened);
        }
    }

    /// A process that ends sends what it has left out.
    pub(super) fn send_owed(&self) {
        let mut opened = self.lock();
        if opened.sender.take_owed() {
            self.name_sleeper(&opened);
        }
    }

    fn name_sleeper(&self, opened: &Opened) {
        let hearing = self.hearing();
        let except = hearing.as_ref().map(|hearing| &hearing.worker);
        opened.link.tell(&name_sleeper(&opened.link.address().schema, bell::MAX_HOPS, except));
    }

    pub(super) fn send_notice(&self, notice: Notice<'_>) -> Result<()> {
        let mut opened = self.lock();
        let sql = notify(&opened.link.address().schema, notice);
        opened.link.session()?.transact(&sql)?;
        Ok(())
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
        let mark = mark(exchange.worker.as_str(), listens);
        if !listens {
            self.lock().link.tell(&mark);
            hearing.note_mark(false);
            // Another worker has to be awake when the next job is due.
            self.wake_worker(first.next_due.is_some());
            return Ok(first);
        }
        // Claims that the first turn brought must not get lost: a failure is left to the next turn.
        let marked = self.lock().link.session().and_then(|session| Ok(session.transact(&mark)?));
        if marked.is_err() {
            return Ok(first);
        }
        hearing.note_mark(true);
        match self.one_turn(&rest_of(exchange, &first)) {
            Ok(second) => Ok(joined(first, second)),
            Err(error) if first.claimed.is_empty() && first.settled.is_empty() && first.stale.is_empty() => {
                Err(error)
            }
            // If it claimed jobs, the next heartbeat releases them.
            Err(_) => Ok(first),
        }
    }
}

/// A turn that claims what the first one has left room for.
fn rest_of<'a>(exchange: &Exchange<'a>, first: &ExchangeResult) -> Exchange<'a> {
    let limited = first.claimed.iter().filter(|claim| claim.is_limited).count();
    Exchange {
        worker: exchange.worker,
        settlements: &[],
        want: exchange.want - first.claimed.len(),
        want_limited: exchange.want_limited.saturating_sub(limited),
    }
}

fn joined(first: ExchangeResult, second: ExchangeResult) -> ExchangeResult {
    let mut claimed = first.claimed;
    claimed.extend(second.claimed);
    ExchangeResult { claimed, settled: first.settled, stale: first.stale, ..second }
}

fn mark(worker: &str, listens: bool) -> String {
    let listens = u8::from(listens);
    format!(
        "set local synchronous_commit = off;
         update workers set listens = {listens} where id = {} and listens <> {listens}",
        literal(worker),
    )
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.send_owed();
    }
}

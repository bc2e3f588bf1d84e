//! The hub: reads each topic once for all its listeners, and sends what differs.
//!
//! It sends state, not a log: a client that reconnects gets the whole state again, and nothing has to be replayed. While
//! no client listens, the hub sleeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use serde_json::{Value, json};

use super::frame;
use super::topic::{State, Topic};
use crate::doors::limits::Place;
use crate::pool::{Access, PooledStore, SeenVersion};
use crate::problem::Problem;
use crate::request::pieces::PieceSender;
use crate::server::{Server, wall_now};

/// How often the store is looked at: twice in the interval of a topic.
const LOOK_INTERVAL: Duration = Duration::from_millis(225);
/// A topic is read again after this time, even if the store has not changed.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
/// A client that gets nothing else gets a comment this often.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
/// A page that gets nothing else learns this often that its numbers are current.
const BEAT_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Hub {
    state: Mutex<HubState>,
}

#[derive(Debug, Default)]
struct HubState {
    listeners: Vec<Listener>,
    is_running: bool,
}

#[derive(Debug)]
struct Listener {
    topics: Vec<Topic>,
    sender: PieceSender,
    /// The version of each topic that it has got.
    seen: BTreeMap<Topic, u64>,
    sent_at: Instant,
    is_stale: bool,
    _place: Place,
}

/// A topic that is being watched.
struct Watched {
    version: u64,
    state: State,
    /// The message from the version before to this one, and the message for new listeners.
    delta: Option<Bytes>,
    whole: Bytes,
    read_at: Instant,
    store_version: SeenVersion,
}

/// What the hub knows between two looks.
#[derive(Default)]
struct Memory {
    watched: BTreeMap<Topic, Watched>,
    /// Since when the store cannot be read, and why.
    stale: Option<Bytes>,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a listener, and wakes the hub if it slept.
    pub(crate) fn join(
        self: &Arc<Self>,
        server: &Arc<Server>,
        topics: Vec<Topic>,
        sender: PieceSender,
        place: Place,
    ) {
        let (seen, sent_at) = (BTreeMap::new(), Instant::now());
        let mut state = self.lock();
        state.listeners.push(Listener { topics, sender, seen, sent_at, is_stale: false, _place: place });
        if !state.is_running {
            state.is_running = true;
            drop(state);
            tokio::spawn(watch(Arc::clone(server)));
        }
    }

    /// The distinct topics of all listeners that are still there; `None` ends the hub.
    fn topics(&self) -> Option<BTreeSet<Topic>> {
        let mut state = self.lock();
        state.listeners.retain(|listener| !listener.sender.is_closed());
        if state.listeners.is_empty() {
            state.is_running = false;
            return None;
        }
        Some(state.listeners.iter().flat_map(|listener| &listener.topics).cloned().collect())
    }

    /// Sends every listener what it lacks. One that does not keep up is dropped; it reconnects and gets the whole state.
    fn send(&self, memory: &Memory) {
        self.lock().listeners.retain_mut(|listener| listener.catch_up(memory));
    }

    fn end(&self) {
        for listener in self.lock().listeners.drain(..) {
            let _ = listener.sender.try_send(frame::bye("the server is being stopped"));
        }
    }
}

impl Listener {
    fn has_pages(&self) -> bool {
        self.topics.iter().any(|topic| matches!(topic, Topic::Page(_)))
    }

    /// Whether it is still there.
    fn catch_up(&mut self, memory: &Memory) -> bool {
        let mut messages: Vec<Bytes> = Vec::new();
        messages.extend(memory.stale.clone().filter(|_| !self.is_stale));
        if self.is_stale && memory.stale.is_none() {
            // The whole state again says that it is current.
            self.seen.clear();
        }
        self.is_stale = memory.stale.is_some();
        for topic in &self.topics {
            let Some(watched) = memory.watched.get(topic) else {
                continue;
            };
            let seen = self.seen.insert(topic.clone(), watched.version);
            match (seen, &watched.delta) {
                (Some(seen), _) if seen == watched.version => {}
                (Some(seen), Some(delta)) if seen + 1 == watched.version => messages.push(delta.clone()),
                (Some(_) | None, _) => messages.push(watched.whole.clone()),
            }
        }
        let idle = self.sent_at.elapsed();
        if messages.is_empty() && self.has_pages() && !self.is_stale && idle >= BEAT_INTERVAL {
            messages.push(frame::event("beat", &Value::Null));
        } else if messages.is_empty() && idle >= COMMENT_INTERVAL {
            messages.push(frame::comment());
        }
        if messages.is_empty() {
            return true;
        }
        self.sent_at = Instant::now();
        // In one part, so that a client that is behind lacks whole messages only.
        self.sender.try_send(messages.concat().into()).is_ok()
    }
}

/// Looks at the store for as long as there are listeners.
async fn watch(server: Arc<Server>) {
    let mut memory = Memory::default();
    let mut stopping = server.stopping();
    while let Some(topics) = server.hub.topics() {
        let looking = Arc::clone(&server);
        let looked = tokio::task::spawn_blocking(move || {
            memory.look(&looking, &topics);
            memory
        });
        memory = looked.await.unwrap_or_default();
        server.hub.send(&memory);
        tokio::select! {
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
            () = stopping.wait() => server.hub.end(),
        }
    }
}

impl Memory {
    fn look(&mut self, server: &Server, topics: &BTreeSet<Topic>) {
        self.watched.retain(|topic, _| topics.contains(topic));
        match self.read(server, topics) {
            Ok(()) => self.stale = None,
            Err(problem) if self.stale.is_none() => {
                let data = json!({ "since": wall_now(), "why": problem.detail() });
                self.stale = Some(frame::event("stale", &data));
            }
            Err(_) => {}
        }
    }

    fn read(&mut self, server: &Server, topics: &BTreeSet<Topic>) -> Result<(), Problem> {
        let store = server.pool.take(Access::Read, Instant::now())?;
        let read = self.read_due(server, &store, topics);
        if let Err(problem) = &read {
            store.leave_after(problem);
        }
        read
    }

    /// Reads the topics that may have changed.
    fn read_due(
        &mut self,
        server: &Server,
        store: &PooledStore<'_>,
        topics: &BTreeSet<Topic>,
    ) -> Result<(), Problem> {
        let version = store.version()?;
        for topic in topics {
            let may_differ = self.watched.get(topic).is_none_or(|watched| {
                let age = watched.read_at.elapsed();
                let has_changed = !topic.is_in_store() || watched.store_version != version;
                // Time alone may change what there is to say: a worker that is silent, a job that waits too long.
                age >= topic.interval() && (has_changed || age >= RENEWAL_INTERVAL)
            });
            if may_differ {
                let state = topic.read(server, store.as_ref())?;
                self.update(topic, state, version.clone());
            }
        }
        Ok(())
    }

    fn update(&mut self, topic: &Topic, state: State, store_version: SeenVersion) {
        let read_at = Instant::now();
        match self.watched.get_mut(topic) {
            Some(watched) if watched.state == state => {
                (watched.read_at, watched.store_version) = (read_at, store_version);
            }
            before => {
                let message = |(name, data): (&str, Value)| frame::event(name, &data);
                let delta = before.as_ref().map(|watched| message(state.since(&watched.state)));
                let version = before.map_or(1, |watched| watched.version + 1);
                let whole = message(state.whole());
                let watched = Watched { version, state, delta, whole, read_at, store_version };
                self.watched.insert(topic.clone(), watched);
            }
        }
    }
}

//! Actions: changes of many jobs that run in the background, with their progress. They end with the server; what they have
//! changed by then stays changed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::doors::limits::{PerCaller, Place};
use crate::doors::secret;
use crate::problem::Problem;
use crate::server::Server;
use domain::values::timestamp::Timestamp;
use ops::jobs::bulk::{BulkChange, bulk, change_selected};
use ops::jobs::change::{Verb, remove_orphaned_logs};
use store::{JobFilter, JobRef};

/// Actions of one caller that run at once.
const MAX_RUNNING: usize = 1;
/// How many actions are remembered after their end.
const MAX_KEPT: usize = 100;

domain::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ActionState {
        Running = "running",
        Finished = "finished",
        Stopped = "stopped",
        Failed = "failed",
    }
}

#[derive(Debug)]
pub(crate) struct Actions {
    known: Mutex<VecDeque<Arc<Action>>>,
    running: PerCaller,
}

impl Default for Actions {
    fn default() -> Self {
        Self { known: Mutex::default(), running: PerCaller::new(MAX_RUNNING) }
    }
}

#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) id: String,
    verb: &'static str,
    by: String,
    began_at: Timestamp,
    /// What `events` say besides the numbers: `: priority, queue`.
    detail: String,
    total: u64,
    done: AtomicU64,
    skipped: AtomicU64,
    end: Mutex<End>,
    is_to_stop: AtomicBool,
}

#[derive(Clone, Debug)]
struct End {
    state: ActionState,
    error: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct ActionJson {
    id: String,
    verb: &'static str,
    by: String,
    state: ActionState,
    began_at: Timestamp,
    count: u64,
    done: u64,
    skipped: u64,
    left: u64,
    error: Option<String>,
}

impl Action {
    pub(crate) fn json(&self) -> ActionJson {
        let End { state, error } = self.lock().clone();
        let (done, skipped) = (self.done.load(Ordering::Acquire), self.skipped.load(Ordering::Acquire));
        ActionJson {
            id: self.id.clone(),
            verb: self.verb,
            by: self.by.clone(),
            state,
            began_at: self.began_at,
            count: self.total,
            done,
            skipped,
            left: self.total.saturating_sub(done + skipped),
            error,
        }
    }

    fn lock(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets it end before its next window.
    pub(crate) fn stop(&self) {
        self.is_to_stop.store(true, Ordering::Release);
    }

    fn run(
        &self,
        server: &Server,
        change: BulkChange,
        targets: ActionTargets,
    ) -> Result<ActionState, Problem> {
        let store = server.pool.open()?;
        let stopping = server.stopping();
        let progress = |jobs| {
            self.done.fetch_add(jobs, Ordering::AcqRel);
        };
        let is_stopped = || self.is_to_stop.load(Ordering::Acquire) || stopping.is_over();
        let removes = change == BulkChange::Verb(Verb::Remove);
        let tally = match targets {
            ActionTargets::Filter { filter, .. } => {
                bulk(store.as_ref(), change, &filter, &self.by, progress, is_stopped)?
            }
            ActionTargets::Jobs(jobs) => change_selected(store.as_ref(), change, jobs, &self.by, progress)?,
        };
        self.done.store(tally.done, Ordering::Release);
        self.skipped.store(tally.skipped, Ordering::Release);
        if removes {
            remove_orphaned_logs(store.as_ref(), &server.options.location.home)?;
        }
        let detail = format!("{} of {} jobs{}", tally.done, self.total, self.detail);
        store.note(&format!("bulk_{}", self.verb), &self.by, &detail)?;
        Ok(if tally.was_stopped { ActionState::Stopped } else { ActionState::Finished })
    }
}

/// The jobs of an action.
#[derive(Debug)]
pub(crate) enum ActionTargets {
    /// Those that match while the action runs; `count` of them at its start.
    Filter { filter: Box<JobFilter>, count: u64 },
    /// From new to old.
    Jobs(Vec<JobRef>),
}

impl ActionTargets {
    fn count(&self) -> u64 {
        match self {
            Self::Filter { count, .. } => *count,
            Self::Jobs(jobs) => jobs.len() as u64,
        }
    }
}

/// A change that a caller asks for.
#[derive(Debug)]
pub(crate) struct NewAction<'a> {
    pub(crate) name: &'static str,
    pub(crate) change: BulkChange,
    pub(crate) targets: ActionTargets,
    pub(crate) by: &'a str,
    /// Whose limits count.
    pub(crate) caller: &'a str,
    pub(crate) now: Timestamp,
}

/// The fields that an edit changes.
fn detail(change: &BulkChange) -> String {
    match change {
        BulkChange::Verb(_) => String::new(),
        BulkChange::Edit(edit) => format!(": {}", edit.fields().join(", ")),
    }
}

impl Actions {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Action>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Action>> {
        self.lock().iter().find(|action| action.id == id).map(Arc::clone)
    }

    /// All that are remembered, the newest first.
    pub(crate) fn list(&self) -> Vec<Arc<Action>> {
        self.lock().iter().rev().map(Arc::clone).collect()
    }

    /// Starts an action on a thread of its own.
    pub(crate) fn start(&self, server: &Arc<Server>, new: NewAction<'_>) -> Result<Arc<Action>, Problem> {
        let place = self.running.enter(new.caller).ok_or_else(|| {
            Problem::too_many("your other action has to end first", 1)
                .with_hint("`DELETE /api/v1/actions/ID` stops it")
        })?;
        let action = Arc::new(Action {
            id: format!("a-{:016x}", secret::random_number()),
            verb: new.name,
            by: new.by.to_owned(),
            began_at: new.now,
            detail: detail(&new.change),
            total: new.targets.count(),
            done: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            end: Mutex::new(End { state: ActionState::Running, error: None }),
            is_to_stop: AtomicBool::new(false),
        });
        self.remember(&action);
        let (server, running) = (Arc::clone(server), Arc::clone(&action));
        let (change, targets) = (new.change, new.targets);
        tokio::task::spawn_blocking(move || finish(&running, &server, change, targets, place));
        Ok(action)
    }

    fn remember(&self, action: &Arc<Action>) {
        let mut known = self.lock();
        let is_over = |action: &Arc<Action>| action.lock().state != ActionState::Running;
        if known.len() >= MAX_KEPT
            && let Some(at) = known.iter().position(is_over)
        {
            known.remove(at);
        }
        known.push_back(Arc::clone(action));
    }
}

fn finish(action: &Action, server: &Server, change: BulkChange, targets: ActionTargets, place: Place) {
    let end = match action.run(server, change, targets) {
        Ok(state) => End { state, error: None },
        Err(problem) => End { state: ActionState::Failed, error: Some(problem.line()) },
    };
    *action.lock() = end;
    drop(place);
}

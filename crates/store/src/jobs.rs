//! Jobs: looking at them and changing them.

mod deaths;
mod output_parts;
mod search;
pub mod shipment;

pub use deaths::{Deaths, hour_of};
pub use output_parts::{MAX_PART_BYTES, OutputPart, PartsSize, ShippedAttempt};
pub use search::{CauseSummary, FailedAttempt, JobCount, Search, SearchResult};

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::rows::jobs::dependencies;
use crate::rows::jobs::row;
use crate::rows::keys::JobSeq;
use crate::rows::tx::Effects;
use crate::rows::verbs::{change, edit, enqueue, report};
use crate::rows::views::{explain_facts, find, graph, idle, list};
use crate::{EnqueueError, EnqueueRefusal, HotVerb, JobFilter, Page, RefusedJob, Result, Store};
use domain::explain::Facts;
use domain::job::edit::Edit;
use domain::job::environment::Environment;
use domain::job::graph::Graph;
use domain::job::life::StateName;
use domain::job::{Job, JobRecord, NewJob};
use domain::values::name::{JobId, QueueName};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

impl dyn Store + '_ {
    /// Stores all of these jobs, or none. The answers are in the order of the jobs.
    pub fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueueResult>, EnqueueError> {
        enqueue::refuse_cycle(jobs)?;
        let answer = self.transact_hot(HotVerb::Enqueue(jobs), |tx| enqueue::enqueue(tx, jobs));
        if only_found_existing(&answer) {
            // There was nothing to commit, but the caller may rely on these jobs being durable.
            self.secure_reads()?;
        }
        answer
    }

    /// The ids among these that are taken.
    pub fn existing_ids(&self, ids: &[JobId]) -> Result<Vec<JobId>> {
        let existing = self.view(|tx| find::existing_ids(tx, ids))?;
        if !existing.is_empty() {
            self.secure_reads()?;
        }
        Ok(existing)
    }

    pub fn find(&self, id: &JobId) -> Result<Option<Job>> {
        self.view(|tx| find::find(tx, id))
    }

    /// The least about a job: a role that can only enqueue may read it.
    pub fn summary(&self, id: &JobId) -> Result<Option<JobSummary>> {
        self.view(|tx| find::summary(tx, id))
    }

    /// A job with its events and its history.
    pub fn record(&self, id: &JobId) -> Result<Option<JobRecord>> {
        let mut record = self.view(|tx| find::record(tx, id))?;
        for attempt in record.iter_mut().flat_map(|record| &mut record.history) {
            attempt.home.folder = self.reach(&attempt.home.folder);
        }
        Ok(record)
    }

    /// What the commands of a job get from its caller. Only for enqueuing it again: it is never shown.
    pub fn inputs(&self, id: &JobId) -> Result<Option<JobInputs>> {
        self.view(|tx| find::inputs(tx, id))
    }

    /// The output stored with an attempt, if any.
    pub fn output(&self, id: &JobId, attempt: u32) -> Result<Option<Vec<u8>>> {
        self.view(|tx| find::output(tx, id, attempt))
    }

    pub fn list(&self, filter: &JobFilter, page: &Page) -> Result<Vec<Job>> {
        self.view(|tx| list::list(tx, filter, page))
    }

    /// The jobs that match a filter, from new to old; with `below`, only those with a lower number.
    pub fn select(&self, filter: &JobFilter, below: Option<u64>, limit: usize) -> Result<Vec<JobRef>> {
        self.view(|tx| list::select(tx, filter, below, limit))
    }

    /// The ids that begin with this prefix, in order.
    pub fn ids_with_prefix(&self, prefix: &JobId, limit: usize) -> Result<Vec<JobId>> {
        self.view(|tx| find::ids_with_prefix(tx, prefix, limit))
    }

    /// The ids that end with this text, newest first. Only the newest `among` jobs are searched.
    pub fn ids_with_suffix(&self, suffix: &JobId, among: u64, limit: usize) -> Result<Vec<JobId>> {
        self.view(|tx| find::ids_with_suffix(tx, suffix, among, limit))
    }

    /// The id of the job with this number.
    pub fn id_of_number(&self, number: u64) -> Result<Option<JobId>> {
        self.view(|tx| row::id(tx, JobSeq::of_number(number)))
    }

    /// The job that was enqueued last.
    pub fn latest(&self) -> Result<Option<JobId>> {
        self.view(find::latest)
    }

    /// The job that was enqueued last among those that run, except for one.
    pub fn latest_running(&self, except: Option<&JobId>) -> Result<Option<JobId>> {
        self.view(|tx| find::latest_running(tx, except))
    }

    /// The dead jobs that match a filter, whatever its phases are, with what they died of; otherwise as `select`.
    pub fn select_dead(&self, filter: &JobFilter, below: Option<u64>, limit: usize) -> Result<Vec<DeadJob>> {
        self.view(|tx| list::select_dead(tx, filter, below, limit))
    }

    /// The dependencies and dependents of a job, up to `limit` jobs. `None` if the job does not exist.
    pub fn graph(&self, id: &JobId, limit: usize) -> Result<Option<Graph>> {
        self.view(|tx| graph::graph(tx, id, limit))
    }

    /// The facts that explain why a job does not run, in one snapshot. The caller fills in those about the workers,
    /// unkillable processes, and other jobs.
    pub fn explain_facts(&self, id: &JobId) -> Result<Option<Facts>> {
        self.view(|tx| explain_facts::explain_facts(tx, id))
    }

    /// Changes the first of these jobs, as many as fit into one short transaction. `Cancel` ends jobs, or marks running
    /// ones for their workers to end; `Pause` and `Resume` mark running ones, too; `Retry` makes them pending again with
    /// fresh retries; `Remove` deletes them with their history. A selected job is retried as by `RetryInOrder`.
    pub fn change(&self, verb: JobVerb, targets: Targets<'_>, by: &str) -> Result<PartialChange> {
        loop {
            if verb.is_retry() {
                self.unblock_pending()?;
            }
            let (changes, mut effects) =
                self.transact_with_effects(verb.name(), |tx| change::change_portion(tx, verb, targets, by))?;
            if !changes.is_empty() || targets.is_empty() {
                self.unblock_remaining(&mut effects);
                return Ok(PartialChange {
                    changes,
                    leaves_dependents: effects.has_pending_unblocks,
                    dependents: self.attribute(effects),
                });
            }
        }
    }

    /// Edits a job that is not running; with `AfterEdit::Retry`, also makes it pending again with fresh retries. Does
    /// both or nothing.
    pub fn edit(&self, id: &JobId, edit: &Edit, then: AfterEdit, by: &str) -> Result<Change> {
        loop {
            let edited = match then {
                AfterEdit::Keep => self.transact("edit", |tx| edit::edit(tx, id, edit, by).map(Some)),
                AfterEdit::Retry => {
                    self.unblock_pending()?;
                    self.transact("edit_and_retry", |tx| edit::edit_and_retry(tx, id, edit, by))
                }
            };
            if let Some(change) = edited? {
                return Ok(change);
            }
        }
    }

    /// Makes the same edit to the first of these jobs, as many as fit into one short transaction. A job that is no longer in
    /// the state in which it was selected is left alone.
    pub fn edit_selected(&self, jobs: &[JobRef], edit: &Edit, by: &str) -> Result<Vec<Change>> {
        self.transact("edit_selected", |tx| edit::edit_portion(tx, jobs, edit, by))
    }

    /// Notes that `run` has reported to its caller that this attempt left its job dead.
    pub fn mark_reported(&self, id: &JobId, attempt: u32) -> Result<bool> {
        self.transact("mark_reported", |tx| report::mark_reported(tx, id, attempt))
    }

    /// Unblocks the remaining dependents now if no worker is there to do it. If this fails, the pending rows remain for
    /// the next worker.
    pub(crate) fn unblock_remaining(&self, effects: &mut Effects) {
        while !self.has_worker().unwrap_or(true) {
            if !self.view(idle::any_pending_unblock).unwrap_or(false) {
                effects.has_pending_unblocks = false;
                return;
            }
            match self.transact_with_effects("unblock", dependencies::resume_pending_unblocks) {
                Ok(((), more)) => {
                    effects.dependents.extend(more.dependents);
                    effects.has_pending_unblocks |= more.has_pending_unblocks;
                }
                Err(_) => return,
            }
        }
    }

    /// Completes all pending unblocks, in portions. This comes before retries: a dependent of the last run must not
    /// wait for the next, and there may be too many for one transaction.
    fn unblock_pending(&self) -> Result<()> {
        while self.view(idle::any_pending_unblock)? {
            self.transact("unblock", dependencies::resume_pending_unblocks)?;
        }
        Ok(())
    }

    /// Attributes each cancelled dependent to the job that the caller cancelled. They are in the order of cancellation.
    /// The change is committed by now, so an error only leaves some out.
    fn attribute(&self, effects: Effects) -> Vec<Dependent> {
        let mut roots = HashMap::new();
        let mut attributed = Vec::with_capacity(effects.dependents.len());
        for dependent in effects.dependents {
            let of = match roots.get(&dependent.parent_seq) {
                Some(root) => JobId::clone(root),
                None => match self.view(|tx| row::id(tx, dependent.parent_seq)) {
                    Ok(Some(root)) => root,
                    // The root was removed since.
                    Ok(None) | Err(_) => continue,
                },
            };
            roots.entry(dependent.parent_seq).or_insert_with(|| of.clone());
            roots.insert(dependent.seq, of.clone());
            attributed.push(Dependent { id: dependent.id, of });
        }
        attributed
    }
}

/// Whether this answer reports existing jobs and nothing was stored.
fn only_found_existing(answer: &Result<Vec<EnqueueResult>, EnqueueError>) -> bool {
    match answer {
        Ok(answers) => answers.iter().all(|answer| matches!(answer, EnqueueResult::Existing(_))),
        Err(EnqueueError::Refused(RefusedJob { reason, .. })) => matches!(reason, EnqueueRefusal::IdTaken(_)),
        Err(EnqueueError::Store(_)) => false,
    }
}

/// What happens to a job after it was edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterEdit {
    Keep,
    Retry,
}

/// The result of `enqueue` for one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueResult {
    Created(JobId),
    /// An existing job has its id or its unique key.
    Existing(JobId),
}

impl EnqueueResult {
    pub fn id(&self) -> &JobId {
        match self {
            Self::Created(id) | Self::Existing(id) => id,
        }
    }

    pub fn is_created(&self) -> bool {
        match self {
            Self::Created(_) => true,
            Self::Existing(_) => false,
        }
    }
}

/// The environment and the standard input of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInputs {
    pub environment: Option<Arc<Environment>>,
    pub stdin: Option<Vec<u8>>,
}

/// The number, queue and state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSummary {
    pub number: u64,
    pub queue: QueueName,
    pub state: StateName,
}

/// A job as a selection found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRef {
    pub id: JobId,
    /// See [`domain::job::Job::number`].
    pub number: u64,
    pub state: StateName,
}

/// A change that a caller can request for jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobVerb {
    /// A running command first gets this signal, or SIGTERM.
    Cancel {
        signal: Option<Signal>,
    },
    /// Stops a running command for a while.
    Pause,
    Resume,
    Retry,
    /// As `Retry`, but a job whose dependency is dead or cancelled is refused, unless it runs after a failure, too.
    RetryInOrder,
    Remove,
}

impl JobVerb {
    pub const CANCEL: Self = Self::Cancel { signal: None };

    pub fn name(self) -> &'static str {
        match self {
            Self::Cancel { .. } => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::RetryInOrder => "retry_in_order",
            Self::Remove => "remove",
        }
    }

    /// Whether it marks a running job, and its worker does the rest.
    pub fn is_order(self) -> bool {
        match self {
            Self::Cancel { .. } | Self::Pause | Self::Resume => true,
            Self::Retry | Self::RetryInOrder | Self::Remove => false,
        }
    }

    pub fn is_cancel(self) -> bool {
        matches!(self, Self::Cancel { .. })
    }

    pub fn is_retry(self) -> bool {
        matches!(self, Self::Retry | Self::RetryInOrder)
    }

    /// Whether jobs in this state can be changed so.
    pub fn applies_to(self, state: StateName) -> bool {
        match self {
            Self::Cancel { .. } => !state.is_finished(),
            Self::Pause | Self::Resume => state == StateName::Processing,
            Self::Retry | Self::RetryInOrder => state.is_finished() || state == StateName::Failed,
            Self::Remove => state != StateName::Processing,
        }
    }
}

/// The jobs that a change is requested for.
#[derive(Clone, Copy, Debug)]
pub enum Targets<'a> {
    /// In any state.
    Ids(&'a [JobId]),
    /// A job that is no longer in the state in which it was selected is left alone.
    Selected(&'a [JobRef]),
}

impl<'a> Targets<'a> {
    pub fn len(self) -> usize {
        match self {
            Self::Ids(ids) => ids.len(),
            Self::Selected(jobs) => jobs.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn id(self, at: usize) -> &'a JobId {
        match self {
            Self::Ids(ids) => &ids[at],
            Self::Selected(jobs) => &jobs[at].id,
        }
    }

    /// These of them.
    #[must_use]
    pub fn range(self, range: Range<usize>) -> Self {
        match self {
            Self::Ids(ids) => Self::Ids(&ids[range]),
            Self::Selected(jobs) => Self::Selected(&jobs[range]),
        }
    }
}

/// The result of a requested change of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Done. The job is now in this state, or was before it was removed.
    Done(StateName),
    NotFound,
    Conflict(Conflict),
}

/// The result of one short transaction for the first of the given jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialChange {
    /// In the order of the jobs, at least one. If there are fewer than jobs, the rest is left to the next call.
    pub changes: Vec<Change>,
    /// Jobs that were cancelled because they depend on one of these.
    pub dependents: Vec<Dependent>,
    /// More dependents remain; the workers cancel them now, in short transactions too.
    pub leaves_dependents: bool,
}

/// A job that was cancelled because it depends, directly or through others, on a cancelled one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    pub id: JobId,
    /// The job that the caller cancelled.
    pub of: JobId,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("it is {}", .0.name())]
    State(StateName),
    /// Only a running job can be paused and resumed.
    #[error("it is {}", .0.name())]
    NotRunning(StateName),
    #[error("it is being cancelled")]
    Cancelling,
    #[error("its worker is stopping")]
    WorkerStopping,
    #[error("job `{holder}` holds its unique key")]
    KeyTaken { holder: JobId },
    /// Counted up to [`Conflict::MAX_COUNTED`].
    #[error("{} on it", depend(*count))]
    WaitedFor { count: u64 },
    #[error("its due time would be after the year 9999")]
    TooLate,
    /// Only for an edit of many jobs. An edit of one says which fields.
    #[error("its other fields contradict the change")]
    Contradiction,
    #[error("it depends on job `{through}`, which depends on it: a cycle")]
    Cycle { through: JobId },
    #[error("it depends on job `{dependency}`, which is {}", state.name())]
    DependencyFailed { dependency: JobId, state: StateName },
}

impl Conflict {
    /// Dependents are counted up to this number; beyond it the exact number does not matter.
    pub const MAX_COUNTED: u64 = 50;
}

fn depend(count: u64) -> String {
    match count {
        1 => "an unfinished job depends".to_owned(),
        Conflict::MAX_COUNTED.. => format!("at least {count} unfinished jobs depend"),
        fewer => format!("{fewer} unfinished jobs depend"),
    }
}

/// A dead job as a selection found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadJob {
    pub job: JobRef,
    pub queue: QueueName,
    pub reason: String,
    pub exit_code: Option<i32>,
    pub signal: Option<Signal>,
    pub error: Option<String>,
    pub finished_at: Timestamp,
}

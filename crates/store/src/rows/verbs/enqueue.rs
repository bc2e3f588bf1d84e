//! Enqueuing new jobs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::rows::dialect::Wording;
use crate::rows::jobs::dependencies;
use crate::rows::jobs::dependencies::Parent;
use crate::rows::jobs::row;
use crate::rows::jobs::row::to_json;
use crate::rows::jobs::{environments, history, ready, unique_keys};
use crate::rows::keys::{BatchKey, EnvironmentKey, JobSeq, QueueKey};
use crate::rows::tables::{batches, queues};
use crate::rows::tx::Tx;
use crate::rows::{params, wording};
use crate::{EnqueueError, EnqueueRefusal, EnqueueResult, RefusedJob, Result};
use domain::batch::find_cycle;
use domain::job::environment::Environment;
use domain::job::life::{Life, WaitIndex};
use domain::job::{NewJob, OnDependencyFailure, Start};
use domain::plan::consequences::End;
use domain::values::name::{BatchName, JobId, QueueName};
use domain::values::timestamp::Timestamp;

pub(crate) fn enqueue(tx: &mut Tx<'_>, jobs: &[NewJob]) -> Result<Vec<EnqueueResult>, EnqueueError> {
    let mut call = EnqueueCall::default();
    let mut answers = Vec::with_capacity(jobs.len());
    let mut blocked = Vec::new();
    let mut substitutes = HashMap::new();
    for (at, job) in jobs.iter().enumerate() {
        let answer =
            call.enqueue(tx, job)?.map_err(|reason| EnqueueError::Refused(RefusedJob { at, reason }))?;
        match &answer {
            EnqueueResult::Created(_) if !job.depends_on.is_empty() => blocked.push((at, call.last_seq)),
            EnqueueResult::Existing(holder) if *holder != job.id => {
                substitutes.insert(&job.id, holder.clone());
            }
            EnqueueResult::Created(_) | EnqueueResult::Existing(_) => {}
        }
        answers.push(answer);
    }
    let renamed = rename(tx, jobs, &blocked, substitutes)?;
    // All jobs of the call are stored now, so they can depend on each other in any order.
    for (at, seq) in blocked {
        let depends_on = renamed.get(&at).unwrap_or(&jobs[at].depends_on);
        call.link_dependencies(tx, &jobs[at], depends_on, seq)?
            .map_err(|reason| EnqueueError::Refused(RefusedJob { at, reason }))?;
    }
    Ok(answers)
}

/// The dependencies of jobs, by index, that named a job of this call which was not stored because another one holds its
/// unique key. They depend on that holder instead.
fn rename(
    tx: &Tx<'_>,
    jobs: &[NewJob],
    blocked: &[(usize, JobSeq)],
    mut substitutes: HashMap<&JobId, JobId>,
) -> Result<HashMap<usize, Vec<JobId>>, EnqueueError> {
    let mut renamed = HashMap::new();
    if substitutes.is_empty() || blocked.is_empty() {
        return Ok(renamed);
    }
    // An id that exists in the store refers to that job.
    for job in jobs {
        if substitutes.contains_key(&job.id) && is_taken(tx, &job.id)? {
            substitutes.remove(&job.id);
        }
    }
    for (at, seq) in blocked {
        let before = &jobs[*at].depends_on;
        if before.iter().any(|id| substitutes.contains_key(id)) {
            let mut seen = HashSet::new();
            let names = before.iter().map(|id| substitutes.get(id).unwrap_or(id).clone());
            let names: Vec<JobId> = names.filter(|id| seen.insert(id.clone())).collect();
            rename_dependencies(tx, *seq, &names)?;
            renamed.insert(*at, names);
        }
    }
    refuse_renamed_cycle(jobs, &renamed)?;
    Ok(renamed)
}

/// If one job of the call holds the key of another, two ids come to refer to the same job, which may close a cycle.
fn refuse_renamed_cycle(jobs: &[NewJob], renamed: &HashMap<usize, Vec<JobId>>) -> Result<(), EnqueueError> {
    if renamed.is_empty() {
        return Ok(());
    }
    let mut jobs = jobs.to_vec();
    for (at, names) in renamed {
        jobs[*at].depends_on.clone_from(names);
    }
    refuse_cycle(&jobs)
}

/// Refuses jobs of one call that wait for each other.
pub(crate) fn refuse_cycle(jobs: &[NewJob]) -> Result<(), EnqueueError> {
    match find_cycle(jobs) {
        None => Ok(()),
        Some(id) => {
            let at = jobs.iter().position(|job| job.id == id).unwrap_or(0);
            Err(EnqueueError::Refused(RefusedJob { at, reason: EnqueueRefusal::Cycle(id) }))
        }
    }
}

fn rename_dependencies(tx: &Tx<'_>, seq: JobSeq, names: &[JobId]) -> Result<()> {
    let json = to_json(&names.iter().map(JobId::as_str).collect::<Vec<&str>>());
    tx.execute(
        "update jobs set depends_on = ?2, blocked_by = ?3 where seq = ?1",
        params![seq, json, names.len()],
    )?;
    Ok(())
}

pub(crate) fn is_taken(tx: &Tx<'_>, id: &JobId) -> Result<bool> {
    tx.exists("select 1 from jobs where id = ?1", params![id])
}

/// Gives numbers to the new jobs of one call.
#[derive(Debug, Default)]
pub(crate) struct NewNumbers {
    /// The next number, once it is known.
    next: Option<JobSeq>,
}

impl NewNumbers {
    /// The number of the next job. A job that is not stored after all leaves its number to the one after it.
    pub(crate) fn next(&mut self, tx: &Tx<'_>) -> Result<JobSeq> {
        match self.next {
            Some(next) => Ok(next),
            None => Ok(*self.next.insert(unused_number(tx)?)),
        }
    }

    /// A job was stored with this number. On PostgreSQL others enqueue at the same time, so the next is asked for.
    pub(crate) fn use_up(&mut self, tx: &Tx<'_>, seq: JobSeq) {
        self.next = tx.dialect().pick(Some(seq.next()), None);
    }
}

pub(crate) const UNUSED_NUMBER: Wording = wording!(
    ("select coalesce((select max(seq) + 1 from jobs), 1), (select next_seq from sequence)"
        | "select nextval('jobs_seq_seq'), 0")
);

fn unused_number(tx: &Tx<'_>) -> Result<JobSeq> {
    let (after_last, next_seq): (JobSeq, Option<JobSeq>) =
        tx.one(UNUSED_NUMBER.of(tx), params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
    next_seq.map(|next| next.max(after_last)).ok_or_else(|| row::malformed("sequence", "it is empty"))
}

/// The data that the jobs of one call share.
#[derive(Default)]
struct EnqueueCall {
    numbers: NewNumbers,
    /// The number of the job that was stored last.
    last_seq: JobSeq,
    queue_ids: HashMap<QueueName, QueueKey>,
    /// The environment of the previous job, and its row id.
    environment: Option<(Arc<Environment>, EnvironmentKey)>,
    /// The named batch of the previous job, and its row id.
    batch: Option<(BatchName, BatchKey)>,
}

impl EnqueueCall {
    /// Stores a job, unless an existing one has its unique key or id.
    fn enqueue(&mut self, tx: &mut Tx<'_>, job: &NewJob) -> Result<Result<EnqueueResult, EnqueueRefusal>> {
        if let Some(key) = &job.unique_key
            && let Some(holder) = unique_keys::holder(tx, key)?
        {
            return Ok(Ok(EnqueueResult::Existing(holder)));
        }

        let Some(life) = first_life(tx, job, job.depends_on.len()) else {
            return Ok(Err(EnqueueRefusal::TooLate));
        };
        // A new batch without a job would have to be deleted, which a role that can only enqueue may not do.
        if job.if_absent && job.batch.is_some() && is_taken(tx, &job.id)? {
            return Ok(Ok(EnqueueResult::Existing(job.id.clone())));
        }
        let seq = self.numbers.next(tx)?;
        let queue_id = self.queue_id(tx, &job.queue)?;
        let ids = RowIds {
            seq,
            queue_id,
            environment_id: self.environment_id(tx, job)?,
            batch_id: self.batch_id(tx, job)?,
        };
        if !insert_row(tx, job, &life, &ids)? {
            return Ok(if job.if_absent {
                Ok(EnqueueResult::Existing(job.id.clone()))
            } else {
                Err(EnqueueRefusal::IdTaken(job.id.clone()))
            });
        }
        self.numbers.use_up(tx, seq);
        self.last_seq = seq;
        if let Some(stdin) = &job.stdin {
            history::add_stdin(tx, seq, stdin)?;
        }
        for tag in &job.tags {
            tx.execute(INSERT_TAG, params![tag, seq])?;
        }
        if let Some(key) = &job.unique_key {
            unique_keys::take(tx, key, seq, job.options.unique_for)?;
        }
        tx.counters.enqueue(queue_id, ids.batch_id);
        await_start(tx, queue_id, job, &life, seq)?;
        Ok(Ok(EnqueueResult::Created(job.id.clone())))
    }

    /// Records what a new job waits for. It was stored as blocked by each of its dependencies. Finished ones are applied
    /// last, because one that cancels the job also ends its waiting for the others.
    fn link_dependencies(
        &mut self,
        tx: &mut Tx<'_>,
        job: &NewJob,
        depends_on: &[JobId],
        seq: JobSeq,
    ) -> Result<Result<(), EnqueueRefusal>> {
        let mut finished = Vec::new();
        for parent in depends_on {
            match dependencies::hold(tx, parent)? {
                Parent::Unknown => return Ok(Err(EnqueueRefusal::UnknownDependency(parent.clone()))),
                Parent::Unfinished { seq: parent_seq } => dependencies::add_new(tx, parent_seq, seq, true)?,
                Parent::Finished { seq: parent_seq, end } => {
                    dependencies::add_new(tx, parent_seq, seq, false)?;
                    finished.push(end);
                }
            }
        }
        let runs_regardless = job.options.on_dependency_failure() == OnDependencyFailure::Run;
        if finished.is_empty() {
            Ok(Ok(()))
        } else if runs_regardless || !finished.contains(&End::Failure) {
            let queue_id = self.queue_id(tx, &job.queue)?;
            let blocked_by = depends_on.len() - finished.len();
            meet_dependencies(tx, queue_id, job, blocked_by, seq).map(Ok)
        } else {
            dependencies::unblock(tx, &row::by_seq(tx, seq)?, &finished)?;
            Ok(Ok(()))
        }
    }

    fn queue_id(&mut self, tx: &Tx<'_>, name: &QueueName) -> Result<QueueKey> {
        if let Some(id) = self.queue_ids.get(name) {
            return Ok(*id);
        }
        let id = queues::id(tx, name)?;
        self.queue_ids.insert(name.clone(), id);
        Ok(id)
    }

    fn batch_id(&mut self, tx: &mut Tx<'_>, job: &NewJob) -> Result<Option<BatchKey>> {
        let Some(name) = &job.batch else {
            return Ok(None);
        };
        if let Some((known, id)) = &self.batch
            && known == name
        {
            return Ok(Some(*id));
        }
        let id = batches::id(tx, name)?;
        self.batch = Some((name.clone(), id));
        Ok(Some(id))
    }

    fn environment_id(&mut self, tx: &Tx<'_>, job: &NewJob) -> Result<Option<EnvironmentKey>> {
        let Some(environment) = &job.environment else {
            return Ok(None);
        };
        if let Some((known, id)) = &self.environment
            && Arc::ptr_eq(known, environment)
        {
            return Ok(Some(*id));
        }
        let id = environments::id(tx, environment)?;
        self.environment = Some((Arc::clone(environment), id));
        Ok(Some(id))
    }
}

/// The row ids that stand for names in the row of a job.
struct RowIds {
    seq: JobSeq,
    queue_id: QueueKey,
    environment_id: Option<EnvironmentKey>,
    batch_id: Option<BatchKey>,
}

/// Stores that some dependencies of a new job do not block it. Changes only what a role that can only enqueue may change.
fn meet_dependencies(
    tx: &mut Tx<'_>,
    queue_id: QueueKey,
    job: &NewJob,
    blocked_by: usize,
    seq: JobSeq,
) -> Result<()> {
    tx.execute("update jobs set blocked_by = ?2 where seq = ?1", params![seq, blocked_by])?;
    match first_life(tx, job, blocked_by) {
        Some(life) => await_start(tx, queue_id, job, &life, seq),
        // It was refused before it was stored.
        None => Ok(()),
    }
}

/// Puts a new job where it waits for its start.
fn await_start(tx: &mut Tx<'_>, queue_id: QueueKey, job: &NewJob, life: &Life, seq: JobSeq) -> Result<()> {
    match life.wait_index(tx.now) {
        WaitIndex::Ready => ready::insert_ready(tx, queue_id, job.priority, life.due_at, seq),
        WaitIndex::Waiting => ready::insert_waiting(tx, life.due_at, seq),
        WaitIndex::None => Ok(()),
    }
}

/// `None` if its time is out of range.
fn first_life(tx: &Tx<'_>, job: &NewJob, blocked_by: usize) -> Option<Life> {
    let run_at: Option<Timestamp> = match job.start {
        Start::Now => None,
        Start::At(at) => Some(at),
        Start::After(delay) => Some(tx.now.checked_add(delay)?),
    };
    let blocked_by = u32::try_from(blocked_by).unwrap_or(u32::MAX);
    Some(Life::begin(run_at, job.max_retries, blocked_by, tx.now))
}

pub(crate) const INSERT_TAG: &str = "insert into job_tags (tag, seq) values (?1, ?2) on conflict do nothing";

pub(crate) const INSERT: &str = "insert into jobs (seq, id, queue_id, priority, state, blocked_by, run_at, due_at,
                       max_retries, created_at, updated_at, command, cwd, environment_id, timeout_ms, unique_key, tags,
                       depends_on, options, batch_id)
     values (?1, ?2, ?3, ?4, 'pending', ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
     on conflict (id) do nothing";

/// `false` if its id is taken.
fn insert_row(tx: &Tx<'_>, job: &NewJob, life: &Life, ids: &RowIds) -> Result<bool> {
    let depends_on: Vec<&str> = job.depends_on.iter().map(JobId::as_str).collect();
    let inserted = tx.execute(
        INSERT,
        params![
            ids.seq,
            job.id,
            ids.queue_id,
            job.priority,
            job.depends_on.len(),
            life.run_at,
            life.due_at,
            life.max_retries,
            tx.now,
            job.command,
            job.cwd,
            ids.environment_id,
            job.timeout,
            job.unique_key,
            to_json(&job.tags),
            to_json(&depends_on),
            job.options.to_json(),
            ids.batch_id,
        ],
    )?;
    Ok(inserted == 1)
}

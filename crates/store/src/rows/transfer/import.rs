//! Importing exported lines, all or nothing.
//!
//! Jobs get new numbers, in the order of the lines. Existing settings, queues, schedules and hooks stay as they are;
//! one is imported only if its name does not exist.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::params;

use super::waits::WaitGraph;
use super::{attempts, batches, deliveries, hooks, schedules};
use crate::StoreError;
use crate::rows::jobs::dependencies;
use crate::rows::jobs::dependencies::Parent;
use crate::rows::jobs::{environments, ready, unique_keys};
use crate::rows::jobs::row;
use crate::rows::jobs::row::{JobRow, to_json};
use crate::rows::tx::Tx;
use crate::rows::tables::{batches as in_batches, events, queues, settings};
use crate::rows::verbs::enqueue;
use crate::transfer::{
    DeliveryLine, EventLine, ImportError, ImportSummary, JobLine, Line, QueueLine, SettingLine,
};
use domain::job::environment::Environment;
use domain::job::life::{CancelReason, StateName};
use domain::job::options::JobOptions;
use domain::job::spec::check_command;
use domain::values::name::{BatchName, JobId, NameError, QueueName};
use domain::values::timestamp::Timestamp;

/// The source of lines.
pub(in crate::sqlite) type Lines<'a> = &'a mut dyn Iterator<Item = Result<Line, ImportError>>;

pub(in crate::sqlite) fn import(
    tx: &Tx<'_>,
    lines: Lines<'_>,
    if_absent: bool,
    by: &str,
) -> Result<ImportSummary, ImportError> {
    // Read now, so that imported hooks do not fire for the import itself.
    tx.hooks()?;
    let mut import = Import {
        if_absent,
        next_seq: enqueue::next_seq(tx)?,
        environments: BTreeMap::new(),
        schedules: HashMap::new(),
        hooks: HashMap::new(),
        skipped: HashSet::new(),
        blocked: HashMap::new(),
        waits: WaitGraph::default(),
        dependents: Vec::new(),
        finished_parents: BTreeMap::new(),
        imported: ImportSummary::default(),
    };
    for line in lines {
        import.import_line(tx, line?)?;
    }
    import.finish(tx)?;
    let detail = format!("{} jobs", import.imported.jobs);
    events::record(tx, None, "import", by, Some(&detail))?;
    Ok(import.imported)
}

struct Import {
    if_absent: bool,
    next_seq: i64,
    /// Row ids by number in the file.
    environments: BTreeMap<u64, i64>,
    /// The imported ones.
    schedules: HashMap<String, i64>,
    /// Those in the file; `None` for a hook that already exists.
    hooks: HashMap<String, Option<i64>>,
    /// Jobs that already exist.
    skipped: HashSet<String>,
    /// Jobs that wait for others.
    blocked: HashMap<String, BlockedJob>,
    /// Which job waits for which, by number.
    waits: WaitGraph,
    /// Jobs with dependencies, waiting or not.
    dependents: Vec<i64>,
    /// Jobs that wait for finished ones, and whether each of these failed.
    finished_parents: BTreeMap<i64, Vec<bool>>,
    imported: ImportSummary,
}

impl Import {
    fn import_line(&mut self, tx: &Tx<'_>, line: Line) -> Result<(), ImportError> {
        match line {
            // Log files are not part of the store.
            Line::Queuectl { .. } | Line::Log(_) => Ok(()),
            Line::Setting(setting) => import_setting(tx, &setting),
            Line::Queue(queue) => import_queue(tx, &queue),
            Line::Environment(line) => {
                let id = environments::id(tx, &Environment::from_bytes(&line.variables))?;
                self.environments.insert(line.number, id);
                Ok(())
            }
            Line::Batch(batch) => batches::import(tx, &batch),
            Line::Schedule(schedule) => {
                let taken = schedules::import(tx, &schedule, self.environment(schedule.environment)?)?;
                self.schedules.extend(taken.map(|id| (schedule.name, id)));
                Ok(())
            }
            Line::Job(job) => self.import_job(tx, &job),
            Line::Dependency { job, waits_for } => self.import_dependency(tx, &job, &waits_for),
            Line::UniqueKey { key, job, held_until } => self.import_key(tx, &key, &job, held_until),
            Line::Event(event) => self.import_event(tx, &event),
            Line::Hook(hook) => {
                let taken = hooks::import(tx, &hook, self.environment(hook.environment)?)?;
                self.hooks.insert(hook.name, taken);
                Ok(())
            }
            Line::Delivery(delivery) => self.import_delivery(tx, &delivery),
        }
    }

    /// An existing hook keeps its own deliveries, so repeating an import duplicates nothing.
    fn import_delivery(&self, tx: &Tx<'_>, delivery: &DeliveryLine) -> Result<(), ImportError> {
        match self.hooks.get(&delivery.hook) {
            Some(Some(hook_id)) => deliveries::import(tx, delivery, *hook_id),
            Some(None) => Ok(()),
            None => Err(malformed(
                format!("delivery `{}`", delivery.name),
                format!("there is no line for the hook `{}`", delivery.hook),
            )),
        }
    }

    /// The row id of an environment.
    fn environment(&self, number: Option<u64>) -> Result<Option<i64>, ImportError> {
        let Some(number) = number else {
            return Ok(None);
        };
        let known = self.environments.get(&number).copied();
        known.map(Some).ok_or_else(|| malformed(format!("environment {number}"), "there is no line for it"))
    }

    fn import_job(&mut self, tx: &Tx<'_>, job: &JobLine) -> Result<(), ImportError> {
        let id: JobId = parse_name(&job.id, "a job")?;
        if enqueue::is_taken(tx, &id)? {
            if !self.if_absent {
                return Err(ImportError::IdTaken(job.id.clone()));
            }
            self.skipped.insert(job.id.clone());
            self.imported.skipped += 1;
            return Ok(());
        }
        let seq = self.next_seq;
        let state = check(job)?;
        let ended = cancelled_on_import(tx, job, state);
        let job = ended.as_ref().unwrap_or(job);
        let owners = self.owners(tx, job)?;
        insert(tx, job, seq, state, &owners).map_err(|error| job_error(job, error))?;
        for attempt in &job.history {
            attempts::import(tx, seq, attempt).map_err(|error| job_error(job, error))?;
        }
        if StateName::from_name(&job.state) == Some(StateName::Processing) {
            attempts::import_lost(tx, seq, job).map_err(|error| job_error(job, error))?;
        }
        for tag in &job.tags {
            tx.prepare("insert or ignore into job_tags (tag, seq) values (?1, ?2)")?
                .execute(params![tag, seq])
                .map_err(StoreError::from)?;
        }
        let row = row::by_seq(tx, seq)?;
        ready::insert(tx, &row, &row.life)?;
        tx.counters.borrow_mut().enter(row.queue_id, state);
        if let Some(batch_id) = row.batch_id {
            tx.counters.borrow_mut().enter_batch(batch_id, state);
        }
        if job.blocked_by > 0 {
            let names = job.depends_on.iter().cloned().collect();
            self.blocked.insert(job.id.clone(), BlockedJob { seq, left: job.blocked_by, names });
        }
        if !job.depends_on.is_empty() {
            self.dependents.push(seq);
        }
        self.next_seq += 1;
        self.imported.jobs += 1;
        Ok(())
    }

    /// The row ids of what the job belongs to.
    fn owners(&self, tx: &Tx<'_>, job: &JobLine) -> Result<JobOwners, ImportError> {
        let batch: Option<BatchName> =
            job.batch.as_ref().map(|name| parse_name(name, "a batch")).transpose()?;
        Ok(JobOwners {
            environment: self.environment(job.environment)?,
            batch: batch.map(|name| in_batches::id(tx, &name)).transpose()?,
            schedule: job.schedule.as_ref().and_then(|name| self.schedules.get(name)).copied(),
        })
    }

    fn import_dependency(&mut self, tx: &Tx<'_>, job: &str, waits_for: &str) -> Result<(), ImportError> {
        if self.skipped.contains(job) {
            return Ok(());
        }
        let broken = |why| malformed(format!("the dependency of `{job}` on `{waits_for}`"), why);
        let blocked = self.blocked.get_mut(job).filter(|blocked| blocked.left > 0);
        let blocked = blocked.ok_or_else(|| broken("the job does not wait for any other"))?;
        if !blocked.names.remove(waits_for) {
            return Err(broken("the job does not depend on it, or the line is repeated"));
        }
        blocked.left -= 1;
        let seq = blocked.seq;
        match dependencies::look_up(tx, &parse_name(waits_for, "a job")?)? {
            Parent::Unknown => return Err(broken("there is no such job")),
            Parent::Unfinished { seq: parent_seq } => {
                dependencies::add(tx, parent_seq, seq, true)?;
                self.waits.add(seq, parent_seq);
            }
            Parent::Finished { seq: parent_seq, failed } => {
                dependencies::add(tx, parent_seq, seq, false)?;
                self.finished_parents.entry(seq).or_default().push(failed);
            }
        }
        Ok(())
    }

    fn import_key(
        &self,
        tx: &Tx<'_>,
        key: &str,
        job: &str,
        held_until: Option<Timestamp>,
    ) -> Result<(), ImportError> {
        if self.skipped.contains(job) {
            return Ok(());
        }
        let row = find_job(tx, job)?;
        // A job that was cancelled on import no longer holds it.
        if held_until.is_none() && row.life.state.name().is_finished() {
            return Ok(());
        }
        if let Some(holder) = unique_keys::holder(tx, key)? {
            return Err(ImportError::KeyTaken { key: key.to_owned(), holder: holder.to_string() });
        }
        // An expired holder's row may still exist.
        tx.prepare("insert or replace into unique_keys (key, seq, held_until) values (?1, ?2, ?3)")?
            .execute(params![key, row.seq, held_until.map(Timestamp::as_millis)])
            .map_err(|error| malformed(format!("the unique key of `{job}`"), error))?;
        Ok(())
    }

    /// If some jobs already exist, the events that concern no job were imported with them.
    fn import_event(&self, tx: &Tx<'_>, event: &EventLine) -> Result<(), ImportError> {
        let seq = match &event.job {
            Some(job) if self.skipped.contains(job) => return Ok(()),
            Some(job) => Some(find_job(tx, job)?.seq),
            None if self.imported.skipped > 0 => return Ok(()),
            None => None,
        };
        tx.prepare("insert into events (at, seq, event, by, detail) values (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![event.at.as_millis(), seq, event.event, event.by, event.detail])
            .map_err(StoreError::from)?;
        Ok(())
    }

    /// The checks and changes that need all jobs.
    fn finish(&self, tx: &Tx<'_>) -> Result<(), ImportError> {
        if let Some((job, _)) = self.blocked.iter().find(|(_, blocked)| blocked.left > 0) {
            return Err(malformed(format!("job `{job}`"), "the lines for what it waits for are missing"));
        }
        if let Some(seq) = self.waits.find_cycle() {
            let id = row::by_seq(tx, seq)?.id;
            return Err(malformed(format!("job `{id}`"), "it waits for itself through its dependencies"));
        }
        for seq in &self.dependents {
            dependencies::add_missing_links(tx, *seq)?;
        }
        for (seq, finished) in &self.finished_parents {
            dependencies::unblock(tx, &row::by_seq(tx, *seq)?, finished)?;
        }
        // The settings must be valid together, and an unreadable queue would break every later use of it.
        settings::load(tx)?;
        queues::list(tx).map_err(|error| malformed("a queue", error))?;
        Ok(())
    }
}

/// A job that waits for others.
struct BlockedJob {
    seq: i64,
    /// How many dependency lines are still missing.
    left: u32,
    /// The dependencies for which no line has come yet.
    names: HashSet<String>,
}

/// The row ids of what a job belongs to.
struct JobOwners {
    environment: Option<i64>,
    batch: Option<i64>,
    schedule: Option<i64>,
}

fn insert(
    tx: &Tx<'_>,
    job: &JobLine,
    seq: i64,
    state: StateName,
    owners: &JobOwners,
) -> Result<(), StoreError> {
    let queue: QueueName = job.queue.parse().map_err(|error| row::malformed("queue", error))?;
    let was_running = StateName::from_name(&job.state) == Some(StateName::Processing);
    let options =
        (!job.options.is_empty()).then(|| serde_json::Value::Object(job.options.clone()).to_string());
    JobOptions::from_json(options.as_deref()).map_err(|error| row::malformed("job", error))?;
    tx.prepare(
        "insert into jobs (seq, id, queue_id, priority, state, blocked_by, run_at, due_at, attempts, max_retries,
                           failures, losses, loss_boot, started_at, finished_at, exit_code, signal, error, reason,
                           created_at, updated_at, command, cwd, environment_id, timeout_ms, unique_key, tags,
                           depends_on, options, batch_id, schedule_id, scheduled_for)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                 ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)",
    )?
    .execute(params![
        seq,
        job.id,
        queues::id(tx, &queue)?,
        job.priority,
        state.name(),
        job.blocked_by,
        job.run_at.map(Timestamp::as_millis),
        job.due_at.as_millis(),
        job.attempts,
        job.max_retries,
        job.failures,
        job.losses,
        job.loss_boot,
        job.started_at.map(Timestamp::as_millis),
        job.finished_at.map(Timestamp::as_millis),
        job.exit_code,
        job.signal,
        job.error,
        job.reason,
        job.created_at.as_millis(),
        if was_running { tx.now } else { job.updated_at }.as_millis(),
        job.command,
        job.cwd,
        owners.environment,
        job.timeout_ms,
        job.unique_key,
        to_json(&job.tags),
        to_json(&job.depends_on),
        options,
        owners.batch,
        owners.schedule,
        job.scheduled_for.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

/// Checks what the table does not, and returns the state that the job will have here.
fn check(job: &JobLine) -> Result<StateName, ImportError> {
    let bad = |why: &str| malformed(format!("job `{}`", job.id), why);
    check_command(job.command.clone()).map_err(|error| bad(&error.to_string()))?;
    let state = StateName::from_name(&job.state).ok_or_else(|| bad("its state is unknown"))?;
    let is_running = state == StateName::Processing;
    let ended = job.attempts.saturating_sub(u32::from(is_running));
    if !job.history.iter().map(|attempt| attempt.attempt).eq(1..=ended) {
        return Err(bad("its history has gaps"));
    }
    if is_running && (job.worker_id.is_none() || job.attempts == 0) {
        return Err(bad("it is processing without a worker or an attempt"));
    }
    Ok(match state {
        // The requested cancellation is carried out.
        StateName::Processing if job.cancel_requested => StateName::Cancelled,
        StateName::Processing => StateName::Pending,
        StateName::Pending
        | StateName::Completed
        | StateName::Failed
        | StateName::Dead
        | StateName::Cancelled => state,
    })
}

/// A running job whose cancellation was requested, as it will be stored here.
fn cancelled_on_import(tx: &Tx<'_>, job: &JobLine, state: StateName) -> Option<JobLine> {
    let is_ended = state == StateName::Cancelled && job.state == StateName::Processing.name();
    is_ended.then(|| JobLine {
        finished_at: Some(tx.now),
        reason: Some(CancelReason::User.name().to_owned()),
        ..job.clone()
    })
}

fn import_setting(tx: &Tx<'_>, setting: &SettingLine) -> Result<(), ImportError> {
    tx.prepare("insert or ignore into settings (key, value) values (?1, ?2)")?
        .execute(params![setting.key, setting.value])
        .map_err(StoreError::from)?;
    Ok(())
}

fn import_queue(tx: &Tx<'_>, queue: &QueueLine) -> Result<(), ImportError> {
    let _: QueueName = parse_name(&queue.name, "a queue")?;
    let inserted = tx
        .prepare(
            "insert or ignore into queues (name, created_at, paused_at, paused_by, pause_reason, concurrency, rate_count,
                                           rate_period_ms, limits, retry_on, no_retry_on)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            queue.name,
            queue.created_at.as_millis(),
            queue.paused_at.map(Timestamp::as_millis),
            queue.paused_by,
            queue.pause_reason,
            queue.concurrency,
            queue.rate_count,
            queue.rate_period_ms,
            queue.limits,
            queue.retry_on,
            queue.no_retry_on,
        ]);
    inserted.map(drop).map_err(|error| malformed(format!("queue `{}`", queue.name), error))
}

fn find_job(tx: &Tx<'_>, job: &str) -> Result<JobRow, ImportError> {
    let found = row::by_id(tx, &parse_name(job, "a job")?)?;
    found.ok_or_else(|| malformed(format!("a line for job `{job}`"), "there is no such job"))
}

pub(super) fn parse_name<T: std::str::FromStr<Err = NameError>>(
    text: &str,
    what: &str,
) -> Result<T, ImportError> {
    text.parse().map_err(|error: NameError| malformed(format!("{what} `{text}`"), error))
}

/// A constraint violation is the fault of the line, not of the store.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other error is the store's")]
fn job_error(job: &JobLine, error: StoreError) -> ImportError {
    match error {
        StoreError::Corrupt { source } => malformed(format!("job `{}`", job.id), source),
        StoreError::Malformed { what, detail } => {
            malformed(format!("the {what} of job `{}`", job.id), detail)
        }
        error => error.into(),
    }
}

pub(super) fn malformed(what: impl Into<String>, why: impl std::fmt::Display) -> ImportError {
    ImportError::Malformed { what: what.into(), why: why.to_string() }
}

//! Importing exported lines, all or nothing.
//!
//! Jobs get new numbers, in the order of the lines. Existing settings, queues, schedules and hooks stay as they are;
//! one is imported only if its name does not exist.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::str::FromStr;

use serde_json::Map;

use super::history::Histories;
use super::import_job;
use crate::rows::jobs::dependencies::Parent;
use crate::rows::jobs::row;
use crate::rows::jobs::row::JobRow;
use crate::rows::jobs::{dependencies, environments, output_parts, unique_keys};
use crate::rows::keys::{EnvironmentKey, HookKey, JobSeq, ScheduleKey};
use crate::rows::record::{self, ColumnValue, Record};
use crate::rows::tables::{batches, events, hooks, queues, schedules, settings};
use crate::rows::tx::Tx;
use crate::rows::value::{ToValue, Value};
use crate::rows::verbs::enqueue;
use crate::rows::verbs::enqueue::NewNumbers;
use crate::rows::{Params, named};
use crate::transfer::{
    BatchLine, DeliveryLine, DependencyLine, EventLine, HookLine, ImportError, ImportNumbers, ImportRules,
    ImportSummary, JobLine, Line, LogLine, QueueLine, ScheduleLine, UniqueKeyLine,
};
use crate::{OutputPart, Result, StoreError};
use domain::batch::find_cycle_in;
use domain::job::environment::Environment;
use domain::plan::consequences::End;
use domain::values::name::{BatchName, HookName, JobId, NameError, QueueName, ScheduleName};

/// An existing row with the name stays as it is.
const KEEP_NAME: &str = "on conflict (name) do nothing";

/// The source of lines.
type Lines<'a> = &'a mut dyn Iterator<Item = Result<Line, ImportError>>;

pub(crate) fn import(
    tx: &mut Tx<'_>,
    lines: Lines<'_>,
    rules: ImportRules,
    by: &str,
) -> Result<ImportSummary, ImportError> {
    // Read now, so that imported hooks do not fire for the import itself.
    tx.hooks()?;
    let mut import = Import { rules, ..Import::default() };
    for line in lines {
        import.line(tx, line?)?;
    }
    import.finish(tx)?;
    let detail = format!("{} jobs", import.imported.jobs);
    events::record(tx, None, "import", by, Some(&detail))?;
    Ok(import.imported)
}

#[derive(Default)]
struct Import {
    rules: ImportRules,
    numbers: NewNumbers,
    histories: Histories,
    /// Row ids by number in the file.
    environments: HashMap<i64, EnvironmentKey>,
    /// The imported ones.
    schedules: HashMap<String, ScheduleKey>,
    /// Those in the file; `None` for a hook that already exists.
    hooks: HashMap<String, Option<HookKey>>,
    /// Jobs that wait for others.
    blocked: HashMap<String, BlockedJob>,
    /// The unfinished jobs that each job waits for, by number.
    waits: BTreeMap<JobSeq, Vec<JobSeq>>,
    /// Jobs with dependencies, waiting or not.
    dependents: Vec<JobSeq>,
    /// Jobs that wait for finished ones, and how each of these ended.
    finished_parents: BTreeMap<JobSeq, Vec<End>>,
    imported: ImportSummary,
}

/// A job that waits for others.
struct BlockedJob {
    seq: JobSeq,
    /// How many dependency lines are still missing.
    left: u32,
    /// The dependencies for which no line has come yet.
    names: HashSet<String>,
}

impl Import {
    fn line(&mut self, tx: &mut Tx<'_>, line: Line) -> Result<(), ImportError> {
        match line {
            Line::Queuectl { .. } => Ok(()),
            Line::Log(line) => self.output_part(tx, line),
            Line::Setting(line) => Ok(insert(tx, "settings", &line, &[], "on conflict (key) do nothing")?),
            Line::Queue(line) => queue(tx, &line),
            Line::Totals(line) => {
                let queue: QueueName = parse_name("queue", &line.queue)?;
                let what = format_args!("the totals of queue `{queue}`");
                self.histories.totals(tx, &queue, &line).map_err(invalid(what))
            }
            Line::Minutes(line) => {
                let queue: QueueName = parse_name("queue", &line.queue)?;
                let what = format_args!("the history of queue `{queue}`");
                self.histories.minutes(tx, &queue, &line).map_err(invalid(what))
            }
            Line::Environment(line) => {
                let id = environments::id(tx, &Environment::from_bytes(&line.variables.0))?;
                self.environments.insert(line.id, id);
                Ok(())
            }
            Line::Batch(line) => batch(tx, &line),
            Line::Schedule(line) => self.schedule(tx, *line),
            Line::Job(line) => self.job(tx, *line),
            Line::Dependency(line) => self.dependency(tx, &line),
            Line::UniqueKey(line) => self.unique_key(tx, &line),
            Line::Event(line) => self.event(tx, &line),
            Line::Hook(line) => self.hook(tx, *line),
            Line::Delivery(line) => self.delivery(tx, &line),
        }
    }

    /// The row id of an environment.
    fn environment(&self, number: Option<i64>) -> Result<Option<i64>, ImportError> {
        let Some(number) = number else {
            return Ok(None);
        };
        let known = self.environments.get(&number).map(|key| key.0);
        known.map(Some).ok_or_else(|| malformed(format!("environment {number}"), "there is no line for it"))
    }

    /// An existing schedule keeps its own runs.
    fn schedule(&mut self, tx: &Tx<'_>, mut line: ScheduleLine) -> Result<(), ImportError> {
        let name: ScheduleName = parse_name("schedule", &line.name)?;
        if schedules::find(tx, &name)?.is_some() {
            return Ok(());
        }
        line.environment_id = self.environment(line.environment_id)?;
        let id = schedules::next_id(tx)?;
        let what = format_args!("schedule `{name}`");
        insert(tx, "schedules", &line, &[("id", id.to_value())], "").map_err(invalid(what))?;
        // An unreadable row would break every later use of the schedule.
        schedules::find(tx, &name).map_err(invalid(what))?;
        self.schedules.insert(line.name, id);
        Ok(())
    }

    fn job(&mut self, tx: &mut Tx<'_>, mut job: JobLine) -> Result<(), ImportError> {
        let id: JobId = parse_name("job", &job.id)?;
        if enqueue::is_taken(tx, &id)? {
            if !self.rules.if_absent {
                return Err(ImportError::IdTaken(job.id));
            }
            self.imported.skipped.insert(job.id);
            return Ok(());
        }
        job.environment_id = self.environment(job.environment_id)?;
        let batch: Option<BatchName> =
            job.batch.as_ref().map(|name| parse_name("batch", name)).transpose()?;
        let batch_id = batch.map(|name| batches::id(tx, &name)).transpose()?;
        let schedule_id = job.schedule.as_ref().and_then(|name| self.schedules.get(name)).copied();
        let seq = self.seq(tx, &job)?;
        let owners = [("batch_id", batch_id.to_value()), ("schedule_id", schedule_id.to_value())];
        import_job::settle(&mut job, tx.now).map_err(|why| malformed(format_args!("job `{id}`"), why))?;
        import_job::import(tx, &job, seq, &owners).map_err(invalid(format_args!("job `{id}`")))?;
        if job.blocked_by > 0 {
            let names = job.depends_on.iter().cloned().collect();
            self.blocked.insert(job.id, BlockedJob { seq, left: job.blocked_by, names });
        }
        if !job.depends_on.is_empty() {
            self.dependents.push(seq);
        }
        if self.rules.numbers == ImportNumbers::New {
            self.numbers.use_up(tx, seq);
        }
        self.imported.jobs += 1;
        Ok(())
    }

    fn seq(&mut self, tx: &Tx<'_>, job: &JobLine) -> Result<JobSeq> {
        match self.rules.numbers {
            ImportNumbers::Kept => Ok(JobSeq::of_number(job.number)),
            ImportNumbers::New => self.numbers.next(tx),
        }
    }

    /// A part of the output, for a store that keeps it. A part for an attempt that does not exist is left out.
    fn output_part(&self, tx: &Tx<'_>, line: LogLine) -> Result<(), ImportError> {
        if self.imported.skipped.contains(&line.job) {
            return Ok(());
        }
        let job = find_job(tx, &line.job)?;
        if line.attempt == 0 || line.attempt > job.life.attempts {
            return Ok(());
        }
        let part = OutputPart { at: line.offset, content: line.content.0 };
        Ok(output_parts::put(tx, job.seq, line.attempt, &[part])?)
    }

    fn dependency(&mut self, tx: &Tx<'_>, line: &DependencyLine) -> Result<(), ImportError> {
        let DependencyLine { job, waits_for } = line;
        if self.imported.skipped.contains(job) {
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
        match dependencies::look_up(tx, &parse_name("job", waits_for)?)? {
            Parent::Unknown => return Err(broken("there is no such job")),
            Parent::Unfinished { seq: parent_seq } => {
                dependencies::add(tx, parent_seq, seq, true)?;
                self.waits.entry(seq).or_default().push(parent_seq);
            }
            Parent::Finished { seq: parent_seq, end } => {
                dependencies::add(tx, parent_seq, seq, false)?;
                self.finished_parents.entry(seq).or_default().push(end);
            }
        }
        Ok(())
    }

    fn unique_key(&self, tx: &Tx<'_>, line: &UniqueKeyLine) -> Result<(), ImportError> {
        if self.imported.skipped.contains(&line.job) {
            return Ok(());
        }
        let job = find_job(tx, &line.job)?;
        // A job that was cancelled on import no longer holds it.
        if line.held_until.is_none() && job.life.state.name().is_finished() {
            return Ok(());
        }
        if let Some(holder) = unique_keys::holder(tx, &line.key)? {
            return Err(ImportError::KeyTaken { key: line.key.clone(), holder: holder.to_string() });
        }
        // An expired holder's row may still exist.
        let replace = "on conflict (key) do update set seq = excluded.seq, held_until = excluded.held_until";
        insert(tx, "unique_keys", line, &[("seq", job.seq.to_value())], replace)
            .map_err(invalid(format_args!("the unique key of `{}`", line.job)))
    }

    /// If some jobs already exist, the events that concern no job were imported with them.
    fn event(&self, tx: &Tx<'_>, line: &EventLine) -> Result<(), ImportError> {
        let skipped = &self.imported.skipped;
        let seq = match &line.job {
            Some(job) if skipped.contains(job) => return Ok(()),
            Some(job) => Some(find_job(tx, job)?.seq),
            None if !skipped.is_empty() => return Ok(()),
            None => None,
        };
        Ok(insert(tx, "events", line, &[("seq", seq.to_value())], "")?)
    }

    fn hook(&mut self, tx: &Tx<'_>, mut line: HookLine) -> Result<(), ImportError> {
        let name: HookName = parse_name("hook", &line.name)?;
        let find_id = || tx.value::<HookKey>("select id from hooks where name = :name", named! { name });
        let is_new = find_id()?.is_none();
        if is_new {
            if let Some(queue) = &line.queue {
                queues::id(tx, &parse_name::<QueueName>("queue", queue)?)?;
            }
            line.environment_id = self.environment(line.environment_id)?;
            let what = format_args!("hook `{name}`");
            insert(tx, "hooks", &line, &[], "").map_err(invalid(what))?;
            // An unreadable row would break every later use of hooks.
            hooks::list(tx).map_err(invalid(what))?;
        }
        self.hooks.insert(line.name, find_id()?.filter(|_| is_new));
        Ok(())
    }

    /// An existing hook keeps its own deliveries, so repeating an import duplicates nothing.
    fn delivery(&self, tx: &Tx<'_>, line: &DeliveryLine) -> Result<(), ImportError> {
        let what = format_args!("delivery `{}`", line.name);
        let Some(hook) = self.hooks.get(&line.hook) else {
            return Err(malformed(what, format_args!("there is no line for the hook `{}`", line.hook)));
        };
        if let Some(hook_id) = hook {
            serde_json::from_str::<Map<String, serde_json::Value>>(&line.payload)
                .map_err(|error| malformed(what, error))?;
            let columns = [("hook_id", hook_id.to_value()), ("due_at", line.due_at.to_value())];
            insert(tx, "deliveries", line, &columns, "").map_err(invalid(what))?;
        }
        Ok(())
    }

    /// The checks and changes that need all jobs.
    fn finish(&self, tx: &mut Tx<'_>) -> Result<(), ImportError> {
        if let Some((job, _)) = self.blocked.iter().find(|(_, blocked)| blocked.left > 0) {
            let why = "the lines for what it waits for are missing";
            return Err(malformed(format_args!("job `{job}`"), why));
        }
        if let Some(seq) = self.find_cycle() {
            let job = row::by_seq(tx, seq)?.id;
            let why = "it waits for itself through its dependencies";
            return Err(malformed(format_args!("job `{job}`"), why));
        }
        for seq in &self.dependents {
            dependencies::add_missing_links(tx, *seq)?;
        }
        for (seq, finished) in &self.finished_parents {
            dependencies::unblock(tx, &row::by_seq(tx, *seq)?, finished)?;
        }
        // The settings must be valid together, and an unreadable queue would break every later use of it.
        settings::load(tx)?;
        queues::list(tx).map(drop).map_err(invalid("a queue"))
    }

    /// A job that waits for itself. No job that existed before waits for an imported one.
    fn find_cycle(&self) -> Option<JobSeq> {
        let jobs: Vec<JobSeq> = self.waits.keys().copied().collect();
        let parents: Vec<Vec<usize>> = (self.waits.values())
            .map(|parents| parents.iter().filter_map(|seq| jobs.binary_search(seq).ok()).collect())
            .collect();
        find_cycle_in(&parents).map(|at| jobs[at])
    }
}

fn queue(tx: &Tx<'_>, line: &QueueLine) -> Result<(), ImportError> {
    let name: QueueName = parse_name("queue", &line.name)?;
    insert(tx, "queues", line, &[], KEEP_NAME).map_err(invalid(format_args!("queue `{name}`")))
}

/// An existing batch gets the jobs too. Its counters follow from its jobs, and its completion is updated at the end, as
/// after any other change.
fn batch(tx: &mut Tx<'_>, line: &BatchLine) -> Result<(), ImportError> {
    let name: BatchName = parse_name("batch", &line.name)?;
    insert(tx, "batches", line, &[], KEEP_NAME).map_err(invalid(format_args!("batch `{name}`")))?;
    batches::id(tx, &name)?;
    Ok(())
}

/// Inserts the row of a line, with columns that are not in the line.
pub(super) fn insert(
    tx: &Tx<'_>,
    table: &str,
    line: &impl Record,
    more: &[ColumnValue<'_>],
    on_conflict: &str,
) -> Result<()> {
    let values = [&line.values(), more].concat();
    let parameters: Vec<Value<'_>> = values.iter().map(|(_, value)| *value).collect();
    tx.execute(&record::insert(table, &values, on_conflict), Params::Positional(&parameters))?;
    Ok(())
}

fn find_job(tx: &Tx<'_>, job: &str) -> Result<JobRow, ImportError> {
    let found = row::by_id(tx, &parse_name("job", job)?)?;
    found.ok_or_else(|| malformed(format_args!("a line for job `{job}`"), "there is no such job"))
}

fn parse_name<T: FromStr<Err = NameError>>(what: &str, name: &str) -> Result<T, ImportError> {
    name.parse().map_err(|error| malformed(format_args!("{what} `{name}`"), error))
}

/// A row that violates a constraint or cannot be read is the fault of its line, not of the store.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other error is the store's")]
fn invalid(what: impl Display) -> impl FnOnce(StoreError) -> ImportError {
    move |error| match error {
        StoreError::Corrupt { source } => malformed(what, source),
        StoreError::Malformed { what: part, detail } => malformed(what, format_args!("{part}: {detail}")),
        error => error.into(),
    }
}

fn malformed(what: impl Display, why: impl Display) -> ImportError {
    ImportError::Malformed { what: what.to_string(), why: why.to_string() }
}

//! Candidates from the store.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::Duration;

use domain::hook::HookEvent;
use domain::job::Job;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use ops::home::location::{LocationArgs, locate};
use ops::home::open::glance;
use ops::jobs::dlq;
use store::{JobFilter, Page, PageStart, Phase, Result, Store};

use super::Candidate;
use super::answer::MAX_CANDIDATES;
use super::subject::Stored;

/// A person waits for the answer. A store on a disk that hangs gives none; one that is locked is given up earlier.
const TIME_LIMIT: Duration = Duration::from_secs(3);
/// Jobs that are offered at once.
const MAX_JOBS: usize = 100;
/// How much of a command is shown.
const MAX_LABEL_CHARS: usize = 60;

/// Reads the store at a location. `None` if it cannot be read in time.
pub(crate) fn ask<T: Send + 'static>(
    location: LocationArgs,
    question: impl FnOnce(&dyn Store) -> Result<T> + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    // This thread is not joined: a disk may hang, and it ends with the process, which is about to exit.
    std::thread::spawn(move || {
        let store = locate(&location).ok().and_then(|location| glance(&location).ok());
        let found = store.and_then(|store| question(store.as_ref()).ok());
        // The receiver has gone if the time limit has passed.
        let _ = sender.send(found);
    });
    receiver.recv_timeout(TIME_LIMIT).ok().flatten()
}

/// The names in the store that begin with `typed`.
pub(crate) fn candidates(store: &dyn Store, subject: Stored, typed: &str) -> Result<Vec<Candidate>> {
    let mut found = match subject {
        Stored::Job(states) => jobs(store, states, typed)?,
        Stored::Queue => queues(store)?,
        Stored::Batch => batches(store)?,
        Stored::Schedule => schedules(store)?,
        Stored::Hook => hooks(store)?,
        Stored::Worker => workers(store)?,
        Stored::Tag => tags(store)?,
        Stored::Cause => causes(store)?,
    };
    found.retain(|candidate| candidate.value.starts_with(typed));
    Ok(found)
}

/// Jobs by number, the latest first, and by id once the beginning of an id was typed.
fn jobs(store: &dyn Store, states: &[StateName], typed: &str) -> Result<Vec<Candidate>> {
    let filter = JobFilter {
        phases: states.iter().map(|state| Phase::State(*state)).collect(),
        ..JobFilter::default()
    };
    let (mark, digits) = typed.strip_prefix('%').map_or(("", typed), |digits| ("%", digits));
    let mut found = Vec::new();
    if digits.is_empty() {
        for job in store.list(&filter, &Page { limit: MAX_JOBS, after: None })? {
            found.push(by_number(mark, &job));
        }
    } else if let Ok(number) = digits.parse() {
        for job in with_digits(store, &filter, number)? {
            found.push(by_number(mark, &job));
        }
    }
    if mark.is_empty()
        && let Ok(prefix) = typed.parse::<JobId>()
    {
        let is_number = typed.bytes().all(|byte| byte.is_ascii_digit());
        for id in store.ids_with_prefix(&prefix, MAX_JOBS)? {
            // A number is easier to type than a generated id, which may begin with the same digits.
            let job = if is_number && id.is_generated() { None } else { store.find(&id)? };
            let job = job.filter(|job| states.is_empty() || states.contains(&job.life.state.name()));
            found.extend(job.map(|job| Candidate::new(id.as_str(), about(&job, job.label()))));
        }
    }
    Ok(found)
}

/// The jobs whose numbers begin with these digits: 12, then 120 to 129, then 1200 to 1299, from high to low.
fn with_digits(store: &dyn Store, filter: &JobFilter, digits: u64) -> Result<Vec<Job>> {
    let newest = store.list(&JobFilter::default(), &Page { limit: 1, after: None })?;
    let newest = newest.first().map_or(0, |job| job.number);
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let (mut low, mut high) = (digits, digits);
    while (1..=newest).contains(&low) {
        ranges.push((low, high));
        (low, high) = (low.saturating_mul(10), high.saturating_mul(10).saturating_add(9));
    }
    let mut found = Vec::new();
    for (low, high) in ranges.into_iter().rev() {
        let from = PageStart::Position {
            number: high.saturating_add(1),
            priority: 0,
            due_at: Timestamp::from_millis(0),
        };
        let page = Page { limit: MAX_JOBS - found.len(), after: Some(from) };
        found.extend(store.list(filter, &page)?.into_iter().take_while(|job| job.number >= low));
        if found.len() >= MAX_JOBS {
            break;
        }
    }
    Ok(found)
}

fn by_number(mark: &str, job: &Job) -> Candidate {
    let label = match job.name() {
        None if !job.id.is_generated() => format!("{}: {}", job.id, job.command),
        Some(_) | None => job.label().to_owned(),
    };
    Candidate::new(format!("{mark}{}", job.number), about(job, &label))
}

/// A command is text of other people: it must not control the terminal.
fn about(job: &Job, label: &str) -> String {
    let label: String = label.chars().take(MAX_LABEL_CHARS).collect();
    format!("{}  {}", job.life.state.name().name(), printable(&label))
}

fn queues(store: &dyn Store) -> Result<Vec<Candidate>> {
    let queues = store.queues()?.into_iter().map(|queue| {
        let counts = queue.counts.iter().map(|(state, count)| format!("{count} {}", state.name()));
        let paused = queue.paused.as_ref().map(|_| "paused".to_owned());
        let about: Vec<String> = paused.into_iter().chain(counts).collect();
        Candidate::new(queue.name.as_str(), about.join(", "))
    });
    Ok(queues.collect())
}

fn batches(store: &dyn Store) -> Result<Vec<Candidate>> {
    let batches = store.batches(MAX_CANDIDATES)?.into_iter().map(|batch| {
        let about = format!("{} of {} jobs finished", batch.finished(), batch.total());
        Candidate::new(batch.name.as_str(), about)
    });
    Ok(batches.collect())
}

fn schedules(store: &dyn Store) -> Result<Vec<Candidate>> {
    let schedules = store.schedules()?.into_iter().map(|(schedule, _)| {
        let when = schedule.when.expression();
        let command = schedule.job.command.as_deref().unwrap_or_default();
        let command: String = command.chars().take(MAX_LABEL_CHARS).collect();
        Candidate::new(schedule.name.as_str(), format!("{when}  {}", printable(&command)))
    });
    Ok(schedules.collect())
}

fn hooks(store: &dyn Store) -> Result<Vec<Candidate>> {
    let hooks = store.hooks()?.into_iter().map(|hook| {
        let events: Vec<String> = hook.trigger.events.iter().map(HookEvent::name_in_flags).collect();
        Candidate::new(hook.name.as_str(), format!("on {}", events.join(", ")))
    });
    Ok(hooks.collect())
}

fn workers(store: &dyn Store) -> Result<Vec<Candidate>> {
    let workers = store.workers()?.into_iter().map(|worker| {
        let about = format!("{}, pid {} on {}", worker.state.name(), worker.pid, printable(&worker.host));
        Candidate::new(worker.id.as_str(), about)
    });
    Ok(workers.collect())
}

/// The tags of the latest jobs.
fn tags(store: &dyn Store) -> Result<Vec<Candidate>> {
    let latest = store.list(&JobFilter::default(), &Page { limit: MAX_CANDIDATES, after: None })?;
    let tags: BTreeSet<String> = latest.into_iter().flat_map(|job| job.tags).collect();
    Ok(tags.into_iter().map(|tag| Candidate::new(tag, "")).collect())
}

fn causes(store: &dyn Store) -> Result<Vec<Candidate>> {
    let causes = dlq::causes(store, None, MAX_CANDIDATES)?.into_iter().map(|cause| {
        let message: String = cause.message.chars().take(MAX_LABEL_CHARS).collect();
        Candidate::new(cause.id.to_string(), format!("{} dead  {}", cause.count, printable(&message)))
    });
    Ok(causes.collect())
}

//! The thread that carries out orders, one after the other, each on a connection of its own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use super::running_line::RunningLine;
use super::{Action, ActionResult, NOTHING_IS_CHANGED, word};
use crate::data::{Message, Waker};
use domain::job::graph::Direction;
use domain::text::counts::{grouped, jobs};
use domain::text::shell::quote_words;
use domain::values::clock::TimeFormat;
use domain::values::name::JobId;
use ops::OpError;
use ops::home::location::Location;
use ops::home::open::open_existing;
use ops::jobs::bulk::{BulkChange, bulk};
use ops::jobs::change::{Verb, change_ids, remove_logs, remove_orphaned_logs};
use ops::jobs::explain::explain;
use ops::jobs::list::filter_text::FilterText;
use store::{JobFilter, Pause, QueueUpdate, Store, Update};

/// A dry run counts for at most this long.
const COUNT_BUDGET: Duration = Duration::from_secs(2);
/// A larger graph is cut.
const MAX_GRAPH_NODES: usize = 200;

/// The acting thread, and the line that runs beside it. Dropping it ends the line, and joins the thread after its order.
#[derive(Debug)]
pub(crate) struct Actor {
    options: ActorOptions,
    waker: Waker,
    orders: Option<Sender<Action>>,
    thread: Option<JoinHandle<()>>,
    line: Option<RunningLine>,
}

/// What an actor needs to know.
#[derive(Clone, Debug)]
pub(crate) struct ActorOptions {
    pub(crate) location: Location,
    pub(crate) is_read_only: bool,
    /// Who the events name.
    pub(crate) by: String,
    /// The flags that lead a line of the palette to the same queue.
    pub(crate) program_flags: Vec<String>,
}

impl Actor {
    pub(crate) fn start(options: ActorOptions, waker: Waker) -> io::Result<Self> {
        let (orders, inbox): (Sender<Action>, Receiver<Action>) = channel();
        let (own_options, own_waker) = (options.clone(), waker.try_clone()?);
        let work = move || {
            for action in inbox {
                own_waker.send(Message::Action(perform(&own_options, &action)));
            }
        };
        let thread = thread::Builder::new().name("actor".to_owned()).spawn(work)?;
        Ok(Self { options, waker, orders: Some(orders), thread: Some(thread), line: None })
    }

    pub(crate) fn order(&self, action: Action) {
        if let Some(orders) = &self.orders {
            // An error means that the thread panicked, and its message has been printed.
            let _ = orders.send(action);
        }
    }

    /// Runs a line of the palette. The state orders the next one only after the result of this one.
    pub(crate) fn run_line(&mut self, line: String) {
        let started = self.waker.try_clone();
        let started = started.and_then(|waker| RunningLine::start(self.options.clone(), line, waker));
        match started {
            Ok(line) => self.line = Some(line),
            Err(error) => {
                let why = format!("queuectl cannot be started ({error})");
                self.waker.send(Message::LineEnded(ActionResult::Failed(why)));
            }
        }
    }

    pub(crate) fn end_line(&self) {
        if let Some(line) = &self.line {
            line.end();
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        drop(self.line.take());
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn perform(options: &ActorOptions, action: &Action) -> ActionResult {
    if options.is_read_only && !action.is_reading() {
        return ActionResult::Failed(NOTHING_IS_CHANGED.to_owned());
    }
    let done = open_existing(&options.location).and_then(|store| on_store(options, store.as_ref(), action));
    done.unwrap_or_else(|error| ActionResult::Failed(ops::error::chain(&error)))
}

fn on_store(options: &ActorOptions, store: &dyn Store, action: &Action) -> Result<ActionResult, OpError> {
    let by = &options.by;
    let pause = || Pause { by: by.clone(), reason: None };
    let done = |what: String, command: String| ActionResult::Done { what, command: Some(command) };
    Ok(match action {
        Action::Jobs { verb, ids } => change_jobs(options, store, *verb, ids)?,
        Action::Count { verb, filter } => count(store, *verb, filter)?,
        Action::Matching { verb, filter } => change_matching(options, store, *verb, filter)?,
        Action::PauseQueue(name) => {
            ops::queues::pause(store, name, &pause())?;
            done(format!("queue {name} is paused"), format!("queuectl queue pause {name}"))
        }
        Action::ResumeQueue(name) => {
            ops::queues::resume(store, name, by)?;
            done(format!("queue {name} is resumed"), format!("queuectl queue resume {name}"))
        }
        Action::SetConcurrency(name, limit) => {
            let concurrency = limit.map_or(Update::Clear, Update::Set);
            ops::queues::set(store, name, &QueueUpdate { concurrency, ..QueueUpdate::default() }, by)?;
            let limit = limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
            let what = format!("queue {name}: concurrency {limit}");
            done(what, format!("queuectl queue set {name} --concurrency {limit}"))
        }
        Action::PauseSchedule(name) => {
            ops::schedule::set_pause(store, name, Some(&pause()), by)?;
            done(format!("schedule {name} is paused"), format!("queuectl schedule pause {name}"))
        }
        Action::ResumeSchedule(name) => {
            ops::schedule::set_pause(store, name, None, by)?;
            done(format!("schedule {name} is resumed"), format!("queuectl schedule resume {name}"))
        }
        Action::Explain(id) => explained(store, id)?,
        Action::Graph(id) => graph(store, id)?,
    })
}

/// `retried`, `cancelled`
fn past(verb: Verb) -> &'static str {
    match verb {
        Verb::Cancel { .. } => "cancelled",
        Verb::Pause => "paused",
        Verb::Resume => "resumed",
        Verb::Retry | Verb::RetryInOrder => "retried",
        Verb::Remove => "removed",
    }
}

fn change_jobs(
    options: &ActorOptions,
    store: &dyn Store,
    verb: Verb,
    ids: &[JobId],
) -> Result<ActionResult, OpError> {
    let results = change_ids(store, verb, ids, &options.by);
    if let Some(error) = results.stopped {
        return Err(error);
    }
    let (changed, refused): (Vec<_>, Vec<_>) = results.jobs.into_iter().partition(Result::is_ok);
    let changed: Vec<_> = changed.into_iter().flatten().map(|changed| changed.job).collect();
    if verb == Verb::Remove {
        remove_logs(&options.location.home, changed.iter());
    }
    let first_error = refused.into_iter().find_map(Result::err);
    let names: Vec<String> = changed.iter().map(domain::job::Job::handle).collect();
    let (Some(first), command) = (names.first(), format!("queuectl {} {}", word(verb), quote_words(&names)))
    else {
        return Err(first_error.unwrap_or_else(|| OpError::NoSuchJob(ids[0].clone())));
    };
    let what = if names.len() == 1 { format!("job {first}") } else { jobs(names.len() as u64) };
    let refused = first_error.map_or_else(String::new, |error| format!("; {}", ops::error::chain(&error)));
    Ok(ActionResult::Done { what: format!("{what} {}{refused}", past(verb)), command: Some(command) })
}

/// The filter, in states that the verb can change.
fn restricted(store: &dyn Store, verb: Verb, filter: &FilterText) -> Result<JobFilter, OpError> {
    let mut filter = filter.resolve(store)?;
    if filter.phases.is_empty() {
        filter.phases = BulkChange::from(verb).default_phases();
    } else {
        let able: Vec<_> = BulkChange::from(verb).changeable().collect();
        filter.phases.retain(|phase| able.contains(phase));
    }
    Ok(filter)
}

fn count(store: &dyn Store, verb: Verb, text: &FilterText) -> Result<ActionResult, OpError> {
    let filter = restricted(store, verb, text)?;
    if filter.phases.is_empty() {
        return Ok(ActionResult::Failed(format!("no job that matches can be {}", past(verb))));
    }
    let found = store.count(&filter, Some(COUNT_BUDGET))?;
    if found.count == 0 {
        return Ok(ActionResult::Failed(format!("no job that matches can be {}", past(verb))));
    }
    Ok(ActionResult::Counted {
        verb,
        filter: text.clone(),
        count: found.count,
        is_exact: found.is_exact,
        by_state: found.by_state.into_iter().collect(),
    })
}

fn change_matching(
    options: &ActorOptions,
    store: &dyn Store,
    verb: Verb,
    text: &FilterText,
) -> Result<ActionResult, OpError> {
    let filter = restricted(store, verb, text)?;
    let tally = bulk(store, verb, &filter, &options.by, |_| {}, || false)?;
    if verb == Verb::Remove {
        remove_orphaned_logs(store, &options.location.home)?;
    }
    let skipped =
        if tally.skipped == 0 { String::new() } else { format!(", {} skipped", grouped(tally.skipped)) };
    let what = format!("{} {}{skipped}", jobs(tally.done), past(verb));
    let states: Vec<&str> = filter.phases.iter().map(|phase| phase.name()).collect();
    let flags = text.flags().map(|flags| {
        if text.phases().is_empty() { format!("--state {} {flags}", states.join(",")) } else { flags }
    });
    let command = flags.map(|flags| format!("queuectl {} {}", word(verb), flags.trim()));
    Ok(ActionResult::Done { what, command })
}

fn explained(store: &dyn Store, id: &JobId) -> Result<ActionResult, OpError> {
    let found = explain(store, id, &TimeFormat::Short(sys::zone::local()))?;
    let mut lines: Vec<String> =
        found.explanation.reasons.iter().map(|reason| format!("- {}", reason.message)).collect();
    if let Some(at) = found.explanation.probable_start {
        let wait = domain::values::span::rough_span(at.since(found.now));
        lines.push(format!("It should start in about {wait}."));
    }
    let state = found.job.life.state.name().name();
    Ok(ActionResult::Text { title: format!("job {} is {state}", found.job.handle()), lines })
}

fn graph(store: &dyn Store, id: &JobId) -> Result<ActionResult, OpError> {
    let graph = store.graph(id, MAX_GRAPH_NODES)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let mut lines = Vec::new();
    for (title, direction) in [("depends on", Direction::Up), ("needed by", Direction::Down)] {
        lines.push(format!("{title}:"));
        let tree = graph.tree(direction);
        if tree.len() <= 1 {
            lines.push("  no job".to_owned());
        }
        for branch in tree.iter().skip(1) {
            let node = &graph.nodes[branch.node];
            let name = node.number.map_or_else(|| node.id.to_string(), |number| number.to_string());
            let state = node.state.map_or("removed", domain::job::life::StateName::name);
            lines.push(format!("{:indent$}{name}  {state}", "", indent = branch.more.len() * 2));
        }
    }
    if graph.is_cut {
        lines.push("(there are more)".to_owned());
    }
    Ok(ActionResult::Text { title: "dependencies".to_owned(), lines })
}

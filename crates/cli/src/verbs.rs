//! The verbs of the command line. A verb is added by one row of [`GROUPS`].

pub(crate) mod inspect;
pub(crate) mod jobs;
pub(crate) mod manage;
pub(crate) mod upkeep;
pub(crate) mod workers;

use sys::program::ExitCode;

use clap::{ArgMatches, Command};

#[cfg(feature = "tui")]
use self::inspect::top;
use self::inspect::{
    events, explain, graph, history, list, logs, metrics, show, status, summary, upcoming, wait,
};
use self::jobs::{batch, enqueue, run, schedule};
use self::manage::{cancel, dlq, edit, pause, remove, resume, retry};
use self::upkeep::{
    backup, bench, complete, completions, doctor, export, import, init, man, prune, restore, selftest, store,
};
#[cfg(feature = "dashboard")]
use self::workers::dashboard;
use self::workers::{config, hook, queue, service, worker};
use super::context::Context;
use super::failure::Failure;

/// Verbs that stand together in the help.
pub(super) struct Group {
    /// `None` hides the verbs.
    pub(super) heading: Option<&'static str>,
    pub(super) verbs: &'static [&'static dyn Verb],
}

/// The verb that stands for none.
pub(super) const NO_VERB: &str = "__summary";

/// Every verb, in the order of the help. The hidden ones are [`NO_VERB`] and processes that queuectl starts itself.
pub(super) const GROUPS: [Group; 6] = [
    Group {
        heading: Some("Jobs"),
        verbs: &[
            &Row("enqueue", Value(enqueue::run)),
            &Row("run", Value(run::run)),
            &Row("schedule", Value(schedule::run)),
            &Row("batch", Value(batch::run)),
        ],
    },
    Group {
        heading: Some("Inspect"),
        verbs: &[
            &Row("status", Reference(status::run)),
            #[cfg(feature = "tui")]
            &Row("top", Reference(top::run)),
            &Row("list", Reference(list::run)),
            &Row("show", Reference(show::run)),
            &Row("explain", Reference(explain::run)),
            &Row("logs", Reference(logs::run)),
            &Row("upcoming", Reference(upcoming::run)),
            &Row("wait", Reference(wait::run)),
            &Row("graph", Reference(graph::run)),
            &Row("events", Reference(events::run)),
            &Row("history", Reference(history::run)),
            &Row("metrics", Reference(metrics::run)),
        ],
    },
    Group {
        heading: Some("Manage"),
        verbs: &[
            &Row("cancel", Reference(cancel::run)),
            &Row("pause", Reference(pause::run)),
            &Row("resume", Reference(resume::run)),
            &Row("retry", Reference(retry::run)),
            &Row("edit", Value(edit::run)),
            &Row("remove", Reference(remove::run)),
            &Row("dlq", Value(dlq::run)),
        ],
    },
    Group {
        heading: Some("Workers and settings"),
        verbs: &[
            &Row("worker", Reference(worker::run)),
            &Row("service", Reference(service::run)),
            &Row("queue", Value(queue::run)),
            &Row("config", Value(config::run)),
            &Row("hook", Value(hook::run)),
            #[cfg(feature = "dashboard")]
            &Row("dashboard", Reference(dashboard::run)),
        ],
    },
    Group {
        heading: Some("Upkeep"),
        verbs: &[
            &Row("init", Reference(init::run)),
            &Row("doctor", Reference(doctor::run)),
            &Row("prune", Reference(prune::run)),
            &Row("backup", Reference(backup::run)),
            &Row("restore", Reference(restore::run)),
            &Row("export", Reference(export::run)),
            &Row("import", Reference(import::run)),
            &Row("store", Reference(store::run)),
            &Row("selftest", Reference(selftest::run)),
            &Row("bench", Reference(bench::run)),
            &Row("completions", Reference(completions::run)),
            &Row("man", Reference(man::run)),
        ],
    },
    Group {
        heading: None,
        verbs: &[
            &Row(NO_VERB, Reference(summary::run)),
            &Row("__supervisor", Value(worker::run_supervisor)),
            &Row("__worker", Value(worker::run_worker)),
            &Row("__post", Reference(hook::post)),
            &Row("__act", Value(selftest::act)),
            &Row("__linger", Value(selftest::linger)),
            &Row("__tied", Reference(selftest::become_tied)),
            &Row("__complete", Reference(complete::run)),
        ],
    },
];

/// A verb as the parser and the help see it, whatever its arguments are.
pub(super) trait Verb {
    fn name(&self) -> &'static str;

    /// The verb with all its arguments, as clap wants them described.
    fn describe(&self) -> Command;

    fn run(&self, arguments: ArgMatches, context: &Context) -> Result<ExitCode, Failure>;
}

/// The verb with this name.
pub(super) fn find(name: &str) -> Option<&'static dyn Verb> {
    GROUPS.iter().flat_map(|group| group.verbs).find(|verb| verb.name() == name).copied()
}

/// A name, and the function that runs the verb, whose first argument says what the command line takes.
struct Row<A, R>(&'static str, Run<A, R>);

enum Run<A, R> {
    Value(fn(A, &Context) -> Result<R, Failure>),
    Reference(fn(&A, &Context) -> Result<R, Failure>),
}
use Run::{Reference, Value};

/// The result of a verb: an exit code, or nothing if success is the only one.
trait Outcome {
    fn code(self) -> ExitCode;
}

impl Outcome for () {
    fn code(self) -> ExitCode {
        ExitCode::SUCCESS
    }
}

impl Outcome for ExitCode {
    fn code(self) -> ExitCode {
        self
    }
}

impl<A: clap::Args, R: Outcome> Verb for Row<A, R> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn describe(&self) -> Command {
        A::augment_args(Command::new(self.0))
    }

    fn run(&self, mut arguments: ArgMatches, context: &Context) -> Result<ExitCode, Failure> {
        let arguments =
            A::from_arg_matches_mut(&mut arguments).map_err(|error| Failure::from_usage(&error))?;
        let outcome = match self.1 {
            Value(run) => run(arguments, context),
            Reference(run) => run(&arguments, context),
        };
        outcome.map(Outcome::code)
    }
}

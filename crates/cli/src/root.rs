//! The root of the command line: the verbs, their shared flags, and the exit code.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::context::{Context, notes, results};
use super::failure::{Exit, Failure, report};
use super::render::overview;
use super::verbs::inspect::{events, explain, graph, list, logs, show, status, wait};
use super::verbs::jobs::{batch, enqueue, run as run_verb, schedule};
use super::verbs::manage::{cancel, dlq, edit, remove, retry};
use super::verbs::upkeep::{backup, completions, doctor, export, import, init, prune, restore, selftest};
use super::verbs::workers::{config, hook, queue, worker};
use sys::signal;

/// A durable job queue for shell commands
#[derive(Debug, Parser)]
#[command(
    name = "queuectl",
    version,
    arg_required_else_help = true,
    after_help = "Examples:
  queuectl run -- make test
  queuectl enqueue -- convert \"a b.png\" out.jpg
  queuectl enqueue '{\"id\":\"job1\",\"command\":\"sleep 2\"}'
  ls *.png | queuectl enqueue --batch small --each - -- convert {} small/{}
  queuectl schedule add nightly --cron \"0 3 * * *\" -- make backup
  queuectl worker start --concurrency 4
  queuectl status
  queuectl explain job1
  queuectl list --state failed"
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Flags of every verb.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(super) struct Global {
    /// The queue's folder [default: the nearest .queuectl in this or a parent directory, else ~/.queuectl]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(super) home: Option<PathBuf>,
    /// The queue's database [default: queue.db in the queue's folder]
    #[arg(long, global = true, value_name = "PATH", help_heading = "Global options")]
    pub(super) store: Option<OsString>,
    /// Print JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) json: bool,
    /// Print only errors: no results, hints or progress
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(super) quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub(super) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Enqueue(Box<enqueue::Args>),
    Run(Box<run_verb::Args>),
    List(list::Args),
    Show(show::Args),
    Explain(explain::Args),
    Logs(logs::Args),
    Status(status::Args),
    Wait(wait::Args),
    Cancel(cancel::Args),
    Retry(Box<retry::Args>),
    Edit(Box<edit::Args>),
    Remove(remove::Args),
    Graph(graph::Args),
    Dlq(dlq::Args),
    Queue(queue::Args),
    Batch(batch::Args),
    Worker(worker::Args),
    Schedule(Box<schedule::Args>),
    Hook(hook::Args),
    #[command(name = "__supervisor", hide = true)]
    Supervisor(worker::SupervisorArgs),
    #[command(name = "__worker", hide = true)]
    WorkerProcess(worker::WorkerArgs),
    #[command(name = "__post", hide = true)]
    Post(hook::PostArgs),
    #[command(name = "__act", hide = true)]
    Act(selftest::ActArgs),
    #[command(name = "__linger", hide = true)]
    Linger(selftest::LingerArgs),
    #[command(name = "__tied", hide = true)]
    Tied(selftest::TiedArgs),
    Events(events::Args),
    Config(config::Args),
    Init(init::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Prune(prune::Args),
    Export(export::Args),
    Import(import::Args),
    Doctor(doctor::Args),
    Selftest(selftest::Args),
    Completions(completions::Args),
}

/// Building clap's description of every verb and flag takes a large part of the time of one `enqueue`, so its plain
/// forms are parsed by hand. Everything else, including help and errors, goes through clap.
fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    match plain_enqueue(arguments) {
        Some(cli) => Ok(cli),
        None => Cli::from_arg_matches(&overview::grouped(Cli::command()).try_get_matches_from(arguments)?),
    }
}

/// Parses `queuectl [--home DIR] [--json] [-q] enqueue -- WORD…`, or the same with one job as JSON instead of words.
fn plain_enqueue(arguments: &[OsString]) -> Option<Cli> {
    let mut global = Global::default();
    let mut seen_verb = false;
    let mut words = arguments.iter().skip(1).map(|argument| argument.to_str());
    loop {
        match words.next()?? {
            "enqueue" if !seen_verb => seen_verb = true,
            "--home" if global.home.is_none() => global.home = Some(words.next()??.into()),
            "--json" if !global.json => global.json = true,
            "-q" if !global.quiet => global.quiet = true,
            "--" if seen_verb => {
                let words: Option<Vec<String>> = words.map(|word| word.map(str::to_owned)).collect();
                let args = enqueue::Args::of_words(words.filter(|words| !words.is_empty())?);
                return Some(Cli { global, verb: Verb::Enqueue(Box::new(args)) });
            }
            json if seen_verb && json.starts_with(['{', '[']) && words.next().is_none() => {
                let args = enqueue::Args::of_json(json.to_owned());
                return Some(Cli { global, verb: Verb::Enqueue(Box::new(args)) });
            }
            _ => return None,
        }
    }
}

/// Parses the arguments, runs the verb, and reports its failure.
pub(super) fn main() -> ExitCode {
    signal::end_quietly_on_closed_pipe();
    signal::survive_file_limit();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match parse(&arguments) {
        Ok(cli) => {
            let context = Context::new(&cli.global);
            let result = run(cli.verb, &context);
            context.leave();
            result.unwrap_or_else(|failure| report(&failure, cli.global.json, cli.global.color))
        }
        Err(error) => answer_unparsed(&error, asks_for_json(&arguments), color_asked_for(&arguments)),
    }
}

/// Prints help, the version or clap's error. Help that was printed because the verb is missing still exits with an error.
fn answer_unparsed(error: &clap::Error, as_json: bool, color: ColorChoice) -> ExitCode {
    let no_verb = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if no_verb && as_json {
        return report(&Failure::usage("no command given"), as_json, color);
    }
    let text = error.render().ansi().to_string();
    // An error here means that the stream is closed.
    if no_verb {
        let _ = notes(color).write_all(text.as_bytes());
        return Exit::Usage.into();
    }
    if error.use_stderr() {
        return report(&Failure::from_usage(error), as_json, color);
    }
    let _ = results(color).write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn run(verb: Verb, context: &Context) -> Result<ExitCode, Failure> {
    match verb {
        Verb::Enqueue(args) => enqueue::run(*args, context),
        Verb::Run(args) => run_verb::run(*args, context),
        Verb::List(args) => list::run(&args, context),
        Verb::Show(args) => show::run(&args, context),
        Verb::Explain(args) => explain::run(&args, context),
        Verb::Logs(args) => logs::run(&args, context),
        Verb::Status(args) => status::run(&args, context),
        Verb::Wait(args) => wait::run(&args, context),
        Verb::Cancel(args) => cancel::run(&args, context),
        Verb::Retry(args) => retry::run(&args, context),
        Verb::Edit(args) => edit::run(*args, context),
        Verb::Remove(args) => remove::run(&args, context),
        Verb::Graph(args) => graph::run(&args, context),
        Verb::Dlq(args) => dlq::run(args, context),
        Verb::Queue(args) => queue::run(&args, context),
        Verb::Batch(args) => batch::run(args, context),
        Verb::Worker(args) => worker::run(&args, context),
        Verb::Schedule(args) => schedule::run(*args, context),
        Verb::Hook(args) => hook::run(args, context),
        Verb::Post(args) => hook::post(&args, context),
        Verb::Supervisor(args) => worker::run_supervisor(args, context),
        Verb::WorkerProcess(args) => worker::run_worker(args, context),
        Verb::Act(args) => selftest::act(args),
        Verb::Linger(args) => selftest::linger(args),
        Verb::Tied(args) => selftest::become_tied(&args),
        Verb::Events(args) => events::run(&args, context),
        Verb::Config(args) => config::run(args, context),
        Verb::Init(args) => init::run(&args, context),
        Verb::Backup(args) => backup::run(&args, context),
        Verb::Restore(args) => restore::run(&args, context),
        Verb::Export(args) => export::run(&args, context),
        Verb::Import(args) => import::run(&args, context),
        Verb::Prune(args) => prune::run(&args, context),
        Verb::Doctor(args) => doctor::run(&args, context),
        Verb::Selftest(args) => selftest::run(&args, context),
        Verb::Completions(args) => completions::run(&args),
    }
}

/// The value of `--color`, for arguments that could not be parsed.
fn color_asked_for(arguments: &[OsString]) -> ColorChoice {
    let words: Vec<&str> =
        arguments.iter().take_while(|argument| *argument != "--").filter_map(|word| word.to_str()).collect();
    let after_flag = words.windows(2).find_map(|pair| (pair[0] == "--color").then_some(pair[1]));
    let value = words.iter().find_map(|word| word.strip_prefix("--color=")).or(after_flag);
    value.and_then(|value| value.parse().ok()).unwrap_or(ColorChoice::Auto)
}

/// Whether `--json` was given, for arguments that could not be parsed.
fn asks_for_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_verb_has_two_flags_with_the_same_name() {
        Cli::command().debug_assert();
    }

    #[test]
    fn plain_enqueue_agrees_with_clap() {
        let taken = [
            "enqueue -- echo hi",
            "--home /tmp/x enqueue --json -q -- echo -- --home y",
            "enqueue {}",
            "-q enqueue --home /tmp/x [{}]",
            "enqueue -- enqueue",
        ];
        let left_to_the_whole = [
            "enqueue",
            "enqueue --",
            "enqueue -",
            "enqueue hi",
            "enqueue --help",
            "enqueue --id a -- true",
            "enqueue --home",
            "enqueue -q -q -- true",
            "enqueue {} -q",
            "enqueue {} -- true",
            "-- enqueue -- true",
            "list",
            "enqueue enqueue -- true",
        ];
        let split = |line: &str| -> Vec<OsString> {
            std::iter::once("queuectl").chain(line.split(' ')).map(OsString::from).collect()
        };
        for line in taken {
            let plain = plain_enqueue(&split(line)).unwrap_or_else(|| panic!("{line} is plain"));
            let whole = Cli::try_parse_from(split(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(plain.global, whole.global, "{line}");
            assert_eq!(format!("{:?}", plain.verb), format!("{:?}", whole.verb), "{line}");
        }
        for line in left_to_the_whole {
            assert!(plain_enqueue(&split(line)).is_none(), "{line}");
        }
    }
}

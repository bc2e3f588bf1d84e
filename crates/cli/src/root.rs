//! The root of the command line: the flags that all verbs share, and how a run ends.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use sys::program::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, Parser};

use super::context::{Context, notes, results, size_of_terminal};
use super::failure::{Exit, Failure, report};
use super::help::request::{self, Level};
use super::help::short;
use super::parse;
use super::parse::{CommandLine, parse};
use super::render::help_groups::with_own_about_of_help;
use sys::signal;

/// Runs shell commands in the background and never loses one
#[derive(Debug, Parser)]
#[command(
    name = "queuectl",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    override_usage = "queuectl [OPTIONS] [COMMAND]",
    after_help = "Examples:
  queuectl run make test
  queuectl enqueue convert \"a b.png\" out.jpg
  queuectl enqueue '{\"id\":\"job1\",\"command\":\"sleep 2\"}'
  ls *.png | queuectl enqueue --batch small --each - convert {} small/{}
  queuectl schedule add nightly --cron \"0 3 * * *\" make backup
  queuectl worker start --concurrency 4
  queuectl status
  queuectl explain job1
  queuectl list --state dead"
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
}

/// Flags of every verb.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(super) struct Global {
    /// The home directory of the queue [default: the nearest .queuectl in this directory or above it, else ~/.queuectl]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(super) home: Option<PathBuf>,
    /// The queue's database: a path, or postgres://USER@HOST/DATABASE [default: queue.db in the home]
    #[arg(long, global = true, value_name = "PATH", help_heading = "Global options")]
    pub(super) store: Option<OsString>,
    /// Print JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) json: bool,
    /// Print only errors: no results, hints or progress
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(super) quiet: bool,
    /// Show times in UTC, also on a terminal
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) utc: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub(super) color: ColorChoice,
}

/// Parses the arguments, runs the verb, reports what went wrong.
pub(super) fn main() -> ExitCode {
    signal::end_quietly_on_closed_pipe();
    signal::survive_file_limit();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match parse(&arguments) {
        Ok(CommandLine { global, verb, arguments }) => {
            let context = Context::new(&global);
            let result = verb.run(arguments, &context);
            context.leave();
            result.unwrap_or_else(|failure| report(&failure, global.json, global.color))
        }
        Err(error) => answer_unparsed(&error, &arguments),
    }
}

/// Prints help, the version or clap's error. Help that was printed because the verb of a verb is missing still exits with
/// an error.
fn answer_unparsed(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let (as_json, color) = (asks_for_json(arguments), color_asked_for(arguments));
    let no_verb = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if no_verb && as_json || error.kind() == ErrorKind::MissingSubcommand {
        return report(&missing_verb(error), as_json, color);
    }
    let is_topic =
        error.kind() == ErrorKind::InvalidSubcommand && request::is_about_globals(&Cli::command(), arguments);
    if error.use_stderr() && !no_verb && !is_topic {
        return report(&parse::explain(error, arguments), as_json, color);
    }
    let text = if error.kind() == ErrorKind::DisplayVersion {
        error.render().to_string()
    } else {
        help_text(error, arguments)
    };
    // An error here means that the stream is closed.
    if no_verb {
        let _ = notes(color).write_all(text.as_bytes());
        return Exit::Usage.into();
    }
    let _ = results(color).write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// The help that was asked for: one screen, or all of it as clap writes it.
fn help_text(error: &clap::Error, arguments: &[OsString]) -> String {
    let width = size_of_terminal(std::io::stdout()).columns;
    let mut root = parse::whole();
    root.build();
    if request::is_about_globals(&root, arguments) {
        return short::global_help(&root, width);
    }
    match request::read(&root, arguments) {
        (Level::Short, verb) => short::short_help(verb, width),
        (Level::Full, _) => with_own_about_of_help(&error.render().ansi().to_string()),
    }
}

/// clap's own message lists the hidden verbs, too.
fn missing_verb(error: &clap::Error) -> Failure {
    let command = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(command)) => command,
        _ => "queuectl",
    };
    Failure::usage("no command given").with_hint(format!("`{command} --help` lists the commands"))
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

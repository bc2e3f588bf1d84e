//! `queuectl hook add`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::caller::here;
use crate::render::report_name;
use crate::render::report_name::Named;
use domain::hook::{HookError, HookEvent, Secret, Target, Trigger, check_command};
use domain::job::environment::Environment;
use domain::text::shell::quote_words;
use domain::values::name::QueueName;
use ops::OpError;
use ops::hook::{HookJson, add, parse_name};
use store::NewHook;
use sys::process::user;

/// Tell a command or an address when something happens
///
/// The event is JSON: on the command's standard input, or as the body of a POST. A command runs here, with this
/// environment. It is told again until it succeeds (exit code 0, or any answer from 200 to 299), for a day.
///
/// EVENT is success (a job completed), failure (an attempt failed and will be retried), dead, batch-finished,
/// worker-crashed, or dlq-above (the number of dead jobs became larger than --above).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl hook add mourn --on dead -- notify-send \"a job died\"
  queuectl hook add pager --on dlq-above --above 10 --queue mail --command 'mail -s dead ops@example.org'
  queuectl hook add site --on success --url https://example.org/hooks --secret-file key")]
pub(super) struct Args {
    /// What to call it
    #[arg(value_name = "NAME")]
    name: String,
    /// What to tell of: success, failure, dead, batch-finished, worker-crashed or dlq-above
    #[arg(long, value_name = "EVENT")]
    on: String,
    /// For dlq-above: how many dead jobs are not worth telling yet
    #[arg(long, value_name = "N")]
    above: Option<u64>,
    /// Only of jobs in this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<QueueName>,
    /// A command line for the shell
    #[arg(long, value_name = "LINE")]
    command: Option<String>,
    /// Where to post events
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// What to sign posted events with; others on this machine may see it while this runs
    #[arg(long, value_name = "TEXT", requires = "url", conflicts_with_all = ["secret_file", "secret_env"])]
    secret: Option<String>,
    /// A file with the secret; a newline at its end is left out
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "secret_env")]
    secret_file: Option<PathBuf>,
    /// An environment variable with the secret
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    secret_env: Option<String>,
    /// The words of a command
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

pub(super) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let hook = resolve(args)?;
    let store = context.store()?;
    let hook = add(store, &hook, &user::name())?;
    let name = hook.name.as_str();
    let sentence = format!("Hook {name} added; `queuectl hook test {name}` shows whether it works");
    report_name::tell(context, &Named { name, json: HookJson::from(&hook), sentence })?;
    Ok(ExitCode::SUCCESS)
}

fn resolve(args: Args) -> Result<NewHook, Failure> {
    let name = parse_name(&args.name)?;
    let event: HookEvent = args.on.parse().map_err(OpError::from)?;
    let secret = secret(&args)?;
    let trigger = Trigger::new(event, args.queue, args.above).map_err(OpError::from)?;
    let target = match (args.command, args.url, args.words.is_empty()) {
        (Some(line), None, true) => command(line)?,
        (None, None, false) => command(quote_words(&args.words))?,
        (None, Some(url), true) => {
            let url = url.parse().map_err(|error| OpError::from(HookError::Url(error)))?;
            Target::Url { url, secret }
        }
        (None, None, true) => {
            return Err(Failure::usage("nobody is named who is to be told")
                .with_hint("give words of a command after --, or --command, or --url"));
        }
        (Some(_), _, _) | (None, Some(_), false) => {
            return Err(Failure::usage("more than one is named who is to be told")
                .with_hint("give words of a command after --, or --command, or --url"));
        }
    };
    Ok(NewHook { name, trigger, target })
}

fn command(line: String) -> Result<Target, Failure> {
    Ok(Target::Command {
        line: check_command(line).map_err(OpError::from)?,
        cwd: here(),
        environment: Some(Arc::new(Environment::capture(user::variables()))),
    })
}

fn secret(args: &Args) -> Result<Option<Secret>, Failure> {
    let text = match (&args.secret, &args.secret_file, &args.secret_env) {
        (Some(text), ..) => text.clone(),
        (None, Some(file), _) => read(file)?,
        (None, None, Some(name)) => std::env::var(name)
            .map_err(|error| Failure::usage(format!("the variable `{name}` has no secret ({error})")))?,
        (None, None, None) => return Ok(None),
    };
    Ok(Some(Secret::new(text).map_err(OpError::from)?))
}

fn read(file: &Path) -> Result<String, Failure> {
    let text =
        fs::read_to_string(file).map_err(|source| OpError::CannotRead { path: file.to_owned(), source })?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

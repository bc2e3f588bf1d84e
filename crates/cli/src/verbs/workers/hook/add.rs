//! `queuectl hook add`

use std::fs;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::caller::CaptureFlags;
use crate::render::report_change::report_change;
use crate::verbs::jobs::typed_command::hint_one_word;
use domain::hook::{HookEvents, Secret, Target, Trigger, check_command};
use domain::text::shell::quote_words;
use domain::values::name::QueueName;
use ops::OpError;
use ops::hook::{add, parse_name};
use store::NewHook;
use sys::process::user;

/// Add a hook: a command that runs, or a URL that is called
///
/// The event is passed as JSON, on the command's standard input or in the body of a POST request. A command runs in the
/// current directory with the current environment, and finds the event also in variables such as QUEUECTL_EVENT,
/// QUEUECTL_JOB_ID, QUEUECTL_JOB_STATE and QUEUECTL_JOB_ERROR. Delivery is retried until it succeeds (exit code 0, or HTTP status 200
/// to 299), for up to a day.
///
/// EVENT is success (a job completed), failure (an attempt failed and will be retried), dead, batch-finished,
/// worker-crashed, or dlq-above (the number of dead jobs rose above --above).
#[derive(Debug, clap::Args)]
#[command(override_usage = "queuectl hook add NAME --on EVENT [OPTIONS] COMMAND... | --url URL")]
#[command(after_help = "Examples:
  queuectl hook add notify-dead --on dead -- notify-send \"a job died\"
  queuectl hook add ends --on success,dead --command 'echo \"$QUEUECTL_JOB_ID $QUEUECTL_JOB_STATE\" >> ends'
  queuectl hook add pager --on dlq-above --above 10 -- mail -s dead ops
  queuectl hook add site --on dead --url https://example.org --secret-env KEY")]
pub(super) struct Args {
    /// The hook's name
    #[arg(value_name = "NAME")]
    name: String,
    /// The event, or several with commas between them: success, failure, dead, batch-finished, worker-crashed, dlq-above;
    /// can be repeated
    #[arg(long, value_name = "EVENT", required = true)]
    on: Vec<String>,
    /// For dlq-above: notify above this many dead jobs
    #[arg(long, value_name = "N")]
    above: Option<u64>,
    /// Only for jobs in this queue
    #[arg(short = 'Q', long, value_name = "QUEUE")]
    queue: Option<QueueName>,
    /// The command, run by `sh -c`
    #[arg(short, long, value_name = "COMMAND")]
    command: Option<String>,
    /// Send events to this URL, as POST requests
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Secret to sign requests with; visible to other users of this machine while the command runs
    #[arg(long, value_name = "TEXT", requires = "url", conflicts_with_all = ["secret_file", "secret_env"])]
    secret: Option<String>,
    /// File that contains the secret; a trailing newline is ignored
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "secret_env")]
    secret_file: Option<PathBuf>,
    /// Environment variable that contains the secret
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    secret_env: Option<String>,
    /// The command and its arguments, used exactly as given
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
}

pub(super) fn run(args: Args, context: &Context) -> Result<(), Failure> {
    hint_one_word(context, &args.words)?;
    let hook = resolve(args, context)?;
    let store = context.store_or_new()?;
    let hook = add(store, &hook, &user::name())?;
    let name = hook.name.as_str();
    let sentence = format!("Hook {name} added; try it with `queuectl hook test {name}`");
    report_change(context, name, &hook, &sentence)
}

fn resolve(args: Args, context: &Context) -> Result<NewHook, Failure> {
    let name = parse_name(&args.name)?;
    let events: HookEvents = args.on.join(",").parse().map_err(OpError::from)?;
    let secret = secret(&args)?;
    let trigger = Trigger::new(events, args.queue, args.above).map_err(OpError::from)?;
    let target = match (args.command, args.url, args.words.is_empty()) {
        (Some(line), None, true) => command(line, context)?,
        (None, None, false) => command(quote_words(&args.words), context)?,
        (None, Some(url), true) => Target::Url { url: url.parse().map_err(OpError::from)?, secret },
        (None, None, true) => {
            return Err(
                Failure::usage("no target given").with_hint("use --command, words after --, or --url")
            );
        }
        (Some(_), _, _) | (None, Some(_), false) => {
            return Err(Failure::usage("more than one target given")
                .with_hint("use only one of --command, words after --, and --url"));
        }
    };
    Ok(NewHook { name, trigger, target })
}

fn command(line: String, context: &Context) -> Result<Target, Failure> {
    let caller = CaptureFlags::default().caller(context)?;
    Ok(Target::Command {
        line: check_command(line).map_err(OpError::from)?,
        cwd: caller.cwd.filter(|_| !caller.runs_elsewhere),
        environment: caller.environment,
    })
}

fn secret(args: &Args) -> Result<Option<Secret>, Failure> {
    let text = match (&args.secret, &args.secret_file, &args.secret_env) {
        (Some(text), ..) => text.clone(),
        (None, Some(file), _) => read(file)?,
        (None, None, Some(name)) => std::env::var(name).map_err(|error| {
            Failure::usage(format!("failed to read the secret from the variable `{name}` ({error})"))
        })?,
        (None, None, None) => return Ok(None),
    };
    Ok(Some(Secret::new(text).map_err(OpError::from)?))
}

fn read(file: &Path) -> Result<String, Failure> {
    let text =
        fs::read_to_string(file).map_err(|source| OpError::CannotRead { path: file.to_owned(), source })?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

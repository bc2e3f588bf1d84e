//! `queuectl run`: how it is called. What it does is in `follow`.

mod follow;
mod live;
mod question;

use std::process::ExitCode;

use rustix::process::Signal;

use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::flags::caller::CallerFlags;
use crate::flags::job::JobFlags;
use crate::loan::Loan;
use domain::job::request::JobRequest;
use domain::text::shell::quote_words;
use domain::values::name::QueueName;
use follow::{Run, Stop};
use ops::jobs::enqueue::Enqueuer;
use ops::jobs::inside::CallingJob;
use sys::signal;

/// Run a command as a job, show its output, exit with its exit code
///
/// The job is enqueued like any other and taken by a worker; where none is running that would take it, one is started
/// for this job alone, and so it is inside a job where all slots are busy. What the command prints on stdout and stderr comes out on stdout and stderr, byte for byte.
/// Its standard input is empty.
///
/// The exit code is the command's own, or 128 + n if signal n ended it. It is 1, with an error on stderr, if the end was
/// not the command's own: a timeout, a command that could not be started, a job that was cancelled. A command that fails
/// is not tried again unless --max-retries says so; then the output of all attempts is shown, and the exit code is the
/// last one's.
///
/// Ctrl-C on a terminal asks whether to cancel the job or to let it run. Where nobody can be asked, SIGINT, SIGTERM and
/// SIGHUP end this process and not the job: what was acknowledged is not thrown away. `queuectl logs -f ID` and
/// `queuectl wait ID` come back to it. Where whoever reads the output has gone (`queuectl run -- yes | head -1`), the
/// job is cancelled as soon as it prints more, just as the command itself would have ended.
///
/// With --json the job is printed on stdout when it is finished, and what the command prints goes to stderr. With -q
/// nothing is said beside the command's output, but for errors.
#[derive(Debug, clap::Args)]
#[command(mut_arg("max_retries", |flag| flag.help("Retries after the first attempt [default: 0]")))]
#[command(mut_arg("if_absent", |flag| flag.help("When the id is taken, follow the job that has it")))]
#[command(after_help = "Examples:
  queuectl run -- make test
  queuectl run --command \"make test 2>&1 | tee test.log\"
  queuectl run --queue ci --timeout 10m --max-retries 2 -- ./deploy staging
  queuectl run --json -- make test 2>/dev/null | jq .exit_code")]
pub(crate) struct Args {
    /// The words of the command
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
    #[command(flatten)]
    flags: JobFlags,
    #[command(flatten)]
    caller: CallerFlags,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let caller = args.caller.caller();
    let request = resolve(args)?;
    let store = context.store()?;
    let inside = CallingJob::find(store)?;
    if let Some(inside) = &inside {
        if !caller.if_absent && request.unique_key.is_none() {
            // Else there may be such a job already, which may have ended.
            let queue = request.queue.clone().unwrap_or_else(QueueName::default_queue);
            inside.check_may_wait_in(store, &queue)?;
        }
        inside.check_may_wait_for(store, request.depends_on.iter().cloned())?;
    }
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    // Whether the job goes on where nobody reads is not for the signal to decide.
    signal::survive_closed_pipe();
    let answers = Enqueuer::new(store, caller)?.enqueue(vec![request])?;
    let answer = answers.first().expect("there is an answer for each job");
    let loan = match inside {
        Some(inside) => {
            inside.check_may_wait_for(store, [answer.id().clone()])?;
            Some(Loan::new(context, store, inside)?)
        }
        None => None,
    };
    let ended = Run::new(context, store, &interrupts, answer, loan).and_then(Run::follow);
    signal::end_quietly_on_closed_pipe();
    match ended {
        Ok(code) => Ok(code),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Signal(signal)) => interrupts.end_by(signal),
    }
}

fn resolve(args: Args) -> Result<JobRequest, Failure> {
    let Args { words, mut flags, .. } = args;
    let command = match (flags.command.take(), words.is_empty()) {
        (Some(command), true) => command,
        (None, false) => quote_words(&words),
        (None, true) => {
            return Err(Failure::usage("there is nothing to run").with_hint("try `queuectl run -- echo hi`"));
        }
        (Some(_), false) => {
            return Err(Failure::usage("the command is given in more than one way")
                .with_hint("give --command, or words after --"));
        }
    };
    let mut request = flags.into_request(command)?;
    if request.max_attempts.is_none() {
        // Somebody waits to see how it ends.
        request.max_retries = request.max_retries.or(Some(0));
    }
    Ok(request)
}

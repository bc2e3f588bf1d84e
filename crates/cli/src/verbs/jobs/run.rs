//! `queuectl run`: its arguments. Its behaviour is in `follow`.

mod follow;
mod pass_output;
mod question;
mod sweep;
pub(crate) mod terminal;

use sys::program::ExitCode;

use rustix::process::Signal;

use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::flags::caller::CallerFlags;
use crate::flags::each::EachFlags;
use crate::flags::job::JobFlags;
use crate::slot_loan::SlotLoan;
use crate::verbs::jobs::ignored_input;
use crate::verbs::jobs::typed_command::one_command;
use crate::verbs::workers::worker::ForeignHome;
use domain::job::spec::JobSpec;
use domain::values::name::QueueName;
use follow::{EarlyExit, Run};
use ops::jobs::calling_job::CallingJob;
use ops::jobs::enqueue::Enqueuer;
use sweep::SweepFlags;
use sys::signal;

/// Run a command as a job, show its output, exit with its exit code
///
/// The job is enqueued like any other and run by a worker. If no running worker would take it, queuectl starts a worker
/// for this job alone; inside another job it does so also when all slots are busy. The command's stdout and stderr are
/// passed through byte for byte. Its standard input is empty, unless --stdin is given; a warning says so if queuectl itself
/// is given input.
///
/// The exit code is that of the command, or 128 + n if signal n ended it. It is 1, with an error on stderr, if the command
/// timed out, could not be started, or its job was cancelled. A failed command is retried only with --max-retries; then
/// the output of all attempts is shown, and the exit code is that of the last one.
///
/// On a terminal, Ctrl-C asks whether to cancel the job or to let it run. Otherwise SIGINT, SIGTERM and SIGHUP end this
/// process but not the job; follow it with `queuectl logs -f ID` or `queuectl wait ID`. If the reader of the output exits
/// (`queuectl run -- yes | head -1`), the job is cancelled when it next prints something, just as the command itself would
/// have ended.
///
/// With --json, the job is printed on stdout when it has finished, and the command's output goes to stderr. With -q, only
/// the command's output and errors are printed.
///
/// With --each, there is one job for each line or argument, and a pool of -j slots runs them until the last has finished; other
/// running workers help. The output of each job is shown when it ends. The exit code is 0 if all jobs completed, else 1.
/// The jobs are in the queue like any other: if this process is killed, they still run.
#[derive(Debug, clap::Args)]
#[command(mut_arg("max_retries", |flag| flag.help("Retries after the first attempt; --max-attempts counts that one, too [default: 0]")))]
#[command(mut_arg("if_absent", |flag| flag.help("If a job with this id exists, follow it instead of failing")))]
#[command(override_usage = "queuectl run [OPTIONS] COMMAND...")]
#[command(after_help = "Examples:
  queuectl run make test
  queuectl run -c \"make test 2>&1 | tee test.log\"
  queuectl run --queue ci --timeout 10m --max-retries 2 -- ./deploy staging
  queuectl run --json -- make test 2>/dev/null | jq .exit_code
  queuectl run --each -j 4 ffmpeg -i {} {.}.mp4 ::: *.mkv
  pg_dump shop | queuectl run --stdin ./upload --to backups")]
pub(crate) struct Args {
    /// The command and its arguments, used exactly as given
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
    #[command(flatten)]
    each: EachFlags,
    #[command(flatten)]
    sweep: SweepFlags,
    #[command(flatten)]
    flags: JobFlags,
    #[command(flatten)]
    caller: CallerFlags,
    #[command(flatten)]
    foreign_home: ForeignHome,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    args.foreign_home.apply(context)?;
    let start = args.flags.start_time();
    if args.each.is_given() {
        return sweep::run(args, context);
    }
    let (caller, passes_input) = (args.caller.caller(context)?, args.caller.passes_input());
    let request = resolve(context, args)?;
    let store = context.store_or_new()?;
    let inside = CallingJob::find(store)?;
    if let Some(inside) = &inside {
        if !caller.if_absent && request.unique_key.is_none() {
            // Otherwise the job may exist already and may even have ended, so there is nothing to refuse yet.
            let queue = request.queue.clone().unwrap_or_else(QueueName::default_queue);
            inside.check_may_wait_in(store, &queue)?;
        }
        inside.check_may_wait_for(store, request.depends_on.iter().cloned())?;
    }
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    // SIGPIPE would end this process before it could cancel the job.
    signal::survive_closed_pipe();
    let answers = Enqueuer::new(store, caller)?.enqueue(vec![request])?;
    let answer = answers.first().expect("enqueue returns one answer per job");
    start.map_or(Ok(()), |start| start.confirm(context))?;
    let loan = |inside| SlotLoan::new(context, store, inside, [answer.id().clone()]);
    let loan = inside.map(loan).transpose()?;
    let warned = passes_input || ignored_input::warn(context)?;
    let run = Run::new(context, store, &interrupts, answer, loan);
    let run = run.map(|run| if passes_input { run.without_stdin() } else { run });
    let ended = run.and_then(Run::follow);
    signal::end_quietly_on_closed_pipe();
    match ended {
        Ok(code) => {
            if !warned {
                // The writer of a pipe may have started later than this process.
                ignored_input::warn(context)?;
            }
            Ok(code)
        }
        Err(EarlyExit::Failed(failure)) => Err(failure),
        Err(EarlyExit::Signal(signal)) => interrupts.end_by(signal),
    }
}

fn resolve(context: &Context, args: Args) -> Result<JobSpec, Failure> {
    let Args { words, mut flags, .. } = args;
    let command = one_command(context, flags.command.take(), &words, "try `queuectl run echo hi`")?;
    Ok(without_retries(flags.into_spec(context, command)?))
}

/// The caller waits for the result, so a failure is not retried by default.
fn without_retries(request: JobSpec) -> JobSpec {
    let by_default = request.max_attempts.is_none().then_some(0);
    JobSpec { max_retries: request.max_retries.or(by_default), ..request }
}

//! `queuectl run --each`: a batch of jobs in the foreground, run by a pool of its own.
//!
//! The jobs are stored before the pool starts, and the pool does not depend on this process: it ends when the last job of
//! the batch has finished. So a sweep continues when its terminal is gone.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sys::program::ExitCode;

use rustix::process::Signal;

use super::follow::{EarlyExit, describe_pause};
use super::pass_output::PassOutput;
use super::question::{ABOUT_JOBS, Answer, ask, terminal, terminal_beside_input};
use super::terminal::TerminalOutput;
use super::{Args, without_retries};
use crate::context::{Context, catch};
use crate::failure::{Exit, Failure};
use crate::render::text::jobs;
use crate::slot_loan::SlotLoan;
use crate::verbs::jobs::batch::BatchProgress;
use crate::verbs::jobs::enqueue::lines;
use crate::verbs::jobs::ignored_input;
use crate::verbs::manage::change::report_and_continue;
use crate::verbs::workers::worker::start_for_batch;
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::concurrency::Concurrency;
use domain::values::name::{BatchName, JobId, JobIdSequence, QueueName};
use ops::OpError;
use ops::jobs::bulk::change_selected;
use ops::jobs::calling_job::CallingJob;
use ops::jobs::change::Verb;
use ops::jobs::enqueue::Enqueuer;
use ops::jobs::enqueue::lines::LineFormat;
use ops::jobs::logs::follow::{FollowEvent, Follower};
use ops::json::BatchJson;
use ops::worker::live::live_workers;
use store::{Batch, JobFilter, ServedJobs, Store, WorkerState};
use sys::poll::Poll;
use sys::process::user;
use sys::signal;
use sys::signal::interrupts::Interrupts;

/// The interval between polls grows from the first to the second while nothing ends.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often to check that the pool is there.
const POOL_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often the output of a finished job is asked for without an answer.
const MAX_EMPTY_POLLS: u32 = 20;
/// At most this many jobs are compared with the job that this process runs in.
const MAX_AWAITED_CHECKED: usize = 20;

#[derive(Debug, clap::Args)]
pub(super) struct SweepFlags {
    /// With --each: how many jobs run at once, or auto [default: the number of cores]
    #[arg(
        short = 'j',
        long,
        value_name = "N",
        allow_negative_numbers = true,
        requires = "each",
        help_heading = "Many jobs"
    )]
    concurrency: Option<Concurrency>,
    /// With --each: cancel the other jobs when one fails
    #[arg(long, requires = "each", help_heading = "Many jobs")]
    halt_on_failure: bool,
    /// With --each: a name for the batch; it must be new [default: generated]
    #[arg(long, value_name = "NAME", requires = "each", help_heading = "Many jobs")]
    batch: Option<BatchName>,
}

pub(super) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    args.caller.refuse_stdin()?;
    let Args { words, each, sweep, flags, caller, .. } = args;
    let (is_dry_run, start) = (each.dry_run, flags.start_time());
    let (source, mut each) = each.resolve(context, flags, words)?;
    if is_dry_run {
        lines::preview(context, &source, LineFormat::Each(&each))?;
        return Ok(ExitCode::SUCCESS);
    }
    each.request = without_retries(each.request);
    let store = context.store_or_new()?;
    let queue = each.request.queue.clone().unwrap_or_else(QueueName::default_queue);
    let inside = CallingJob::find(store)?;
    if let Some(inside) = &inside {
        inside.check_may_wait_in(store, &queue)?;
        inside.check_may_wait_for(store, each.request.depends_on.iter().cloned())?;
    }
    let batch = new_batch(store, sweep.batch)?;
    let caller = ops::jobs::enqueue::Caller { batch: Some(batch.clone()), ..caller.caller(context)? };
    let reads_stdin = source.is_stdin();
    // Until all items are read, Ctrl-C ends this process: nothing is stored yet.
    let source = lines::read_stream(source)?;
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    // SIGPIPE would end this process before it could cancel the jobs.
    signal::survive_closed_pipe();
    let mut enqueuer = Enqueuer::new(store, caller)?;
    let ids = lines::store_each(context, &mut enqueuer, &source, LineFormat::Each(&each))?;
    start.map_or(Ok(()), |start| start.confirm(context))?;
    if !reads_stdin {
        ignored_input::warn(context)?;
    }
    let awaited: Vec<JobId> = ids.iter().take(MAX_AWAITED_CHECKED).cloned().collect();
    // Marks the enclosing job as waiting. It lends no slot: the pool has its own.
    let _loan = inside.map(|inside| SlotLoan::new(context, store, inside, awaited)).transpose()?;
    let ended = Sweep {
        context,
        store,
        interrupts: &interrupts,
        home: context.location()?.home,
        progress: BatchProgress::new(context, "running", ids.len() as u64),
        terminal: TerminalOutput::new(context),
        total: ids.len() as u64,
        unfinished: ids.into(),
        batch,
        queue,
        concurrency: sweep.concurrency.unwrap_or(Concurrency::Auto),
        halt_on_failure: sweep.halt_on_failure,
        reads_stdin,
        failed: 0,
        end: SweepEnd::All,
        pause_reported: false,
        next_pool_check: Instant::now(),
    }
    .follow();
    signal::end_quietly_on_closed_pipe();
    match ended {
        Ok(code) => Ok(code),
        Err(EarlyExit::Failed(failure)) => Err(failure),
        Err(EarlyExit::Signal(signal)) => interrupts.end_by(signal),
    }
}

/// The name of a batch that does not exist yet: its counts are the result of the sweep.
fn new_batch(store: &dyn Store, wanted: Option<BatchName>) -> Result<BatchName, Failure> {
    let Some(name) = wanted else {
        let id = JobIdSequence::default().next(store.now()?, fastrand::u64(..));
        return Ok(format!("run-{id}").parse().expect("letters, digits and a dash"));
    };
    if store.batch(&name)?.is_none() {
        return Ok(name);
    }
    Err(Failure::new(Exit::Conflict, format!("there is already a batch `{name}`")).with_hint(format!(
        "choose another name, or add to it with `queuectl enqueue --each … --batch {name}`"
    )))
}

/// Which jobs the sweep waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweepEnd {
    All,
    /// The rest was cancelled because a job failed.
    Halted,
    /// The rest was cancelled by the user.
    Cancelled,
}

struct Sweep<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    interrupts: &'a Interrupts,
    home: PathBuf,
    batch: BatchName,
    queue: QueueName,
    concurrency: Concurrency,
    halt_on_failure: bool,
    /// The items came from standard input.
    reads_stdin: bool,
    total: u64,
    /// In the order of enqueuing, in which most of them end.
    unfinished: VecDeque<JobId>,
    failed: u64,
    end: SweepEnd,
    terminal: TerminalOutput<'a>,
    progress: BatchProgress<'a>,
    pause_reported: bool,
    next_pool_check: Instant,
}

impl Sweep<'_> {
    fn follow(mut self) -> Result<ExitCode, EarlyExit> {
        if self.context.shows_progress() && self.total > 0 {
            let (count, batch) = (jobs(self.total), &self.batch);
            self.terminal.note(&format!("{count} in batch {batch}"));
        }
        let mut poll = Poll::growing(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        let mut known: Option<Batch> = None;
        while !self.unfinished.is_empty() {
            let batch = self.store.batch(&self.batch)?;
            if batch != known || batch.is_none() {
                poll.restart();
                self.show_finished(batch.as_ref())?;
                known = batch;
                continue;
            }
            if let Some(batch) = &known {
                self.ensure_pool(batch)?;
                self.progress.draw(batch)?;
            }
            if let Some(signal) = self.interrupts.sleep(poll.pause()) {
                self.handle_signal(signal)?;
            }
        }
        self.finish()
    }

    /// Shows the jobs that have ended since the last call. Jobs end roughly in the order of enqueuing, so few of the others
    /// are read. Without a batch, all of its jobs were removed.
    fn show_finished(&mut self, batch: Option<&Batch>) -> Result<(), EarlyExit> {
        let shown = self.total - self.unfinished.len() as u64;
        // Removed jobs are not counted, so at the end every job is looked at.
        let mut expected = match batch {
            Some(batch) if batch.finished_at.is_none() => batch.finished().saturating_sub(shown),
            Some(_) | None => u64::MAX,
        };
        let mut still_unfinished = VecDeque::new();
        while expected > 0
            && let Some(id) = self.unfinished.pop_front()
        {
            let state = self.store.find(&id)?.map(|job| job.life.state.name());
            match state {
                Some(state) if !state.is_finished() => still_unfinished.push_back(id),
                Some(_) => {
                    expected -= 1;
                    self.show_job(&id)?;
                }
                None => self.note_result(None)?,
            }
        }
        still_unfinished.append(&mut self.unfinished);
        self.unfinished = still_unfinished;
        Ok(())
    }

    /// Shows all output of a job that has ended.
    fn show_job(&mut self, id: &JobId) -> Result<(), EarlyExit> {
        let mut follower = Follower::new(self.store, self.home.clone(), id.clone(), 1);
        let mut empty_polls = 0;
        while empty_polls < MAX_EMPTY_POLLS {
            let events = match follower.poll() {
                Err(OpError::Removed(_)) => break,
                events => events?,
            };
            if events.is_empty() {
                empty_polls += 1;
                if let Some(signal) = self.interrupts.sleep(follower.poll_delay()) {
                    self.handle_signal(signal)?;
                }
            }
            for event in events {
                match event {
                    FollowEvent::Began(_) | FollowEvent::Ended { .. } => {}
                    FollowEvent::Output(pieces) => {
                        self.progress.clear();
                        self.write_pieces(&pieces)?;
                    }
                    FollowEvent::Unreadable(error) => {
                        self.break_line();
                        report_and_continue(self.context, &error.into());
                    }
                    FollowEvent::Finished(job) => return self.note_result(Some(&job)),
                }
            }
        }
        self.note_result(None)
    }

    /// Counts a job that has ended; `None` if it was removed. Halts the sweep if that was asked for.
    fn note_result(&mut self, job: Option<&Job>) -> Result<(), EarlyExit> {
        if self.context.shows_progress() {
            // The bar would overwrite a line without an end.
            self.break_line();
        }
        let state = job.map(|job| job.life.state.name());
        let is_ours = self.end != SweepEnd::All && state == Some(StateName::Cancelled);
        if state == Some(StateName::Completed) || is_ours {
            return Ok(());
        }
        self.failed += 1;
        if let Some(job) = job {
            if state == Some(StateName::Dead) {
                // The caller learns of it now, so it is no news for `status`. If it cannot be noted, it stays news.
                let _ = self.store.mark_reported(&job.id, job.life.attempts);
            }
            let why = job.latest.error.as_deref().unwrap_or(job.life.state.name().name());
            self.progress.clear();
            self.terminal.note_on_terminal(&format!("job {} failed: {why} ({})", job.handle(), job.command));
        }
        if self.halt_on_failure && self.end == SweepEnd::All {
            self.end = SweepEnd::Halted;
            self.terminal.note_on_terminal("cancelling the other jobs (--halt-on-failure)");
            self.cancel_rest()?;
        }
        Ok(())
    }

    fn break_line(&mut self) {
        self.progress.clear();
        self.terminal.break_line();
    }

    /// Starts the pool, also again if it has ended before the jobs. Says so if the queue is paused.
    fn ensure_pool(&mut self, batch: &Batch) -> Result<(), EarlyExit> {
        let now = Instant::now();
        if now < self.next_pool_check {
            return Ok(());
        }
        self.next_pool_check = now + POOL_CHECK_INTERVAL;
        let own = ServedJobs::Batch(self.batch.clone());
        let is_there = live_workers(self.store)?
            .iter()
            .any(|worker| worker.served == own && worker.state == WorkerState::Running);
        if !is_there {
            start_for_batch(self.context, &self.batch, self.concurrency)
                .map_err(|failure| failure.with_hint(self.reattach_hint()))?;
        }
        if !self.pause_reported
            && batch.counts.get(&StateName::Processing).is_none_or(|running| *running == 0)
            && let Some(pause) = self.store.pause_of(&self.queue)?
        {
            self.pause_reported = true;
            self.progress.clear();
            let queue = &self.queue;
            self.terminal.note(&format!(
                "{}, so its jobs wait; `queuectl queue resume {queue}` resumes it",
                describe_pause(queue, &pause)
            ));
        }
        Ok(())
    }

    fn detach(&mut self, signal: Signal) -> Result<(), EarlyExit> {
        self.terminal.note(&format!("detached: {}", self.reattach_hint()));
        Err(EarlyExit::Signal(signal))
    }

    /// Jobs that have meanwhile ended by themselves stay unchanged.
    fn cancel_rest(&self) -> Result<(), OpError> {
        let filter = JobFilter { batch: Some(self.batch.clone()), ..JobFilter::default() };
        let mut rest = self.store.select(&filter, None, usize::MAX)?;
        rest.retain(|job| !job.state.is_finished());
        change_selected(self.store, Verb::CANCEL, rest, &user::name(), |_| {})?;
        Ok(())
    }

    fn finish(mut self) -> Result<ExitCode, EarlyExit> {
        self.break_line();
        signal::end_quietly_on_closed_pipe();
        if self.context.json
            && let Some(batch) = self.store.batch(&self.batch)?
        {
            self.context.print_json(&BatchJson::from(&batch))?;
        }
        if self.end == SweepEnd::Cancelled {
            self.terminal.note_on_terminal("the remaining jobs are cancelled");
            return Err(EarlyExit::Signal(Signal::INT));
        }
        if self.failed == 0 {
            self.terminal.note_on_terminal(&format!("{} completed", jobs(self.total)));
            return Ok(ExitCode::SUCCESS);
        }
        let error =
            OpError::UnsuccessfulBatch { name: self.batch.clone(), count: self.failed, of: self.total };
        Ok(report_and_continue(self.context, &error.into()).into())
    }
}

impl<'a> PassOutput<'a> for Sweep<'a> {
    fn terminal(&mut self) -> &mut TerminalOutput<'a> {
        &mut self.terminal
    }

    fn interrupts(&self) -> &'a Interrupts {
        self.interrupts
    }

    /// Ctrl-C on a terminal asks what to do. Otherwise a signal ends this process and not the jobs.
    fn handle_signal(&mut self, signal: Signal) -> Result<(), EarlyExit> {
        self.progress.clear();
        if signal != Signal::INT || self.end == SweepEnd::Cancelled {
            return self.detach(signal);
        }
        let terminal = if self.reads_stdin { terminal_beside_input() } else { terminal() };
        let Some(terminal) = terminal else {
            return self.detach(signal);
        };
        self.terminal.begin_question();
        let (store, name) = (self.store, &self.batch);
        let is_over = || Ok(store.batch(name)?.is_none_or(|batch| batch.finished_at.is_some()));
        match ask(self.context, self.interrupts, terminal, ABOUT_JOBS, is_over)? {
            Answer::KeepWaiting => Ok(()),
            Answer::Detach(signal) => self.detach(signal),
            Answer::Cancel => {
                self.end = SweepEnd::Cancelled;
                Ok(self.cancel_rest()?)
            }
        }
    }

    fn handle_closed_output(&mut self) -> Result<(), EarlyExit> {
        self.cancel_rest()?;
        Err(EarlyExit::Signal(Signal::PIPE))
    }

    fn reattach_hint(&self) -> String {
        let batch = &self.batch;
        format!(
            "`queuectl batch wait {batch}` waits for the jobs, `queuectl batch cancel {batch}` cancels them"
        )
    }
}

//! Follows a job from enqueuing to its end, and makes sure that there is a worker to run it.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use sys::program::ExitCode;

use rustix::process::Signal;

use super::pass_output::PassOutput;
use super::question::{ABOUT_JOB, Answer, ask, terminal, terminal_beside_input};
use super::terminal::TerminalOutput;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::text::{jobs, rough};
use crate::slot_loan::SlotLoan;
use crate::verbs::inspect::logs::describe_attempt_end;
use crate::verbs::manage::change::{find, report_and_continue};
use crate::verbs::workers::worker::start_for_job;
use domain::explain::wait_reason::WaitReason;
use domain::job::Job;
use domain::job::life::StateName;
use domain::job::outcome::reports_exceeded_limit;
use domain::values::name::{JobId, QueueName};
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::jobs::change::{Verb, change_ids};
use ops::jobs::logs::choose;
use ops::jobs::logs::follow::{FollowEvent, Follower};
use ops::jobs::wait::WaitEnd;
use ops::jobs::wait_reason::{exit_code, has_worker, waiting};
use ops::json::EnqueuedJson;
use ops::worker::live::live_workers;
use store::{EnqueueResult, Pause, Store};
use sys::process::user;
use sys::signal;
use sys::signal::interrupts::Interrupts;

/// How often to check that there is a worker for the job. The wait reason is shown after the same time.
const WORKER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Run<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    interrupts: &'a Interrupts,
    id: JobId,
    /// Another caller enqueued the job.
    is_existing: bool,
    follower: Follower<'a>,
    terminal: TerminalOutput<'a>,
    /// Present if this process runs inside a job.
    loan: Option<SlotLoan<'a>>,
    next_check_at: Instant,
    /// Since when the job has not been running.
    waiting_since: Instant,
    pause_reported: bool,
    /// Finds the terminal on which the user can answer a question.
    find_terminal: fn() -> Option<OwnedFd>,
    /// Since when the job itself has been paused, as the last note said.
    paused_at: Option<Timestamp>,
    /// The user chose to cancel the job.
    cancel_requested: bool,
    worst: Option<Exit>,
}

/// Why following ended before the job did, or without an exit code of its own.
pub(super) enum EarlyExit {
    Failed(Failure),
    /// The process ends as if this signal had killed it.
    Signal(Signal),
}

impl<E: Into<Failure>> From<E> for EarlyExit {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(
        context: &'a Context,
        store: &'a dyn Store,
        interrupts: &'a Interrupts,
        answer: &EnqueueResult,
        loan: Option<SlotLoan<'a>>,
    ) -> Result<Self, EarlyExit> {
        let id = answer.id().clone();
        let home = context.location()?.home;
        let is_existing = !answer.is_created();
        let first = if is_existing {
            let record = store.record(&id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
            choose(&record, &home, None)?.map_or(1, |attempt| attempt.number)
        } else {
            1
        };
        let now = Instant::now();
        Ok(Self {
            context,
            store,
            interrupts,
            follower: Follower::new(store, home, id.clone(), first),
            id,
            is_existing,
            terminal: TerminalOutput::new(context),
            loan,
            next_check_at: now,
            waiting_since: now,
            pause_reported: false,
            find_terminal: terminal,
            paused_at: None,
            cancel_requested: false,
            worst: None,
        })
    }

    /// For a call that has passed its standard input to the job, and so cannot read answers from it.
    pub(super) fn without_stdin(self) -> Self {
        Self { find_terminal: terminal_beside_input, ..self }
    }

    /// Shows the job's output until it has finished; returns the exit code of its command.
    pub(super) fn follow(mut self) -> Result<ExitCode, EarlyExit> {
        if self.context.shows_progress() {
            let handle = find(self.store, &self.id)?.handle();
            let already_exists = if self.is_existing { " already exists" } else { "" };
            self.terminal.note(&format!("job {handle}{already_exists} (queuectl logs -f {handle})"));
        }
        loop {
            let news = self.follower.poll()?;
            let signal = if news.is_empty() {
                self.ensure_worker()?;
                self.interrupts.sleep(self.follower.poll_delay())
            } else {
                // `write_chunk` takes signals while it writes. A signal taken here would be lost if writing blocked.
                None
            };
            for event in news {
                if let Some(job) = self.show_event(event)? {
                    return self.finish(&job);
                }
            }
            signal.map_or(Ok(()), |signal| self.handle_signal(signal))?;
        }
    }

    /// Shows one event. Returns the job once it has finished.
    fn show_event(&mut self, event: FollowEvent) -> Result<Option<Box<Job>>, EarlyExit> {
        match event {
            FollowEvent::Began(_) => self.terminal.clear(),
            FollowEvent::Output(pieces) => self.write_pieces(&pieces)?,
            FollowEvent::Unreadable(error) => {
                self.terminal.break_line();
                self.worst = self.worst.max(Some(report_and_continue(self.context, &error.into())));
            }
            FollowEvent::Ended { attempt, job } => {
                if let Some(note) = describe_attempt_end(&attempt, &job, self.store.now()?) {
                    self.terminal.note(&note);
                }
                self.waiting_since = Instant::now();
            }
            FollowEvent::Finished(job) => return Ok(Some(job)),
        }
        Ok(None)
    }

    fn finish(mut self, job: &Job) -> Result<ExitCode, EarlyExit> {
        self.terminal.clear();
        signal::end_quietly_on_closed_pipe();
        if job.life.state.name() == StateName::Dead {
            // The caller learns of it now, so it is no news for `status`. If it cannot be noted, it stays news.
            let _ = self.store.mark_reported(&job.id, job.life.attempts);
        }
        if self.context.json {
            self.context.print_json(&EnqueuedJson { job: job.into(), existing: self.is_existing })?;
        }
        if self.cancel_requested && job.life.state.name() == StateName::Cancelled {
            self.terminal.note_on_terminal(&format!("job {} is cancelled", job.handle()));
            return Err(EarlyExit::Signal(Signal::INT));
        }
        let Some(code) = exit_code(job) else {
            self.terminal.break_line();
            WaitEnd::Finished(Box::new(job.clone())).verdict(self.store)?;
            return Ok(ExitCode::SUCCESS);
        };
        match (&job.latest.error, job.latest.signal) {
            // The exit code alone does not show that a limit was exceeded.
            (Some(error), _) if reports_exceeded_limit(error) => self.terminal.note(error),
            (_, Some(signal)) => self.terminal.note_on_terminal(&format!("killed by {signal}")),
            (_, None) if code != 0 => self.terminal.note_on_terminal(&format!("exit code {code}")),
            (_, None) => {}
        }
        let unreadable = self.worst.filter(|_| code == 0);
        Ok(unreadable.map_or(ExitCode::from(code), ExitCode::from))
    }

    /// Periodically makes sure that there is a worker for the job, and shows what it waits for.
    fn ensure_worker(&mut self) -> Result<(), EarlyExit> {
        if let Some(loan) = &mut self.loan {
            loan.check(|| Ok(vec![self.id.clone()]))
                .map_err(|failure| failure.with_hint(reattach_hint_for(&self.id)))?;
        }
        let now = Instant::now();
        if now < self.next_check_at {
            return Ok(());
        }
        self.next_check_at = now + WORKER_CHECK_INTERVAL;
        let Some(job) = self.store.find(&self.id)? else {
            // The follower reports that the job is gone.
            return Ok(());
        };
        let workers = live_workers(self.store)?;
        if !has_worker(&job, &workers) {
            start_for_job(self.context, &job.id)
                .map_err(|failure| failure.with_hint(self.reattach_hint()))?;
        }
        self.note_pause(&job);
        if self.waiting_since.elapsed() >= WORKER_CHECK_INTERVAL {
            self.show_wait_reason(&job)?;
        }
        Ok(())
    }

    /// Says that a user has paused or resumed the job: otherwise its silence would look like a hang.
    fn note_pause(&mut self, job: &Job) {
        let paused_at = job.life.state.paused_at();
        if paused_at == self.paused_at {
            return;
        }
        self.paused_at = paused_at;
        let handle = job.handle();
        if paused_at.is_some() {
            self.terminal.note(&format!("job {handle} is paused; `queuectl resume {handle}` continues it"));
        } else if job.life.state.name() == StateName::Processing {
            self.terminal.note(&format!("job {handle} continues"));
        }
    }

    fn show_wait_reason(&mut self, job: &Job) -> Result<(), EarlyExit> {
        let Some(waiting) = waiting(self.store, job)? else {
            return Ok(());
        };
        if let (Some(WaitReason::PausedQueue(_, pause)), false) = (&waiting.reason, self.pause_reported) {
            let why = describe_pause(&job.queue, pause);
            self.terminal.note(&format!("{why}, so the job waits; {}", self.reattach_hint()));
            self.pause_reported = true;
        }
        let now = self.store.now()?;
        self.terminal.wait_for(|| match waiting.reason {
            Some(WaitReason::PausedQueue(..)) => format!("waiting for queue {} to be resumed", job.queue),
            Some(WaitReason::Jobs { count }) => format!("waiting for {} to complete", jobs(count.into())),
            Some(WaitReason::Backoff(at) | WaitReason::Scheduled(at)) => {
                format!("starts in {}", rough(at.since(now)))
            }
            Some(WaitReason::FullQueue { running, .. }) => {
                format!("waiting for capacity in queue {} ({} running)", job.queue, jobs(running))
            }
            Some(WaitReason::Rate(at)) => {
                format!("queue {} starts its next job in {}", job.queue, rough(at.since(now)))
            }
            None if waiting.running == 0 => "waiting for a worker".to_owned(),
            None => format!("waiting for a free slot ({} running)", jobs(waiting.running)),
        });
        Ok(())
    }

    fn detach(&mut self, signal: Signal) -> Result<(), EarlyExit> {
        self.terminal.note(&format!("detached: {}", self.reattach_hint()));
        Err(EarlyExit::Signal(signal))
    }

    /// A job that has meanwhile ended by itself stays unchanged.
    fn cancel(&mut self) -> Result<(), OpError> {
        let answers = change_ids(self.store, Verb::CANCEL, std::slice::from_ref(&self.id), &user::name());
        answers.stopped.map_or(Ok(()), Err)
    }
}

impl<'a> PassOutput<'a> for Run<'a> {
    fn terminal(&mut self) -> &mut TerminalOutput<'a> {
        &mut self.terminal
    }

    fn interrupts(&self) -> &'a Interrupts {
        self.interrupts
    }

    /// Ctrl-C on a terminal asks what to do. Otherwise a signal ends this process and not the job.
    fn handle_signal(&mut self, signal: Signal) -> Result<(), EarlyExit> {
        if signal != Signal::INT || self.cancel_requested {
            return self.detach(signal);
        }
        let Some(terminal) = (self.find_terminal)() else {
            return self.detach(signal);
        };
        self.terminal.begin_question();
        let (store, id) = (self.store, &self.id);
        let is_over = || Ok(find(store, id)?.life.state.name().is_finished());
        match ask(self.context, self.interrupts, terminal, ABOUT_JOB, is_over)? {
            Answer::KeepWaiting => Ok(()),
            Answer::Detach(signal) => self.detach(signal),
            Answer::Cancel => {
                self.cancel_requested = true;
                Ok(self.cancel()?)
            }
        }
    }

    /// Ends as the command would have if it had written to the closed pipe itself. A job that another caller enqueued
    /// keeps running.
    fn handle_closed_output(&mut self) -> Result<(), EarlyExit> {
        if !self.is_existing {
            self.cancel()?;
        }
        Err(EarlyExit::Signal(Signal::PIPE))
    }

    fn reattach_hint(&self) -> String {
        reattach_hint_for(&self.id)
    }
}

fn reattach_hint_for(id: &JobId) -> String {
    format!("`queuectl logs -f {id}` follows the job, `queuectl wait {id}` waits for it")
}

pub(super) fn describe_pause(queue: &QueueName, pause: &Pause) -> String {
    let reason = pause.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("queue {queue} was paused by {}{reason}", pause.by)
}

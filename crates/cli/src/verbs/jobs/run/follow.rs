//! Following a job from its first moment to its last, and seeing to it that there is somebody to run it.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::live::Live;
use super::question::{Answer, ask};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::loan::Loan;
use crate::render::report_change::{find, tell};
use crate::render::text::{jobs, rough, rough_size};
use crate::verbs::inspect::logs::between;
use crate::verbs::workers::worker::start_for_job;
use domain::job::Job;
use domain::job::error_line::reports_excess;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::attend::{WaitReason, exit_code, has_worker, wait_reason};
use ops::jobs::change::{Verb, change};
use ops::jobs::logs::follow::{FollowEvent, Follower};
use ops::jobs::logs::{Chunk, Piece, choose};
use ops::jobs::wait::WaitEnd;
use ops::json::EnqueuedJson;
use ops::worker::alive::live_workers;
use store::{EnqueueResult, Pause, Store};
use sys::process::user;
use sys::signal;
use sys::signal::interrupts::Interrupts;

/// How often to look whether somebody sees to the job. One that waits for longer is told of.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Run<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    interrupts: &'a Interrupts,
    id: JobId,
    /// Somebody else enqueued it.
    is_existing: bool,
    follower: Follower<'a>,
    live: Live<'a>,
    /// Inside a job.
    loan: Option<Loan<'a>>,
    /// When to look again whether somebody sees to the job.
    look_at: Instant,
    /// Since when it has not been running.
    waits_since: Instant,
    was_told_of_pause: bool,
    /// Whoever watched wants it cancelled.
    is_unwanted: bool,
    worst: Option<Exit>,
}

/// Why following ended before the job did, or without an exit code of its own.
pub(super) enum Stop {
    Failed(Failure),
    /// As this signal would have ended the process.
    Signal(Signal),
}

impl<E: Into<Failure>> From<E> for Stop {
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
        loan: Option<Loan<'a>>,
    ) -> Result<Self, Stop> {
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
            live: Live::new(context),
            loan,
            look_at: now,
            waits_since: now,
            was_told_of_pause: false,
            is_unwanted: false,
            worst: None,
        })
    }

    /// Shows what the job prints until it is finished; gives the exit code of its command.
    pub(super) fn follow(mut self) -> Result<ExitCode, Stop> {
        let id = &self.id;
        let was_there = if self.is_existing { " was there already" } else { "" };
        self.live.aside(&format!("job {id}{was_there} (queuectl logs -f {id})"));
        loop {
            let news = self.follower.poll()?;
            let signal = if news.is_empty() {
                self.attend()?;
                self.interrupts.sleep(self.follower.poll_delay())
            } else {
                // Heard while the news are told: what was taken here would be forgotten where nobody reads them.
                None
            };
            for event in news {
                if let Some(job) = self.tell(event)? {
                    return self.finish(&job);
                }
            }
            signal.map_or(Ok(()), |signal| self.heed(signal))?;
        }
    }

    /// Shows something new. The job is returned when it is finished.
    fn tell(&mut self, event: FollowEvent) -> Result<Option<Box<Job>>, Stop> {
        match event {
            FollowEvent::Began(_) => self.live.clear(),
            FollowEvent::Output(pieces) => self.pass_on_all(&pieces)?,
            FollowEvent::Unreadable(error) => {
                self.live.break_line();
                self.worst = self.worst.max(Some(tell(self.context, &error.into())));
            }
            FollowEvent::Ended { attempt, job } => {
                if let Some(note) = between(&attempt, &job, self.store.now()?) {
                    self.live.note(&note);
                }
                self.waits_since = Instant::now();
            }
            FollowEvent::Finished(job) => return Ok(Some(job)),
        }
        Ok(None)
    }

    fn pass_on_all(&mut self, pieces: &[Piece]) -> Result<(), Stop> {
        for piece in pieces {
            match piece {
                Piece::Output(chunk) => self.pass_on(chunk)?,
                Piece::Cut { bytes } => self.live.note(&format!("[… {} cut …]", rough_size(*bytes))),
            }
        }
        Ok(())
    }

    fn pass_on(&mut self, chunk: &Chunk) -> Result<(), Stop> {
        let mut rest = chunk.bytes.as_slice();
        while !rest.is_empty() {
            match self.live.write(chunk.stream, rest, self.interrupts) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return self.lose_reader(),
                Err(error) => {
                    let failure: Failure = error.into();
                    return Err(failure.with_hint(self.how_to_come_back()).into());
                }
            }
            if let Some(signal) = self.interrupts.take() {
                self.heed(signal)?;
            }
        }
        Ok(())
    }

    /// Ends as the command would have, had it written to that pipe itself. What somebody else enqueued goes on.
    fn lose_reader(&mut self) -> Result<(), Stop> {
        if !self.is_existing {
            self.cancel()?;
        }
        Err(Stop::Signal(Signal::PIPE))
    }

    fn finish(mut self, job: &Job) -> Result<ExitCode, Stop> {
        self.live.clear();
        signal::end_quietly_on_closed_pipe();
        if self.context.json {
            self.context.print_json(&EnqueuedJson { job: job.into(), existing: self.is_existing })?;
        }
        if self.is_unwanted && job.life.state.name() == StateName::Cancelled {
            self.live.aside(&format!("job {} is cancelled", self.id));
            return Err(Stop::Signal(Signal::INT));
        }
        let Some(code) = exit_code(job) else {
            self.live.break_line();
            WaitEnd::Finished(Box::new(job.clone())).verdict()?;
            return Ok(ExitCode::SUCCESS);
        };
        match (&job.latest.error, job.latest.signal) {
            // The exit code does not tell that it was no accident.
            (Some(error), _) if reports_excess(error) => self.live.note(error),
            (_, Some(signal)) => self.live.aside(&format!("killed by {signal}")),
            (_, None) => {}
        }
        let unreadable = self.worst.filter(|_| code == 0);
        Ok(unreadable.map_or(ExitCode::from(code), ExitCode::from))
    }

    // Somebody to run it

    /// Looks now and then whether there is a worker for the job, and says what it waits for.
    fn attend(&mut self) -> Result<(), Stop> {
        if let Some(loan) = &mut self.loan {
            loan.look(|| Ok(vec![self.id.clone()]))
                .map_err(|failure| failure.with_hint(come_back_to(&self.id)))?;
        }
        let now = Instant::now();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + LOOK_PAUSE;
        let Some(job) = self.store.find(&self.id)? else {
            // The next look says so.
            return Ok(());
        };
        let workers = live_workers(self.store)?;
        if !has_worker(&job, &workers) {
            self.start_worker(&job, workers.is_empty())?;
        }
        if self.waits_since.elapsed() >= LOOK_PAUSE {
            self.tell_of_waiting(&job)?;
        }
        Ok(())
    }

    fn start_worker(&mut self, job: &Job, is_alone: bool) -> Result<(), Stop> {
        start_for_job(self.context, &job.id).map_err(|failure| failure.with_hint(self.how_to_come_back()))?;
        let why = if is_alone { "no worker is running" } else { "no running worker would take it" };
        self.live.aside(&format!("{why}: started one for this job"));
        Ok(())
    }

    fn tell_of_waiting(&mut self, job: &Job) -> Result<(), Stop> {
        let Some(wait_reason) = wait_reason(self.store, job)? else {
            return Ok(());
        };
        if let (WaitReason::PausedQueue(pause), false) = (&wait_reason, self.was_told_of_pause) {
            let why = pause_of(job, pause);
            self.live.note(&format!("{why}, so the job waits; {}", self.how_to_come_back()));
            self.was_told_of_pause = true;
        }
        let now = self.store.now()?;
        self.live.wait_for(|| match wait_reason {
            WaitReason::PausedQueue(_) => format!("waiting for queue {} to go on", job.queue),
            WaitReason::Jobs { count } => format!("waiting for {} to complete", jobs(count.into())),
            WaitReason::Time(at) => format!("starts in {}", rough(at.since(now))),
            WaitReason::FullQueue { running } => {
                format!("waiting for room in queue {} ({} run)", job.queue, jobs(running))
            }
            WaitReason::Rate(at) => {
                format!("queue {} starts its next job in {}", job.queue, rough(at.since(now)))
            }
            WaitReason::Slot { running: 0 } => "waiting for a worker".to_owned(),
            WaitReason::Slot { running: 1 } => "waiting for a free slot (1 job runs)".to_owned(),
            WaitReason::Slot { running } => format!("waiting for a free slot ({} run)", jobs(running)),
        });
        Ok(())
    }

    // Somebody who watches

    /// On a terminal Ctrl-C asks. Where nobody can answer, a signal ends the watching and not the job.
    fn heed(&mut self, signal: Signal) -> Result<(), Stop> {
        if signal != Signal::INT || self.is_unwanted || !Live::can_ask() {
            return self.detach(signal);
        }
        self.live.give_way();
        let (store, id) = (self.store, &self.id);
        let is_over = || Ok(find(store, id)?.life.state.name().is_finished());
        match ask(self.context, self.interrupts, is_over)? {
            Answer::WaitOn => Ok(()),
            Answer::Detach(signal) => self.detach(signal),
            Answer::Cancel => {
                self.is_unwanted = true;
                Ok(self.cancel()?)
            }
        }
    }

    fn detach(&mut self, signal: Signal) -> Result<(), Stop> {
        self.live.note(&format!("detached: {}", self.how_to_come_back()));
        Err(Stop::Signal(signal))
    }

    /// A job that has ended by itself meanwhile is left as it is.
    fn cancel(&mut self) -> Result<(), OpError> {
        let answers = change(self.store, Verb::Cancel, std::slice::from_ref(&self.id), &user::name());
        answers.stopped.map_or(Ok(()), Err)
    }

    fn how_to_come_back(&self) -> String {
        come_back_to(&self.id)
    }
}

fn come_back_to(id: &JobId) -> String {
    format!("`queuectl logs -f {id}` shows the job, `queuectl wait {id}` waits for it")
}

fn pause_of(job: &Job, pause: &Pause) -> String {
    let reason = pause.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("queue {} is paused by {}{reason}", job.queue, pause.by)
}

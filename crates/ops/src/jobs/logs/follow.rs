//! Following a job: its output as it is printed, attempt by attempt, until the job is finished.
//!
//! The caller does the waiting: [`Follower::poll`] returns new events, and [`Follower::poll_delay`] says how long to wait
//! before the next poll. The follower has to poll, because the process that writes the log file sends no wake-ups.

use std::path::PathBuf;
use std::time::Duration;

use super::tail::Tail;
use super::{AttemptOutput, Piece, has_ended};
use crate::OpError;
use domain::job::{Attempt, Job};
use domain::values::name::JobId;
use store::{Notice, Store};
use sys::host;
use sys::poll::Poll;

/// The delay between two polls grows from the minimum to the maximum while nothing happens.
const MIN_POLL_DELAY: Duration = Duration::from_millis(1);
/// The minimum for a store that is asked over a network.
const MIN_REMOTE_POLL_DELAY: Duration = Duration::from_millis(10);
const MAX_POLL_DELAY: Duration = Duration::from_millis(100);

/// An event of a followed job, in order.
#[derive(Debug)]
pub enum FollowEvent {
    /// An attempt began; its output follows.
    Began(Attempt),
    Output(Vec<Piece>),
    /// Some or all of its output cannot be read. Following continues.
    Unreadable(OpError),
    /// All output of the attempt has been returned. `job` is the job at the time of that poll.
    Ended {
        attempt: Attempt,
        job: Box<Job>,
    },
    /// The job is completed, dead or cancelled; no further events follow.
    Finished(Box<Job>),
}

#[derive(Debug)]
pub struct Follower<'s> {
    store: &'s dyn Store,
    home: PathBuf,
    id: JobId,
    /// The lowest attempt number not yet followed.
    next: u32,
    /// For the attempts that had begun when following began.
    tail: Option<Tail>,
    /// The latest attempt at that time; `None` before the first poll.
    latest_at_start: Option<u32>,
    current: Option<CurrentAttempt>,
    is_over: bool,
    delays: Poll,
}

/// The attempt that is being followed.
#[derive(Debug)]
struct CurrentAttempt {
    number: u32,
    output: AttemptOutput,
    printed: u64,
    /// Its output so far is left out.
    skips_all: bool,
    is_unreadable: bool,
}

impl<'s> Follower<'s> {
    /// Follows an existing job from this attempt on. The attempt need not have begun.
    pub fn new(store: &'s dyn Store, home: PathBuf, id: JobId, from_attempt: u32) -> Self {
        let next = from_attempt.max(1);
        let least = if store.spans_machines() { MIN_REMOTE_POLL_DELAY } else { MIN_POLL_DELAY };
        let delays = Poll::growing(least, MAX_POLL_DELAY);
        Self {
            store,
            home,
            id,
            next,
            tail: None,
            latest_at_start: None,
            current: None,
            is_over: false,
            delays,
        }
    }

    /// Of what each attempt had printed when following began, only the last lines are returned.
    #[must_use]
    pub fn with_tail(self, tail: Option<Tail>) -> Self {
        Self { tail, ..self }
    }

    /// Returns new events. If there are none, poll again after [`Self::poll_delay`].
    pub fn poll(&mut self) -> Result<Vec<FollowEvent>, OpError> {
        let events = self.poll_once()?;
        if !events.is_empty() {
            self.delays.restart();
        }
        Ok(events)
    }

    /// How long to wait before the next poll: short while events arrive, longer while nothing happens.
    pub fn poll_delay(&mut self) -> Duration {
        self.delays.pause()
    }

    /// Reads the job before its output: if the job says that an attempt has ended, all of its output has been written.
    fn poll_once(&mut self) -> Result<Vec<FollowEvent>, OpError> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let job = self.store.find(&self.id)?.ok_or_else(|| OpError::Removed(self.id.clone()))?;
        self.latest_at_start.get_or_insert(job.life.attempts);
        let Some(current) = &mut self.current else {
            return self.begin(job);
        };
        let has_ended = has_ended(&job, current.number);
        match current.read(self.store, has_ended) {
            Ok(pieces) if !pieces.is_empty() => Ok(vec![FollowEvent::Output(pieces)]),
            Ok(_) if has_ended => self.end(job),
            Ok(_) => Ok(Vec::new()),
            Err(error @ OpError::Store(_)) => Err(error),
            Err(error) => {
                current.is_unreadable = true;
                Ok(vec![FollowEvent::Unreadable(error)])
            }
        }
    }

    /// Continues with the next existing attempt, or finishes.
    fn begin(&mut self, job: Job) -> Result<Vec<FollowEvent>, OpError> {
        if self.next <= job.life.attempts {
            // Older attempts may have been pruned.
            let Some(attempt) = self.history()?.into_iter().find(|attempt| attempt.number >= self.next)
            else {
                return Ok(Vec::new());
            };
            if attempt.ending.is_none() {
                self.store.announce(Notice::Reader { worker: &attempt.worker, job: job.number })?;
            }
            let tail = self.tail.filter(|_| Some(attempt.number) <= self.latest_at_start);
            self.next = attempt.number + 1;
            self.current = Some(CurrentAttempt {
                number: attempt.number,
                output: AttemptOutput::new(&self.home, &job, &attempt).with_tail(tail),
                printed: 0,
                skips_all: tail.is_some_and(|tail| tail.lines == 0),
                is_unreadable: false,
            });
            return Ok(vec![FollowEvent::Began(attempt)]);
        }
        if job.life.state.name().is_finished() {
            self.is_over = true;
            return Ok(vec![FollowEvent::Finished(Box::new(job))]);
        }
        Ok(Vec::new())
    }

    fn end(&mut self, job: Job) -> Result<Vec<FollowEvent>, OpError> {
        let history = self.history()?;
        let Some(current) = self.current.take() else {
            return Ok(Vec::new());
        };
        let mut events = Vec::new();
        if let Some(attempt) = history.into_iter().find(|attempt| attempt.number == current.number) {
            let found_nothing = current.printed == 0 && !current.is_unreadable && !current.skips_all;
            events.extend(
                found_nothing.then(|| missing(&self.id, &attempt)).flatten().map(FollowEvent::Unreadable),
            );
            events.push(FollowEvent::Ended { attempt, job: Box::new(job) });
        }
        Ok(events)
    }

    fn history(&self) -> Result<Vec<Attempt>, OpError> {
        Ok(self.store.record(&self.id)?.map(|record| record.history).unwrap_or_default())
    }
}

impl CurrentAttempt {
    fn read(&mut self, store: &dyn Store, has_ended: bool) -> Result<Vec<Piece>, OpError> {
        if self.is_unreadable {
            return Ok(Vec::new());
        }
        let pieces = self.output.read(store, has_ended)?;
        self.printed += pieces.iter().map(Piece::printed).sum::<u64>();
        Ok(pieces)
    }
}

/// The error for an attempt without any output found; `None` if it printed nothing.
pub fn missing(job: &JobId, attempt: &Attempt) -> Option<OpError> {
    attempt.ending.as_ref().filter(|ending| ending.log_bytes > 0)?;
    let (job, number) = (job.clone(), attempt.number);
    Some(if attempt.host == host::name() {
        OpError::OutputMissing { job, attempt: number }
    } else {
        OpError::OutputElsewhere { job, attempt: number, host: attempt.host.clone() }
    })
}

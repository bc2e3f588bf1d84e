//! Following a job: its output as it comes, attempt after attempt, until it is finished.
//!
//! The waiting is left to the caller: [`Follower::look`] says what is new, [`Follower::pause`] how long to wait before the
//! next look. There is nothing to be woken by: a log file is written by whoever runs the job.

use std::path::PathBuf;
use std::time::Duration;

use super::{AttemptOutput, Piece, has_ended};
use crate::OpError;
use crate::worker::announce;
use domain::job::{Attempt, Job};
use domain::values::name::JobId;
use store::Store;

/// The pause between two looks grows from the first to the second while nothing happens.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// By which part of itself it grows. So it is that part of the time that has gone by, and what takes long may be
/// noticed later than what is over in a moment.
const GROWTH: u32 = 10;

/// Something that happened, in order.
#[derive(Debug)]
pub enum News {
    /// An attempt began; what follows is its output.
    Began(Attempt),
    Output(Vec<Piece>),
    /// Some of its output, or all, cannot be shown. The rest goes on.
    Unreadable(OpError),
    /// All of its output has been told. The job is as it was when that was noticed.
    Ended {
        attempt: Attempt,
        job: Box<Job>,
    },
    /// The job is completed, dead or cancelled: this was all.
    Finished(Box<Job>),
}

#[derive(Debug)]
pub struct Follower<'s> {
    store: &'s dyn Store,
    home: PathBuf,
    id: JobId,
    /// The attempt that is told next.
    next: u32,
    present: Option<Present>,
    is_over: bool,
    pause: Duration,
}

/// The attempt that is being told.
#[derive(Debug)]
struct Present {
    number: u32,
    output: AttemptOutput,
    printed: u64,
    is_unreadable: bool,
}

impl<'s> Follower<'s> {
    /// Follows a job that is there, from this attempt on. It need not have begun.
    pub fn new(store: &'s dyn Store, home: PathBuf, id: JobId, from_attempt: u32) -> Self {
        let next = from_attempt.max(1);
        Self { store, home, id, next, present: None, is_over: false, pause: SHORTEST_PAUSE }
    }

    /// What is new. Nothing: look again after [`Self::pause`].
    pub fn look(&mut self) -> Result<Vec<News>, OpError> {
        let news = self.look_once()?;
        let longer = (self.pause + self.pause / GROWTH).min(LONGEST_PAUSE);
        self.pause = if news.is_empty() { longer } else { SHORTEST_PAUSE };
        Ok(news)
    }

    /// Short while something happens, longer while nothing does.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// The job is looked at before its output: when it says that an attempt is over, then all of its output is there.
    fn look_once(&mut self) -> Result<Vec<News>, OpError> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let job = self.store.find(&self.id)?.ok_or_else(|| OpError::Removed(self.id.clone()))?;
        let Some(present) = &mut self.present else {
            return self.begin(job);
        };
        let has_ended = has_ended(&job, present.number);
        match present.read(self.store, has_ended) {
            Ok(pieces) if !pieces.is_empty() => Ok(vec![News::Output(pieces)]),
            Ok(_) if has_ended => self.end(job),
            Ok(_) => Ok(Vec::new()),
            Err(error @ OpError::Store(_)) => Err(error),
            Err(error) => {
                present.is_unreadable = true;
                Ok(vec![News::Unreadable(error)])
            }
        }
    }

    /// Goes on to the next attempt that there is, or to the end.
    fn begin(&mut self, job: Job) -> Result<Vec<News>, OpError> {
        if self.next <= job.life.attempts {
            // Older attempts may no longer be kept.
            let Some(attempt) = self.history()?.into_iter().find(|attempt| attempt.number >= self.next)
            else {
                return Ok(Vec::new());
            };
            if attempt.ending.is_none() {
                announce::reader(self.store, &attempt.worker, job.number)?;
            }
            let output = AttemptOutput::new(&self.home, &job, &attempt);
            self.next = attempt.number + 1;
            self.present = Some(Present { number: attempt.number, output, printed: 0, is_unreadable: false });
            return Ok(vec![News::Began(attempt)]);
        }
        if job.life.state.name().is_finished() {
            self.is_over = true;
            return Ok(vec![News::Finished(Box::new(job))]);
        }
        Ok(Vec::new())
    }

    fn end(&mut self, job: Job) -> Result<Vec<News>, OpError> {
        let history = self.history()?;
        let Some(present) = self.present.take() else {
            return Ok(Vec::new());
        };
        let mut news = Vec::new();
        if let Some(attempt) = history.into_iter().find(|attempt| attempt.number == present.number) {
            let found_nothing = present.printed == 0 && !present.is_unreadable;
            news.extend(found_nothing.then(|| missing(&self.id, &attempt)).flatten().map(News::Unreadable));
            news.push(News::Ended { attempt, job: Box::new(job) });
        }
        Ok(news)
    }

    fn history(&self) -> Result<Vec<Attempt>, OpError> {
        Ok(self.store.record(&self.id)?.map(|record| record.history).unwrap_or_default())
    }
}

impl Present {
    fn read(&mut self, store: &dyn Store, has_ended: bool) -> Result<Vec<Piece>, OpError> {
        if self.is_unreadable {
            return Ok(Vec::new());
        }
        let pieces = self.output.read(store, has_ended)?;
        self.printed += pieces.iter().map(Piece::printed).sum::<u64>();
        Ok(pieces)
    }
}

/// What is wrong with an attempt of which nothing was found: `None` if it printed nothing.
pub fn missing(job: &JobId, attempt: &Attempt) -> Option<OpError> {
    let ending = attempt.ending.as_ref()?;
    (ending.log_bytes > 0).then(|| OpError::OutputGone {
        job: job.clone(),
        attempt: attempt.number,
        host: attempt.host.clone(),
    })
}

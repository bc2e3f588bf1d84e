//! The thread that reads the store: each second, and at once when the user asks for something else. It looks first whether
//! anything has changed. A log that grows is read more often.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{EventfdFlags, eventfd};

use super::log::LogSource;
use super::snapshot::{Snapshot, read_parts};
use super::{Message, Question};
use domain::values::clock::TimeFormat;
use ops::OpError;
use ops::home::location::Location;
use ops::home::open::open_existing;
use ops::status::watch::Watch;
use store::{Store, StoreVersion};

const INTERVAL: Duration = Duration::from_secs(1);
/// How often a log is read while its command runs.
const LOG_INTERVAL: Duration = Duration::from_millis(200);
/// What depends on time alone, such as a silent worker, is read this often.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Sends messages to the thread that draws, and wakes it.
#[derive(Debug)]
pub(crate) struct Waker {
    messages: Sender<Message>,
    event: OwnedFd,
}

impl Waker {
    /// The sender, the messages, and what becomes readable when one arrives.
    pub(crate) fn new() -> io::Result<(Self, Receiver<Message>, OwnedFd)> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (messages, inbox) = channel();
        Ok((Self { messages, event: event.try_clone()? }, inbox, event))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { messages: self.messages.clone(), event: self.event.try_clone()? })
    }

    pub(crate) fn send(&self, message: Message) {
        // An error means that the screen is gone, and this thread ends soon.
        let _ = self.messages.send(message);
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// The reading thread. Dropping it ends and joins the thread.
#[derive(Debug)]
pub(crate) struct Reader {
    questions: Option<Sender<Question>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(crate) fn start(location: Location, first: Question, waker: Waker) -> io::Result<Self> {
        let (questions, inbox) = channel();
        let work = move || {
            let mut desk = Desk { location, question: first, waker };
            desk.run(&inbox);
        };
        let thread = thread::Builder::new().name("reader".to_owned()).spawn(work)?;
        Ok(Self { questions: Some(questions), thread: Some(thread) })
    }

    pub(crate) fn ask(&self, question: Question) {
        if let Some(questions) = &self.questions {
            let _ = questions.send(question);
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.questions.take());
        if let Some(thread) = self.thread.take() {
            // After a panic the message has been printed.
            let _ = thread.join();
        }
    }
}

struct Desk {
    location: Location,
    question: Question,
    waker: Waker,
}

/// Why reading one store ended.
enum Pause {
    /// The screen is gone.
    Over,
    /// The store cannot be read now.
    Broken(OpError),
}

impl Desk {
    fn run(&mut self, inbox: &Receiver<Question>) {
        loop {
            let end = match open_existing(&self.location) {
                Ok(store) => self.read_store(store.as_ref(), inbox),
                Err(error) => Pause::Broken(error),
            };
            match end {
                Pause::Over => return,
                Pause::Broken(error) => self.waker.send(Message::Unreadable(ops::error::chain(&error))),
            }
            match inbox.recv_timeout(INTERVAL) {
                Ok(question) => self.question = question,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn read_store(&mut self, store: &dyn Store, inbox: &Receiver<Question>) -> Pause {
        let home = self.location.home.clone();
        let mut watch = Watch::new(store, &home, TimeFormat::Short(sys::zone::local()));
        let began = Instant::now();
        let mut last: Option<(StoreVersion, Instant)> = None;
        let mut log: Option<LogSource> = None;
        loop {
            let step = self.step(store, &mut watch, began, &mut last, &mut log);
            if let Err(error) = step {
                return Pause::Broken(error);
            }
            let is_growing = log.as_ref().is_some_and(|log| !log.is_over());
            match inbox.recv_timeout(if is_growing { LOG_INTERVAL } else { INTERVAL }) {
                Ok(question) => {
                    // Only the latest counts.
                    self.question = inbox.try_iter().last().unwrap_or(question);
                    last = None;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Pause::Over,
            }
        }
    }

    fn step(
        &self,
        store: &dyn Store,
        watch: &mut Watch<'_>,
        began: Instant,
        last: &mut Option<(StoreVersion, Instant)>,
        log: &mut Option<LogSource>,
    ) -> Result<(), OpError> {
        let age = last.as_ref().map_or(Duration::MAX, |(_, at)| at.elapsed());
        if age >= INTERVAL {
            let version = store.version()?;
            if age >= MAX_AGE || last.as_ref().is_none_or(|(known, _)| *known != version) {
                *last = Some((version, Instant::now()));
                self.read_snapshot(store, watch, began, log)?;
            }
        }
        if let Some(source) = log
            && source.poll(store, &self.location.home)?
        {
            self.waker.send(Message::Log(source.text()));
        }
        Ok(())
    }

    fn read_snapshot(
        &self,
        store: &dyn Store,
        watch: &mut Watch<'_>,
        began: Instant,
        log: &mut Option<LogSource>,
    ) -> Result<(), OpError> {
        let home = &self.location.home;
        let seen = watch.snapshot(began.elapsed())?;
        let parts = read_parts(store, home, &self.question, &seen.status)?;
        let record = parts.job.as_ref();
        if !log.as_ref().zip(record).is_some_and(|(log, record)| log.answers(record, self.question.log)) {
            *log = record.and_then(|record| LogSource::open(home, record, self.question.log));
        }
        self.waker.send(Message::Snapshot(Box::new(Snapshot {
            question: self.question.clone(),
            at: seen.at,
            status: seen.status,
            rate: seen.recent,
            running: seen.running,
            history: parts.history,
            rows: parts.rows,
            job: parts.job,
        })));
        Ok(())
    }
}

//! What the screen shows, read from the store by a thread of its own.

pub(crate) mod diff;
pub(crate) mod log;
mod reader;
pub(crate) mod snapshot;

pub(crate) use self::reader::{Reader, Waker};

use domain::values::name::JobId;
use ops::jobs::list::filter_text::FilterText;
use store::Order;

use self::log::LogText;
use self::snapshot::Snapshot;
use crate::actions::ActionResult;
use crate::tab::Tab;

/// What the reader has to read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Question {
    pub(crate) tab: Tab,
    pub(crate) filter: FilterText,
    pub(crate) order: Order,
    /// How many rows of a list.
    pub(crate) rows: usize,
    pub(crate) job: Option<JobId>,
    pub(crate) log: LogQuestion,
}

/// Which output of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogQuestion {
    /// The latest unless given.
    pub(crate) attempt: Option<u32>,
    /// Compare with the attempt before it.
    pub(crate) is_diff: bool,
}

/// What arrives from other threads.
#[derive(Debug)]
pub(crate) enum Message {
    Snapshot(Box<Snapshot>),
    Log(LogText),
    /// The store could not be read.
    Unreadable(String),
    Action(ActionResult),
    /// The line of the palette is over.
    LineEnded(ActionResult),
}

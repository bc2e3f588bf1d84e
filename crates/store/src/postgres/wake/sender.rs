//! Sending notifications. Each is a transaction of its own after the commit: inside it, commits would wait for each other.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::Notice;
use crate::postgres::identifier::literal;
use domain::job::NewJob;
use domain::values::name::{QueueName, WorkerId};
use sys::bell;

/// A sender names sleepers this often at most.
const INTERVAL: Duration = Duration::from_millis(50);
/// A notification need not survive a crash of the server, which ends all sessions that listen.
const UNSAFE: &str = "set local synchronous_commit = off";

/// Limits how often one process names a sleeper.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    last: Option<Instant>,
    /// A notification was left out.
    owes: bool,
}

impl Sender {
    /// Whether to send now. `wakes`: there are new ready jobs.
    pub(crate) fn is_due(&mut self, wakes: bool) -> bool {
        self.owes |= wakes;
        let may_send = self.last.is_none_or(|last| last.elapsed() >= INTERVAL);
        let is_due = self.owes && may_send;
        if is_due {
            self.last = Some(Instant::now());
            self.owes = false;
        }
        is_due
    }

    /// Whether a notification was left out.
    pub(crate) fn owes(&self) -> bool {
        self.owes
    }

    /// For a process that ends: whether it has left one out.
    pub(crate) fn take_owed(&mut self) -> bool {
        std::mem::take(&mut self.owes)
    }
}

/// Where a commit has made jobs ready, or put jobs that are due later.
pub(crate) enum ReadyJobs<'a> {
    Anywhere,
    In(BTreeSet<&'a QueueName>),
}

impl<'a> ReadyJobs<'a> {
    /// More queues than this are looked up.
    const MAX_QUEUES: usize = 8;

    pub(crate) fn of(jobs: &'a [NewJob]) -> Self {
        let queues: BTreeSet<&QueueName> = jobs.iter().map(|job| &job.queue).collect();
        if queues.len() > Self::MAX_QUEUES { Self::Anywhere } else { Self::In(queues) }
    }

    /// Whether a worker serves them. Names that are known make a statement that a new session plans in half the time.
    fn are_served(&self) -> String {
        match self {
            // The notice of a job that is due later wakes one worker, which then knows when to look.
            Self::Anywhere => "exists (select 1 from queues q
                         where q.name in (select jsonb_array_elements_text(cast(w.queues as jsonb)))
                               and exists (select 1 from ready r where r.queue_id = q.id))
              or exists (select 1 from waiting
                         where due_at < cast(extract(epoch from now()) * 1000 as bigint) + 60000)"
                .to_owned(),
            Self::In(queues) => {
                let has = |queue: &&QueueName| {
                    format!("position({} in w.queues) > 0", literal(&format!("\"{queue}\"")))
                };
                queues.iter().map(has).collect::<Vec<_>>().join(" or ")
            }
        }
    }
}

/// Names a worker that sleeps and serves a queue with ready jobs, or with jobs that are due soon.
pub(crate) fn name_sleeper(
    schema: &str,
    ready: &ReadyJobs<'_>,
    hops: u8,
    except: Option<&WorkerId>,
) -> String {
    let except = literal(except.map_or("", WorkerId::as_str));
    let sleeper = format!(
        "w.listens = 1 and w.state = 'running' and w.id <> {except} and (w.queues is null or {})",
        ready.are_served()
    );
    // A transaction of the worker itself may hold its row, such as a heartbeat, which does not look for jobs. If no other
    // worker sleeps, it is named all the same, and keeps its mark.
    format!(
        "{UNSAFE};
         with named as (
           update workers set listens = 0 where seq = (
             select w.seq from workers w where {sleeper} order by w.seq desc limit 1 for update skip locked)
           returning id),
         busy as (
           select w.id from workers w where {sleeper} and not exists (select 1 from named) order by w.seq desc limit 1)
         select pg_notify({channel}, 'w:{hops}:' || id) from (select id from named union all select id from busy) found",
        channel = own_channel(schema, "id"),
    )
}

pub(crate) fn notify(schema: &str, notice: Notice<'_>) -> String {
    let (channel, payload) = match notice {
        Notice::Orders => (literal(schema), "o:*".to_owned()),
        Notice::Reader { worker, job } => {
            (own_channel(schema, &literal(worker.as_str())), format!("r:{job}:{worker}"))
        }
    };
    format!("{UNSAFE}; select pg_notify({channel}, {})", literal(&payload))
}

/// The channel of one worker, as an expression of SQL; so is its id. The name of a channel is short, and those of schemas and
/// workers need not be.
pub(crate) fn own_channel(schema: &str, id: &str) -> String {
    format!("left(encode(sha256(convert_to({} || ' ' || {id}, 'UTF8')), 'hex'), 40)", literal(schema))
}

/// What a payload says to one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Work { hops: u8 },
    Orders,
    Reader { job: u64 },
}

impl Heard {
    /// `None` if it is for another worker, or of another program.
    pub(crate) fn parse(payload: &str, worker: &WorkerId) -> Option<Self> {
        let (kind, rest) = payload.split_once(':')?;
        let (number, name) = rest.split_once(':').unwrap_or(("", rest));
        if name != "*" && name != worker.as_str() {
            return None;
        }
        match kind {
            "w" => Some(Self::Work { hops: number.parse().ok().filter(|hops| *hops <= bell::MAX_HOPS)? }),
            "o" => Some(Self::Orders),
            "r" => Some(Self::Reader { job: number.parse().ok()? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_hears_what_is_for_it() {
        let worker: WorkerId = "w-1".parse().expect("an id");
        let hear = |payload| Heard::parse(payload, &worker);
        assert_eq!(hear("w:64:w-1"), Some(Heard::Work { hops: 64 }));
        assert_eq!(hear("o:*"), Some(Heard::Orders));
        assert_eq!(hear("o:w-1"), Some(Heard::Orders));
        assert_eq!(hear("r:17:w-1"), Some(Heard::Reader { job: 17 }));
        for other in ["w:64:w-2", "o:w-2", "r:17:w-2", "w:65:w-1", "w:w-1", "x:1:w-1", "", "hello"] {
            assert_eq!(hear(other), None, "{other}");
        }
    }

    #[test]
    fn a_notification_that_comes_too_soon_is_sent_later() {
        let mut sender = Sender::default();
        assert!(!sender.is_due(false) && sender.is_due(true));
        assert!(!sender.is_due(true), "the second is too early");
        sender.last = Instant::now().checked_sub(INTERVAL);
        assert!(sender.is_due(false) && !sender.take_owed());
        assert!(!sender.is_due(true) && sender.take_owed() && !sender.take_owed());
    }
}

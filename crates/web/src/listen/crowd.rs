//! The open connections. When there is no room for another one, the connection that has been waiting the longest for a
//! request is closed: half-open connections of one client lock out no other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The number of open connections, plus one for each stream.
pub(crate) const MAX_CONNECTIONS: usize = 256;

#[derive(Debug)]
pub(crate) struct Crowd {
    members: Mutex<Members>,
    max: usize,
    /// Notified when a connection has ended.
    left: Notify,
}

#[derive(Debug, Default)]
struct Members {
    /// By the order in which they began to wait.
    all: BTreeMap<u64, Member>,
    next: u64,
}

#[derive(Debug)]
struct Member {
    is_busy: bool,
    close: Arc<Notify>,
}

impl Crowd {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { members: Mutex::default(), max, left: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection, if need be in place of an idle one; `None` if every connection has a request.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<Seat> {
        let mut members = self.lock();
        if members.all.len() >= self.max {
            let idle = members.all.iter().find(|(_, member)| !member.is_busy).map(|(number, _)| *number)?;
            members.all.remove(&idle).inspect(|member| member.close.notify_one());
        }
        let number = members.next;
        members.next += 1;
        let close = Arc::new(Notify::new());
        members.all.insert(number, Member { is_busy: false, close: Arc::clone(&close) });
        Some(Seat { crowd: Arc::clone(self), number: Mutex::new(number), close })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().all.is_empty()
    }

    /// Waits until no connection is left.
    pub(crate) async fn empty(&self) {
        loop {
            let left = self.left.notified();
            if self.is_empty() {
                return;
            }
            left.await;
        }
    }
}

/// The place of one connection.
#[derive(Debug)]
pub(crate) struct Seat {
    crowd: Arc<Crowd>,
    number: Mutex<u64>,
    close: Arc<Notify>,
}

impl Seat {
    /// Whether the connection has a request. One that waits again is the last to be closed.
    pub(crate) fn set_busy(&self, is_busy: bool) {
        let mut own = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        let mut members = self.crowd.lock();
        let Some(member) = members.all.remove(&own) else {
            return;
        };
        *own = members.next;
        members.next += 1;
        members.all.insert(*own, Member { is_busy, ..member });
    }

    /// Returns when the connection is to be closed for another one.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let own = *self.number.lock().unwrap_or_else(PoisonError::into_inner);
        self.crowd.lock().all.remove(&own);
        self.crowd.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_waits_the_longest_makes_room() {
        let crowd = Crowd::new(2);
        let (first, second) = (crowd.admit().expect("room"), crowd.admit().expect("room"));
        first.set_busy(true);
        first.set_busy(false);
        let third = crowd.admit().expect("in place of the second");
        first.set_busy(true);
        third.set_busy(true);
        assert!(crowd.admit().is_none(), "both have a request");
        second.set_busy(true);
        assert_eq!(crowd.lock().all.len(), 2, "a connection that is being closed takes no place");
        drop((first, second, third));
        assert!(crowd.is_empty());
    }
}

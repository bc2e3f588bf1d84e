//! A process that survived SIGKILL: it runs as another user (sudo, setuid), or waits for a disk that does not respond.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use store::{LeaseRef, UnkillableProcess};
use sys::process;

/// How long after SIGKILL a process that this user may not signal counts as unkillable.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// The same for a process that may be signalled: freeing much memory takes time, especially on a busy machine.
const SLOW_KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to send SIGKILL again: the process may have dropped its privileges since.
pub(crate) const KILL_RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Survivor {
    pub(crate) pid: Pid,
    start_time: u64,
    why: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Forbidden,
    Slow,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Self::Forbidden => "this user may not signal it",
            Self::Slow => "it does not end after SIGKILL",
        }
    }

    fn counts_after(self) -> Duration {
        match self {
            Self::Forbidden => KILL_TIMEOUT,
            Self::Slow => SLOW_KILL_TIMEOUT,
        }
    }
}

impl Survivor {
    /// `None` if it has ended.
    pub(crate) fn inspect(pid: Pid) -> Option<Self> {
        let stat = process::stat(pid).filter(|stat| !stat.is_zombie)?;
        let why = match test_kill_process(pid) {
            Err(Errno::PERM) => Reason::Forbidden,
            Ok(()) | Err(_) => Reason::Slow,
        };
        Some(Self { pid, start_time: stat.start_time, why })
    }

    /// The survivor as the store records it.
    pub(crate) fn of(self, lease: &LeaseRef) -> UnkillableProcess {
        let Self { pid, start_time, why } = self;
        let (pid, why) = (pid.as_raw_pid().cast_unsigned(), why.text().to_owned());
        UnkillableProcess { lease: lease.clone(), pid, start_time, why }
    }
}

/// Those of these processes that count as unkillable because they are alive `killed_for` after SIGKILL.
pub(crate) fn survivors(pids: impl IntoIterator<Item = Pid>, killed_for: Duration) -> Vec<Survivor> {
    let living = pids.into_iter().filter_map(Survivor::inspect);
    living.filter(|survivor| killed_for >= survivor.why.counts_after()).collect()
}

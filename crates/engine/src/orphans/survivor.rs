//! A process that outlived SIGKILL: one with other rights than the worker (sudo, setuid), or one that waits for a disk that
//! does not answer.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use store::{LeaseRef, UnkillableProcess};
use sys::process;

/// How long after SIGKILL a process that may not be signalled counts as unkillable.
pub(crate) const DEATH: Duration = Duration::from_secs(1);
/// The same for one that may: to give back much memory takes its time, on a busy machine above all.
const SLOW_DEATH: Duration = Duration::from_secs(10);
/// How often it is killed again: it may have given up its rights meanwhile.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Survivor {
    pub(crate) pid: Pid,
    start_time: u64,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Forbidden,
    Slow,
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Self::Forbidden => "this user may not signal it",
            Self::Slow => "it does not end after SIGKILL",
        }
    }

    fn counts_after(self) -> Duration {
        match self {
            Self::Forbidden => DEATH,
            Self::Slow => SLOW_DEATH,
        }
    }
}

impl Survivor {
    /// `None` if it has ended.
    pub(crate) fn look(pid: Pid) -> Option<Self> {
        let stat = process::stat(pid).filter(|stat| !stat.is_zombie)?;
        let why = match test_kill_process(pid) {
            Err(Errno::PERM) => Why::Forbidden,
            Ok(()) | Err(_) => Why::Slow,
        };
        Some(Self { pid, start_time: stat.start_time, why })
    }

    /// As the store keeps it.
    pub(crate) fn of(self, lease: &LeaseRef) -> UnkillableProcess {
        let Self { pid, start_time, why } = self;
        let (pid, why) = (pid.as_raw_pid().cast_unsigned(), why.text().to_owned());
        UnkillableProcess { lease: lease.clone(), pid, start_time, why }
    }
}

/// Those of these processes that count as unkillable: they live this long after they were killed.
pub(crate) fn survivors(pids: &[Pid], killed_for: Duration) -> Vec<Survivor> {
    let living = pids.iter().filter_map(|pid| Survivor::look(*pid));
    living.filter(|survivor| killed_for >= survivor.why.counts_after()).collect()
}

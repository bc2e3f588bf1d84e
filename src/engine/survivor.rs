//! A process that outlived SIGKILL: one with other rights than the worker (sudo, setuid), or one that waits for a disk that
//! does not answer.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::store::{LeaseRef, Unkillable};
use crate::sys::process;

/// How long a process that was sent SIGKILL may take to end before it counts as unkillable.
pub(super) const DEATH: Duration = Duration::from_secs(1);
/// How often it is killed again: it may have given up its rights meanwhile.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Survivor {
    pub(super) pid: Pid,
    start_time: u64,
    why: String,
}

impl Survivor {
    /// `None` if it has ended.
    pub(super) fn look(pid: Pid) -> Option<Self> {
        let stat = process::stat(pid).filter(|stat| !stat.is_zombie)?;
        let why = match test_kill_process(pid) {
            Err(Errno::PERM) => "this user may not signal it",
            Ok(()) | Err(_) => "it does not end after SIGKILL",
        };
        Some(Self { pid, start_time: stat.start_time, why: why.to_owned() })
    }

    /// As the store keeps it.
    pub(super) fn of(self, lease: &LeaseRef) -> Unkillable {
        let Self { pid, start_time, why } = self;
        Unkillable { lease: lease.clone(), pid: pid.as_raw_pid().cast_unsigned(), start_time, why }
    }
}

/// Those of these processes that live.
pub(super) fn survivors(pids: &[Pid]) -> Vec<Survivor> {
    pids.iter().filter_map(|pid| Survivor::look(*pid)).collect()
}

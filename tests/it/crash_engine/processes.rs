//! Signalling the processes of a test, and waiting for conditions.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sys::process;

/// How long to wait for a condition on a machine that is busy with other tests.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two checks.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait(what: &str, is_so: impl FnMut() -> bool) -> Duration {
    wait_within(WAIT_TIMEOUT, what, is_so)
}

/// Waits until a condition holds, or panics after `timeout`. Returns how long it took.
#[track_caller]
pub(crate) fn wait_within(timeout: Duration, what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < timeout, "not within {timeout:?}: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
    began.elapsed()
}

pub(crate) fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed()).expect("a pid")
}

/// Signals a process; does nothing if it has already ended.
pub(crate) fn kill(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

/// Stops processes, and continues them after this time.
pub(crate) fn stop_for(time: Duration, processes: &[Pid]) {
    kill_all(processes, Signal::STOP);
    // The duration of the fault, not a wait for a condition.
    std::thread::sleep(time);
    kill_all(processes, Signal::CONT);
}

pub(crate) fn kill_all(processes: &[Pid], signal: Signal) {
    for pid in processes {
        kill(*pid, signal);
    }
}

pub(crate) fn is_alive(pid: Pid) -> bool {
    process::stat(pid).is_some_and(|stat| !stat.is_zombie)
}

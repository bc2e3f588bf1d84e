//! Processes of a test, and waiting for what they do.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sys::process;

/// How long anything may take on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

/// Waits for a state.
#[track_caller]
pub(crate) fn wait(what: &str, is_so: impl FnMut() -> bool) -> Duration {
    wait_within(PATIENCE, what, is_so)
}

/// Waits for a state, for this long at most. Gives how long it took.
#[track_caller]
pub(crate) fn wait_within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < patience, "not within {patience:?}: {what}");
        std::thread::sleep(LOOK);
    }
    began.elapsed()
}

pub(crate) fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed()).expect("a pid")
}

/// To one that has ended already it does nothing.
pub(crate) fn kill(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

/// Stops processes, and lets them go on after this time.
pub(crate) fn stop_for(time: Duration, processes: &[Pid]) {
    kill_all(processes, Signal::STOP);
    // Not to wait for anything: this is how long the fault lasts.
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

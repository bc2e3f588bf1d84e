//! Each system call on a file of the home fails once, one after the other. An acknowledged job exists, a refused one does
//! not, and after an unknown outcome and a repetition there is one job.

use rustix::io::Errno;

use super::shim::{Fault, Shim, When};
use crate::cli::harness::{Call, Home, RunResult};

/// More system calls than one run makes.
const MAX_CALLS: u64 = 200;

fn call(home: &Home, id: &str) -> Call {
    home.call(["enqueue", "-q", "--id", id, "--if-absent", "--", "true"])
}

fn enqueue(home: &Home, shim: &Shim, id: &str) -> RunResult {
    call(home, id).envs(shim.variables()).run()
}

fn is_stored(home: &Home, id: &str) -> bool {
    home.jobs().iter().any(|job| job.id.as_str() == id)
}

/// Makes the nth call of this kind fail while one job is enqueued. Returns the exit code, or `None` if there were fewer calls.
fn strike(home: &Home, fault: Fault, error: Errno, nth: u64) -> Option<i32> {
    let shim = Shim::new(home);
    let id = format!("{fault:?}-{nth}");
    shim.fails(fault, error, When::Nth(nth));
    let ran = enqueue(home, &shim, &id);
    if shim.struck(fault) == 0 {
        ran.ok();
        return None;
    }
    let code = ran.status.code().unwrap_or_else(|| panic!("killed by a signal: {ran}"));
    let ran = if code == 0 { ran.ok() } else { ran.fails(code) };
    match code {
        0 => assert!(is_stored(home, &id), "it was acknowledged: {ran}"),
        5 => assert!(!is_stored(home, &id), "exit code 5 means that nothing was changed: {ran}"),
        6 => {}
        _ => panic!("unexpected exit code: {ran}"),
    }
    enqueue(home, &shim, &id).ok();
    let same = home.jobs().iter().filter(|job| job.id.as_str() == id).count();
    assert_eq!(same, 1, "{id} was enqueued again");
    Some(code)
}

/// Makes every call of these kinds fail, each on a new home from `make`. Returns the exit codes.
fn strike_all(make: impl Fn() -> Home, faults: &[Fault], error: Errno) -> Vec<i32> {
    let mut codes = Vec::new();
    for fault in faults {
        let seen: Vec<i32> = (1..MAX_CALLS).map_while(|nth| strike(&make(), *fault, error, nth)).collect();
        println!("{fault:?} {error}: {seen:?}");
        assert!(seen.len() + 1 < usize::try_from(MAX_CALLS).expect("a number"), "a run makes fewer calls");
        codes.extend(seen);
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// A home whose write-ahead log is long enough that the next writer checkpoints it.
fn used_home() -> Home {
    let home = Home::new();
    home.call(["enqueue", "-q", "-"]).with_stdin("{\"command\":\"true\"}\n".repeat(60)).run().ok();
    home
}

#[test]
fn fault_29_any_call_of_an_enqueue_fails_with_an_io_error() {
    let codes = strike_all(used_home, &Fault::ALL, Errno::IO);
    assert!(codes.contains(&6), "a commit is among the calls: {codes:?}");
}

#[test]
fn fault_29_any_call_of_the_first_enqueue_fails_with_an_io_error() {
    let codes = strike_all(Home::new, &Fault::ALL, Errno::IO);
    assert!(codes.contains(&5) && codes.contains(&6), "{codes:?}");
}

#[test]
fn fault_29_any_write_of_an_enqueue_finds_the_disk_full() {
    for make in [used_home, Home::new] {
        let codes = strike_all(make, &[Fault::Write, Fault::Allocate], Errno::NOSPC);
        assert!(codes.contains(&5) && !codes.contains(&6), "nothing was stored: {codes:?}");
    }
}

/// The arguments of `ulimit` for 512 MiB, far more than any file of these homes.
const FAR_LIMIT: &str = "-f 1048576";

#[test]
fn fault_29_a_failed_commit_is_unknown_even_under_a_distant_file_size_limit() {
    for error in [Errno::IO, Errno::FBIG] {
        let home = used_home();
        let shim = Shim::new(&home);
        // While another process has the store open, the first write to the log is the commit.
        let other = home.store();
        shim.only("-wal");
        shim.write_fails(error, When::Always);
        let limited = call(&home, "a").with_limit(FAR_LIMIT).envs(shim.variables());
        limited.run().fails(6).says("whether job `a` is stored is unknown").says("--id a");
        assert!(shim.struck(Fault::Write) > 0);
        drop(other);
    }
}

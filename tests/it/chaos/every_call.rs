//! Each call on a file of the home fails once, one after the other: what was acknowledged is there, what was refused is
//! not, and of what is unknown there is one job when it was asked for again.

use rustix::io::Errno;

use super::shim::{Fault, Shim, When};
use crate::cli::harness::{Call, Home, Ran};

/// More calls than one run makes.
const MANY: u64 = 200;

fn call(home: &Home, id: &str) -> Call {
    home.call(["enqueue", "-q", "--id", id, "--if-absent", "--", "true"])
}

fn enqueue(home: &Home, shim: &Shim, id: &str) -> Ran {
    call(home, id).envs(shim.variables()).run()
}

fn is_stored(home: &Home, id: &str) -> bool {
    home.jobs().iter().any(|job| job.id.as_str() == id)
}

/// Lets the n-th call of a kind fail for one job. Gives the exit code, or `None` if there were not that many calls.
fn strike(home: &Home, fault: Fault, error: Errno, nth: u64) -> Option<i32> {
    let shim = Shim::new(home);
    let id = format!("{fault:?}-{nth}");
    shim.fails(fault, error, When::Nth(nth));
    let ran = enqueue(home, &shim, &id);
    if shim.struck(fault) == 0 {
        ran.ok();
        return None;
    }
    let code = ran.status.code().unwrap_or_else(|| panic!("it died: {ran}"));
    let ran = if code == 0 { ran.ok() } else { ran.fails(code) };
    match code {
        0 => assert!(is_stored(home, &id), "it was acknowledged: {ran}"),
        5 => assert!(!is_stored(home, &id), "nothing was to have changed: {ran}"),
        6 => {}
        _ => panic!("no such code was expected: {ran}"),
    }
    enqueue(home, &shim, &id).ok();
    let same = home.jobs().iter().filter(|job| job.id.as_str() == id).count();
    assert_eq!(same, 1, "{id} was asked for again");
    Some(code)
}

/// Strikes every call of these kinds, each time on a home that `make` makes. Gives the codes that were seen.
fn strike_all(make: impl Fn() -> Home, faults: &[Fault], error: Errno) -> Vec<i32> {
    let mut codes = Vec::new();
    for fault in faults {
        let seen: Vec<i32> = (1..MANY).map_while(|nth| strike(&make(), *fault, error, nth)).collect();
        println!("{fault:?} {error}: {seen:?}");
        assert!(seen.len() + 1 < usize::try_from(MANY).expect("a number"), "a run has fewer calls");
        codes.extend(seen);
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// A home whose log is long enough to be folded in by the next one who writes.
fn used_home() -> Home {
    let home = Home::new();
    home.call(["enqueue", "-q", "-"]).with_stdin("{\"command\":\"true\"}\n".repeat(60)).run().ok();
    home
}

#[test]
fn fault_29_any_call_of_an_enqueue_fails_with_an_io_error() {
    let codes = strike_all(used_home, &Fault::ALL, Errno::IO);
    assert!(codes.contains(&6), "a commit is among them: {codes:?}");
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

/// In the words of `ulimit`: 512 MiB, which no file of these homes comes near.
const FAR_LIMIT: &str = "-f 1048576";

#[test]
fn fault_29_a_commit_is_unknown_also_where_there_is_a_limit_far_off() {
    for error in [Errno::IO, Errno::FBIG] {
        let home = used_home();
        let shim = Shim::new(&home);
        // While somebody has the store open, the first write to the log is that of the commit.
        let other = home.store();
        shim.only("-wal");
        shim.write_fails(error, When::Always);
        let limited = call(&home, "a").with_limit(FAR_LIMIT).envs(shim.variables());
        limited.run().fails(6).says("whether job `a` is stored is unknown").says("--id a");
        assert!(shim.struck(Fault::Write) > 0);
        drop(other);
    }
}

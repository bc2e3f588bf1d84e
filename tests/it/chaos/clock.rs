//! A clock that jumps under running workers: leases do not run out, the queue does not freeze. A retry waits until the
//! clock shows its time, as what was enqueued with `run_at` does, whichever way the clock got there.

use std::time::Duration;

use domain::job::life::StateName;
use store::Store;
use sys::process;

use super::shim::Shim;
use crate::crash_engine::harness::Ground;
use crate::crash_engine::processes::{pid, wait};

const DAY: i64 = 86_400;

/// Everything but the test itself goes by the clock of the shim.
fn ground() -> (Ground, Shim) {
    under_shim(Ground::with_short_leases())
}

fn under_shim(ground: Ground) -> (Ground, Shim) {
    let shim = Shim::new(&ground.home);
    (ground.under(shim.variables()), shim)
}

/// A job by the clock of the shim, not before this time has passed.
fn enqueue(ground: &Ground, id: &str, delay: &str) {
    let command = ". ./job.sh; say START; say END";
    ground.run(&["enqueue", "-q", "--id", id, "--delay", delay, "--command", command]).ok();
}

/// Lets the clock jump, and waits until every worker has beaten by the new time.
fn jump(ground: &Ground, shim: &Shim, seconds: i64) {
    shim.shift_clock(seconds);
    let since = ground.store.now().expect("a time").as_millis() + seconds * 1000;
    wait("every worker lives by the new time", || {
        let beats: Vec<i64> =
            ground.workers().iter().map(|worker| worker.last_heartbeat.as_millis()).collect();
        !beats.is_empty() && beats.iter().all(|beat| (since..since + 60_000).contains(beat))
    });
}

fn has_problems(ground: &Ground) -> bool {
    let status = ground.run(&["status", "--json"]).ok().json();
    !status["problems"].as_array().expect("a list").is_empty()
}

#[test]
fn fault_33_leases_outlast_jumps_of_the_clock_and_the_queue_goes_on() {
    let (ground, shim) = ground();
    ground.jobs(4, |_| "until_there go");
    ground.pool_of(&["--count", "2", "--concurrency", "3"]);
    (0..4).for_each(|at| ground.runs(&format!("j{at}"), 1, &[]));
    for (at, seconds) in [DAY, -DAY, 0, 365 * DAY, 0].into_iter().enumerate() {
        jump(&ground, &shim, seconds);
        enqueue(&ground, &format!("plain-{at}"), "0");
        wait("what was enqueued after the jump is completed", || {
            ground.state(&format!("plain-{at}")) == StateName::Completed
        });
        assert!(!has_problems(&ground), "nobody is silent, nothing waits");
        // Not to wait for anything: longer than a lease, in which nobody may lose one.
        std::thread::sleep(Duration::from_millis(1_500));
        assert_eq!(ground.processing(), 4, "after a jump by {seconds} s");
    }
    ground.put("go");
    wait("every job has ended", || ground.unfinished().is_empty());
    ground.stop_pools();
    for at in 0..4 {
        assert_eq!(ground.story_of_started(&format!("j{at}")), "completed: success");
    }
    assert!(shim.clock_shifted() > 0 && !ground.journal().contains("died"), "{}", ground.journal());
    // How long an attempt took is measured, and not told by the clock.
    let took = ground.home.show("j0")["history"][0]["duration_ms"].as_u64().expect("a number");
    assert!(took < 120_000, "{took} ms");
}

#[test]
fn fault_33_a_clock_set_forward_makes_due_what_waits_for_its_time() {
    let (ground, shim) = ground();
    ground.set("backoff_strategy", "fixed");
    ground.set("retry_delay", "1h");
    ground.set("max_backoff", "1h");
    ground.job("retry", "first && exit 1; true");
    enqueue(&ground, "in-an-hour", "1h");
    enqueue(&ground, "in-two-days", "48h");
    ground.pool();
    wait("it has failed", || ground.state("retry") == StateName::Failed);
    assert_eq!(ground.state("in-an-hour"), StateName::Pending);
    let run_at = ground.home.show("in-two-days")["run_at"].clone();

    jump(&ground, &shim, DAY);
    wait("its time has come", || ground.state("retry") == StateName::Completed);
    wait("its time has come", || ground.state("in-an-hour") == StateName::Completed);
    let late = ground.home.show("in-two-days");
    assert_eq!(
        (&late["state"], &late["run_at"]),
        (&"pending".into(), &run_at),
        "the time itself does not move"
    );
    jump(&ground, &shim, 2 * DAY + 60);
    wait("its time has come", || ground.state("in-two-days") == StateName::Completed);
    ground.finish();
    assert_eq!(ground.story_of_started("retry"), "completed: failure success");
}

#[test]
fn fault_33_a_clock_set_back_puts_off_what_waits_for_its_time_and_nothing_else() {
    // Where the time comes before the clock could be set back, the machine needs more of it.
    assert!([3, 12, 48].into_iter().any(puts_off), "the machine is too slow");
}

/// Jobs that wait for so many seconds; `false` if that was too short a time.
fn puts_off(seconds: u64) -> bool {
    let (ground, shim) = ground();
    let delay = format!("{seconds}s");
    ground.set("backoff_strategy", "fixed");
    ground.set("retry_delay", &delay);
    ground.job("retry", "first && exit 1; true");
    ground.pool();
    enqueue(&ground, "timed", &delay);
    wait("it has failed", || ground.find("retry").life.failures == 1);
    shim.shift_clock(-DAY);
    enqueue(&ground, "plain", "0");
    enqueue(&ground, "soon", "1s");
    wait("what waits for nothing runs", || ground.state("plain") == StateName::Completed);
    wait("what was enqueued by the new time runs", || ground.state("soon") == StateName::Completed);
    let waiting = || (ground.state("retry"), ground.state("timed"));
    let both = (StateName::Failed, StateName::Pending);
    if waiting() != both {
        shim.shift_clock(0);
        ground.finish();
        return false;
    }
    // Not to wait for anything: the time in which they would have run.
    std::thread::sleep(Duration::from_secs(seconds + 1));
    assert_eq!(waiting(), both);
    jump(&ground, &shim, 0);
    ground.finish();
    assert_eq!(ground.story_of_started("retry"), "completed: failure success");
    assert_eq!(ground.story_of_started("timed"), "completed: success");
    true
}

/// They have shed all marks but their session, whose leader has gone too.
const HIDDEN: &str = "escape by_session env -i PATH=$PATH bash unlock.sh";

#[test]
fn fault_33_what_the_dead_left_behind_is_found_after_a_jump_of_the_clock() {
    for seconds in [DAY, -DAY] {
        // What is started when the leases have run out may be a stranger's, so they must not.
        let (ground, shim) = under_shim(Ground::new());
        ground.job("a", &format!("first && {{ {HIDDEN}; until_there go; exit 0; }}"));
        let pool = ground.pool();
        ground.runs("a", 1, &["by_session"]);
        ground.kill_pool(pool);
        ground.put("go");
        let shell = pid(ground.ledger()[0].who.parse().expect("a pid"));
        wait("the shell has gone, and init knows", || process::stat(shell).is_none());
        shim.shift_clock(seconds);
        ground.pool();
        ground.finish();
        assert_eq!(ground.story_of_started("a"), "completed: lost success");
    }
}

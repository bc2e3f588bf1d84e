//! A wall clock that jumps while workers run: leases do not expire, and the queue does not freeze. A retry, like a job with
//! `run_at`, waits until the clock shows its time, even if the clock was set to get there.

use std::time::Duration;

use domain::job::life::StateName;
use sys::process;

use super::shim::Shim;
use crate::crash_engine::harness::CrashHome;
use crate::crash_engine::processes::{pid, wait};

const DAY: i64 = 86_400;

/// All processes except the test itself use the clock of the shim.
fn crash_home() -> (CrashHome, Shim) {
    under_shim(CrashHome::with_short_leases())
}

fn under_shim(crash_home: CrashHome) -> (CrashHome, Shim) {
    let shim = Shim::new(&crash_home.home);
    (crash_home.under(shim.variables()), shim)
}

/// Enqueues a job with this delay, by the clock of the shim.
fn enqueue(crash_home: &CrashHome, id: &str, delay: &str) {
    let command = ". ./job.sh; say START; say END";
    crash_home.run(&["enqueue", "-q", "--id", id, "--delay", delay, "--command", command]).ok();
}

/// Makes the clock jump, and waits until every worker has sent a heartbeat with the new time.
fn jump(crash_home: &CrashHome, shim: &Shim, seconds: i64) {
    shim.shift_clock(seconds);
    let since = crash_home.store.now().expect("a time").as_millis() + seconds * 1000;
    wait("every worker uses the new time", || {
        let beats: Vec<i64> =
            crash_home.workers().iter().map(|worker| worker.last_heartbeat.as_millis()).collect();
        !beats.is_empty() && beats.iter().all(|beat| (since..since + 60_000).contains(beat))
    });
}

fn has_problems(crash_home: &CrashHome) -> bool {
    let status = crash_home.run(&["status", "--json"]).ok().json();
    !status["problems"].as_array().expect("a list").is_empty()
}

#[test]
fn fault_33_leases_survive_jumps_of_the_clock_and_the_queue_keeps_running() {
    let (crash_home, shim) = crash_home();
    crash_home.jobs(4, |_| "until_there go");
    crash_home.pool_of(&["--count", "2", "--concurrency", "3"]);
    (0..4).for_each(|at| crash_home.runs(&format!("j{at}"), 1, &[]));
    for (at, seconds) in [DAY, -DAY, 0, 365 * DAY, 0].into_iter().enumerate() {
        jump(&crash_home, &shim, seconds);
        enqueue(&crash_home, &format!("plain-{at}"), "0");
        wait("the job enqueued after the jump is completed", || {
            crash_home.state(&format!("plain-{at}")) == StateName::Completed
        });
        // On a busy machine a heartbeat may be late.
        wait("no worker is silent and no job waits", || !has_problems(&crash_home));
        // This sleep is longer than a lease; no worker may lose one in this time.
        std::thread::sleep(Duration::from_millis(1_500));
        assert_eq!(crash_home.processing(), 4, "after a jump by {seconds} s");
    }
    crash_home.put("go");
    wait("every job has ended", || crash_home.unfinished().is_empty());
    crash_home.stop_pools();
    for at in 0..4 {
        assert_eq!(crash_home.story_of_started(&format!("j{at}")), "completed: success");
    }
    assert!(shim.clock_shifted() > 0 && !crash_home.journal().contains("died"), "{}", crash_home.journal());
    // The duration of an attempt is measured with the monotonic clock.
    let took = crash_home.home.show("j0")["history"][0]["duration_ms"].as_u64().expect("a number");
    assert!(took < 120_000, "{took} ms");
}

#[test]
fn fault_33_a_clock_set_forward_makes_waiting_jobs_due() {
    let (crash_home, shim) = crash_home();
    crash_home.set("backoff_strategy", "fixed");
    crash_home.set("retry_delay", "1h");
    crash_home.set("max_backoff", "1h");
    crash_home.job("retry", "first && exit 1; true");
    enqueue(&crash_home, "in-an-hour", "1h");
    enqueue(&crash_home, "in-two-days", "48h");
    crash_home.pool();
    wait("the job has failed", || crash_home.state("retry") == StateName::Failed);
    assert_eq!(crash_home.state("in-an-hour"), StateName::Pending);
    let run_at = crash_home.home.show("in-two-days")["run_at"].clone();

    jump(&crash_home, &shim, DAY);
    wait("the job that became due is completed", || crash_home.state("retry") == StateName::Completed);
    wait("the job that became due is completed", || crash_home.state("in-an-hour") == StateName::Completed);
    let late = crash_home.home.show("in-two-days");
    assert_eq!(
        (&late["state"], &late["run_at"]),
        (&"pending".into(), &run_at),
        "run_at itself does not change"
    );
    jump(&crash_home, &shim, 2 * DAY + 60);
    wait("the job that became due is completed", || crash_home.state("in-two-days") == StateName::Completed);
    crash_home.finish();
    assert_eq!(crash_home.story_of_started("retry"), "completed: failure success");
}

#[test]
fn fault_33_a_clock_set_back_delays_only_jobs_that_wait_for_a_time() {
    // On a slow machine the jobs may become due before the clock is set back; then try longer delays.
    assert!([3, 12, 48].into_iter().any(delays_waiting_jobs), "the machine is too slow");
}

/// Uses jobs that wait for `seconds`; returns `false` if that was too short.
fn delays_waiting_jobs(seconds: u64) -> bool {
    let (crash_home, shim) = crash_home();
    let delay = format!("{seconds}s");
    crash_home.set("backoff_strategy", "fixed");
    crash_home.set("retry_delay", &delay);
    crash_home.job("retry", "first && exit 1; true");
    crash_home.pool();
    enqueue(&crash_home, "timed", &delay);
    wait("the job has failed", || crash_home.find("retry").life.failures == 1);
    shim.shift_clock(-DAY);
    enqueue(&crash_home, "plain", "0");
    enqueue(&crash_home, "soon", "1s");
    wait("a job without a delay runs", || crash_home.state("plain") == StateName::Completed);
    wait("a job enqueued by the new time runs", || crash_home.state("soon") == StateName::Completed);
    let waiting = || (crash_home.state("retry"), crash_home.state("timed"));
    let both = (StateName::Failed, StateName::Pending);
    if waiting() != both {
        shim.shift_clock(0);
        crash_home.finish();
        return false;
    }
    // This sleep is the time in which they would have run.
    std::thread::sleep(Duration::from_secs(seconds + 1));
    assert_eq!(waiting(), both);
    jump(&crash_home, &shim, 0);
    crash_home.finish();
    assert_eq!(crash_home.story_of_started("retry"), "completed: failure success");
    assert_eq!(crash_home.story_of_started("timed"), "completed: success");
    true
}

/// Orphans that have shed all marks except their session, whose leader has exited too.
const HIDDEN: &str = "escape by_session env -i PATH=$PATH bash unlock.sh";

#[test]
fn fault_33_orphans_of_dead_workers_are_found_after_a_jump_of_the_clock() {
    for seconds in [DAY, -DAY] {
        // Leases must not expire: a process started after that may belong to an unrelated program.
        let (crash_home, shim) = under_shim(CrashHome::new());
        crash_home.job("a", &format!("first && {{ {HIDDEN}; until_there go; exit 0; }}"));
        let pool = crash_home.pool();
        crash_home.runs("a", 1, &["by_session"]);
        crash_home.kill_pool(pool);
        crash_home.put("go");
        let shell = pid(crash_home.ledger()[0].who.parse().expect("a pid"));
        wait("the shell has exited and was reaped", || process::stat(shell).is_none());
        shim.shift_clock(seconds);
        crash_home.pool();
        crash_home.finish();
        assert_eq!(crash_home.story_of_started("a"), "completed: lost success");
    }
}

//! A disk that fails for a while: the promises about commits, for `enqueue` and for workers.

use std::fs;
use std::time::{Duration, Instant};

use domain::job::life::StateName;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::shim::{Fault, Shim, When};
use crate::cli::harness::Home;
use crate::crash_engine::harness::CrashHome;
use crate::crash_engine::ledger::LineKind;
use crate::crash_engine::processes::{kill, wait};

// Enqueuing

#[test]
fn fault_29_an_enqueue_with_unknown_outcome_can_be_repeated() {
    for is_open_elsewhere in [false, true] {
        let home = Home::with_jobs(&["first"]);
        let shim = Shim::new(&home);
        // If no other process has the store open, the next one to open it finds the written data.
        let other = is_open_elsewhere.then(|| home.store());
        for (id, again) in [("a", &["--if-absent"][..]), ("b", &[])] {
            let call = || {
                home.call(
                    ["enqueue", "--id", id].into_iter().chain(again.iter().copied()).chain(["--", "true"]),
                )
            };
            shim.sync_fails(Errno::IO, When::Always);
            call()
                .envs(shim.variables())
                .run()
                .fails(6)
                .prints("")
                .says("unknown")
                .says(&format!("--id {id}"));
            shim.heal();
            let stored = home.count();
            let ran = call().run();
            match (ran.status.code(), again.is_empty()) {
                (Some(0), _) => {}
                (Some(4), true) => assert!(home.jobs().iter().any(|job| job.id.as_str() == id), "{ran}"),
                _ => panic!("expected exit code 0 or 4: {ran}"),
            }
            println!(
                "open elsewhere: {is_open_elsewhere}, {id}: {stored} stored before, then {}",
                ran.status
            );
        }
        assert_eq!(home.count(), 3, "one job for each id");
        drop(other);
        assert_eq!(home.count(), 3, "no job reappears later");
    }
}

#[test]
fn fault_29_a_generated_id_is_reported_when_its_commit_is_unknown() {
    let home = Home::with_jobs(&["first"]);
    let shim = Shim::new(&home);
    shim.sync_fails(Errno::IO, When::Always);
    let ran = home.call(["enqueue", "--", "true"]).envs(shim.variables()).run().fails(6);
    shim.heal();
    let hint = ran.stderr.lines().find(|line| line.starts_with("hint: ")).expect("a hint");
    let words: Vec<&str> = hint.split([' ', '`']).collect();
    let at = words.iter().position(|word| *word == "--id").expect("the hint names the id");
    home.run(["enqueue", "--id", words[at + 1], "--if-absent", "--", "true"]).ok();
    assert_eq!(home.count(), 2, "the first job, and one that was requested twice");
}

/// Enqueues jobs without ids while every commit fails, and returns the error, which names a job that shows whether they
/// were stored.
fn unknown_outcome_of_many(args: &[&str], stdin: &str, count: usize) -> Value {
    let home = Home::with_jobs(&["first"]);
    let shim = Shim::new(&home);
    shim.sync_fails(Errno::IO, When::Always);
    let call = || home.call(args).with_stdin(stdin).envs(shim.variables());
    let error = call().run().fails(6).error_json();
    shim.heal();
    let ids: Vec<&str> = error["ids"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
    assert_eq!(ids.len(), count, "{error}");
    let witness = format!("`queuectl show {}`", ids[0]);
    assert!(error["hint"].as_str().expect("a hint").contains(&witness), "{error}");
    let expected = if home.run(["show", ids[0]]).status.success() { count } else { 0 };
    let stored = home.jobs().into_iter().filter(|job| ids.contains(&job.id.as_str())).count();
    assert_eq!((stored, home.count()), (expected, expected + 1), "{error}");
    error
}

#[test]
fn fault_29_all_ids_of_a_batch_are_reported_when_its_commit_is_unknown() {
    let batch = format!("[{}]", vec![r#"{"command":"true"}"#; 60].join(","));
    let error = unknown_outcome_of_many(&["enqueue", "--json", &batch], "", 60);
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.starts_with("either all or none were stored: "), "{error}");
}

#[test]
fn fault_29_all_ids_of_a_stream_are_reported_when_its_commit_is_unknown() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), "{\"command\":\"true\"}\n".repeat(60)).expect("60 lines");
    let path = file.path().to_str().expect("text");
    let error = unknown_outcome_of_many(&["enqueue", "--json", "-q", "--file", path], "", 60);
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.starts_with("of the 60 jobs from line 1 on, either all or none were stored: "), "{error}");
    let error = unknown_outcome_of_many(&["enqueue", "--json", "-q", "-"], "\n{\"command\":\"true\"}\n", 1);
    assert!(error["hint"].as_str().expect("a hint").ends_with("the job of line 2 was stored"), "{error}");
}

#[test]
fn fault_29_nothing_is_stored_on_a_full_disk() {
    let home = Home::with_jobs(&["first"]);
    let shim = Shim::new(&home);
    // While another process has the store open.
    let other = home.store();
    shim.is_full();
    let call = || home.call(["enqueue", "--id", "a", "--", "true"]).envs(shim.variables());
    call().run().fails(5).prints("").says("the disk is full");
    assert_eq!(home.count(), 1);
    drop(other);
    // The first process to open the store must create the shared memory, for which there is no space either.
    call().run().fails(5).prints("").says("the disk is full");
    home.call(["list"]).envs(shim.variables()).run().fails(5).says("the disk is full");
    assert!(shim.struck(Fault::Write) >= 3);
    shim.heal();
    assert_eq!(home.count(), 1);
    call().run().ok().prints("a\n");
}

/// More jobs than one commit stores.
const LINES: usize = 11_000;

/// Makes the nth call of this kind fail while a stream of jobs is stored (with a large `nth`, only counts the calls). Returns
/// the exit code and the number of calls.
fn strike_stream(fault: Fault, error: Errno, nth: u64) -> (Option<i32>, u64) {
    let lines: Vec<String> =
        (0..LINES).map(|at| format!("{{\"id\":\"j{at}\",\"command\":\"true\"}}")).collect();
    let home = Home::with_jobs(&["first"]);
    let shim = Shim::new(&home);
    // While another process has the store open, written data without a commit is not recovered.
    let _other = home.store();
    let stream = || home.call(["enqueue", "-q", "--if-absent", "-"]).with_stdin(lines.join("\n"));
    shim.fails(fault, error, When::Nth(nth));
    let ran = stream().envs(shim.variables()).run();
    let stored = home.count() - 1;
    println!("{fault:?} {nth}: {stored} stored, {}", ran.stderr);
    let code = ran.status.code();
    if code == Some(0) {
        assert_eq!(stored, LINES, "all jobs were acknowledged");
    } else {
        let said =
            if stored == 0 { "nothing was stored".to_owned() } else { format!("{stored} jobs were stored") };
        let ran = ran.says(&said);
        if code == Some(6) {
            ran.says("whether more was stored is unknown").says("--if-absent");
        }
        stream().run().ok();
        assert_eq!(home.count() - 1, LINES, "the whole input can be repeated");
    }
    (code, shim.seen(fault))
}

#[test]
fn fault_29_a_stream_says_exactly_what_was_stored_before_the_disk_failed() {
    let (_, syncs) = strike_stream(Fault::Sync, Errno::IO, u64::MAX);
    let codes: Vec<_> = (1..=syncs).map(|nth| strike_stream(Fault::Sync, Errno::IO, nth).0).collect();
    assert!(codes.contains(&Some(6)) && !codes.contains(&Some(1)), "{codes:?}");
    let (_, writes) = strike_stream(Fault::Write, Errno::NOSPC, u64::MAX);
    let codes = [1, writes / 3, writes - 10].map(|nth| strike_stream(Fault::Write, Errno::NOSPC, nth).0);
    assert!(codes.contains(&Some(5)), "{codes:?}");
}

// Workers

/// The processor time that a process has used.
fn cpu_time(pid: Pid) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).expect("the process is alive");
    let after_name = stat.rsplit_once(')').expect("a name").1;
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).map(|word| word.parse::<u64>().expect("ticks")).sum();
    Duration::from_millis(ticks * 10)
}

/// How many problems the workers wrote to their journal.
fn reports(crash_home: &CrashHome) -> u64 {
    crash_home.journal().lines().filter(|line| line.contains("error: ")).count() as u64
}

/// A worker cannot commit for three leases, while eight jobs end; each result is recorded once commits succeed again.
fn outage(fault: impl Fn(&Shim)) {
    let crash_home = CrashHome::with_short_leases();
    let shim = Shim::new(&crash_home.home);
    let crash_home = crash_home.under(shim.variables());
    crash_home.jobs(8, |at| {
        [
            "until_there go",
            "until_there go; sleep 0.3",
            "until_there go; sleep 0.6",
            "until_there go; sleep 0.9",
        ][at % 4]
    });
    crash_home.job("next", "true");
    let pool = crash_home.pool_of(&["--concurrency", "8"]);
    (0..8).for_each(|at| crash_home.runs(&format!("j{at}"), 1, &[]));
    let worker = crash_home.worker_of(pool);

    fault(&shim);
    let (before, began) = (cpu_time(worker), Instant::now());
    crash_home.put("go");
    wait("every job has ended", || (0..8).all(|at| crash_home.has(LineKind::End, &format!("j{at}"), 1)));
    // If the disk is full, the worker may be unable to write the cause.
    let is_reported =
        |problem: &Value| problem["problem"] == "hindered_worker" || problem["problem"] == "silent_worker";
    wait("status reports the blocked worker", || {
        let status = crash_home.home.run(["status", "--json"]).ok().json();
        status["problems"].as_array().expect("a list").iter().any(is_reported)
    });
    // This sleep is the duration of the fault, not synchronisation.
    std::thread::sleep(Duration::from_secs(3));
    let used = cpu_time(worker).checked_sub(before).expect("processor time grows");
    let lasted = began.elapsed();
    assert_eq!(crash_home.state("j0"), StateName::Processing, "nothing can be recorded");
    assert_eq!(crash_home.state("next"), StateName::Pending, "nothing can be claimed");
    shim.heal();

    crash_home.finish();
    println!("{used:?} of processor time, {} reports\n{}", reports(&crash_home), crash_home.journal());
    for id in crash_home.ids() {
        assert_eq!(crash_home.story_of_started(&id), "completed: success");
    }
    assert!(used < lasted / 10, "{used:?} of processor time in {lasted:?}: the worker busy-waits");
    let reports = reports(&crash_home);
    // The worker tries four times a second.
    assert!(
        (1..=4 + lasted.as_secs()).contains(&reports),
        "{reports} in {lasted:?}: not every retry may be logged"
    );
}

#[test]
fn fault_29_results_wait_until_commits_succeed_again() {
    outage(|shim| shim.sync_fails(Errno::IO, When::Always));
}

#[test]
fn fault_29_results_wait_until_there_is_space_again() {
    outage(Shim::is_full);
}

#[test]
fn fault_29_results_wait_until_the_disk_can_be_written_again() {
    outage(|shim| shim.write_fails(Errno::ROFS, When::Always));
}

#[test]
fn fault_29_a_worker_that_dies_on_a_full_disk_is_recovered_when_there_is_space() {
    let crash_home = CrashHome::new();
    let shim = Shim::new(&crash_home.home);
    let crash_home = crash_home.under(shim.variables());
    crash_home.job("a", "first && hang");
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &[]);
    shim.is_full();
    kill(crash_home.worker_of(pool), Signal::KILL);
    wait("its command is dead", || !crash_home.has_shell("a", 1));
    wait("the supervisor has tried to recover the job", || crash_home.said().contains("the disk is full"));
    assert_eq!(crash_home.state("a"), StateName::Processing, "no job can be recovered");
    shim.heal();
    crash_home.finish();
    assert_eq!(crash_home.story_of_started("a"), "completed: lost success");
}

#[test]
fn fault_29_workers_record_each_result_once_while_commits_fail_at_random() {
    let crash_home = CrashHome::with_short_leases();
    let shim = Shim::new(&crash_home.home);
    let crash_home = crash_home.under(shim.variables());
    crash_home.jobs(60, |at| if at % 10 == 0 { "sleep 1.5" } else { "sleep 0.02" });
    crash_home.pool_of(&["--count", "2", "--concurrency", "2"]);
    shim.sync_fails(Errno::IO, When::Chance { per_mille: 200, seed: 29 });
    shim.write_fails(Errno::NOSPC, When::Chance { per_mille: 20, seed: 30 });
    shim.fails(Fault::Read, Errno::IO, When::Chance { per_mille: 20, seed: 31 });
    wait("every job has ended", || crash_home.unfinished().is_empty());
    shim.heal();
    println!("{} commits failed, {} writes", shim.struck(Fault::Sync), shim.struck(Fault::Write));
    crash_home.finish();
    for id in crash_home.ids() {
        let story = crash_home.story(&id);
        assert!(story.ends_with(" success") && story.matches("success").count() == 1, "{id}: {story}");
        assert!(!story.contains("lost"), "{id}: {story}: its worker did not recover by itself");
        assert!(!story.contains("spawn_error"), "{id}: {story}: a disk fault must not fail the job");
    }
    assert!(shim.struck(Fault::Sync) >= 5 && shim.struck(Fault::Write) >= 5, "the faults struck");
}

#[test]
fn fault_29_a_worker_that_cannot_record_an_attempt_releases_it() {
    let crash_home = CrashHome::new();
    let shim = Shim::new(&crash_home.home);
    let crash_home = crash_home.under(shim.variables());
    shim.only(".slots");
    shim.write_fails(Errno::NOSPC, When::Always);
    crash_home.home.run(["config", "set", "max_retries", "0"]).ok();
    crash_home.jobs(3, |_| "true");
    crash_home.pool_of(&["--concurrency", "2"]);
    wait("the worker tries again", || crash_home.find("j0").life.attempts >= 2);
    shim.heal();
    crash_home.finish();
    for id in crash_home.ids() {
        let story = crash_home.story(&id);
        assert!(story.ends_with(" success"), "{id}: {story}: a disk fault must not fail the job");
        assert!(crash_home.find(&id).life.attempts <= 5, "{id}: {story}: the worker busy-waits");
    }
    assert!((1..=3).contains(&reports(&crash_home)), "the problem is logged, but not on every retry");
}

//! `queuectl backup` and `queuectl restore`; fault 36.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use domain::job::outcome::Outcome;
use rusqlite::Connection;
use store::JobVerb;
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{LivenessLock, Role};

use crate::cli::faults::crash::assert_sound;
use crate::cli::harness::Home;
use crate::cli::harness::background::Background;
use crate::cli::harness::working_home::{UNTIL_GO, WorkingHome, wait_until};
use crate::store::fixture::{Fixture, change_all};

/// Long enough for a log file: shorter output is kept in memory until the attempt ends.
const LONG_OUTPUT: &str = "sleep 0.6; seq 1 20000";

/// Runs all jobs that are ready.
fn drain(home: &Home) {
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
}

fn recount(home: &Home) {
    Fixture::sqlite_in(&home.path()).recount();
    assert_sound(home);
}

/// Everything that a home shows of its jobs.
fn job_list(home: &Home) -> String {
    home.run(["list", "--json", "--limit", "1000000"]).ok().stdout
}

/// A home with a finished, a scheduled and a ready job.
fn small_home() -> Home {
    let home = Home::with_jobs(&["done"]);
    drain(&home);
    home.run(["enqueue", "-q", "--id", "later", "--delay", "1h", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "ready", "--", "true"]).ok();
    home
}

#[test]
fn a_backup_is_one_complete_file_that_only_its_owner_can_read() {
    let home = small_home();
    home.run(["config", "set", "max_retries", "7"]).ok();
    home.run(["enqueue", "-q", "--id", "long", "--", "sh", "-c", LONG_OUTPUT]).ok();
    drain(&home);
    home.run(["backup", "copy.db"]).ok().prints("copy.db\n");
    let file = home.folder().join("copy.db");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let others: Vec<_> = fs::read_dir(home.folder()).expect("a folder").flatten().collect();
    assert_eq!(others.len(), 2, "the home and one file: {others:?}");

    let fresh = Home::new();
    let file = file.to_str().expect("text");
    fresh.run(["restore", file, "--json"]).ok().prints("{\"jobs\":4,\"lost\":0,\"kept\":null}\n");
    assert_eq!(job_list(&fresh), job_list(&home));
    assert_eq!(fresh.run(["logs", "long"]).ok().stdout, home.run(["logs", "long"]).ok().stdout);
    fresh.run(["config", "get", "max_retries"]).ok().prints("7\n");
    recount(&fresh);
}

#[test]
fn a_backup_that_cannot_be_created_says_what_to_do() {
    let home = small_home();
    home.run(["backup", "no/such/copy.db"]).fails(5).says("create its directory first: `mkdir -p no/such`");
    for flags in [&["backup", "."][..], &["backup", "--force", "."]] {
        home.run(flags).fails(5).says("is a directory").says("name a file in it");
    }
}

#[test]
fn a_backup_replaces_a_file_only_with_force_and_never_the_queue() {
    let home = small_home();
    home.file("copy.db", "precious");
    home.run(["backup", "copy.db"]).fails(4).says("`copy.db` already exists").says("--force");
    assert_eq!(fs::read_to_string(home.folder().join("copy.db")).expect("it is there"), "precious");
    home.run(["backup", "--force", "home/queue.db"]).fails(2).says("is the queue's own database");
    home.run(["backup", "--force", "copy.db"]).ok();
    home.run(["backup", "nowhere/copy.db"]).fails(5).says("failed to create `nowhere/copy.db`");
    home.run(["restore", "--yes", "copy.db"]).ok();
    recount(&home);
}

#[test]
fn the_replaced_queue_is_kept_and_can_be_restored() {
    let home = small_home();
    home.run(["backup", "-q", "copy.db"]).ok();
    home.run(["enqueue", "-q", "--id", "newer", "--", "true"]).ok();
    let before = job_list(&home);
    home.run(["restore", "copy.db"]).fails(2).says("replace a queue of 4 jobs").says("--yes");
    assert_eq!(job_list(&home), before, "nothing was changed");
    let restored = home.run(["restore", "--yes", "--json", "copy.db"]).ok().json();
    home.run(["show", "newer"]).fails(3);
    recount(&home);
    let kept = restored["kept"].as_str().expect("a queue was kept").to_owned();
    home.run(["restore", "--yes", &kept]).ok();
    assert_eq!(job_list(&home), before);
    home.run(["restore", "nothing.db"]).fails(2).says("failed to read `nothing.db`");
}

#[test]
fn a_process_with_the_queue_open_continues_with_the_restored_one() {
    let home = small_home();
    home.run(["backup", "-q", "copy.db"]).ok();
    home.run(["enqueue", "-q", "--id", "newer", "--", "true"]).ok();
    let open = home.store();
    let newer = "newer".parse().expect("an id");
    assert!(open.find(&newer).expect("it is found").is_some());
    home.run(["restore", "-q", "--yes", "copy.db"]).ok();
    assert_eq!(open.find(&newer).expect("the queue is read"), None);
    change_all(open.as_ref(), JobVerb::CANCEL, &["ready".parse().expect("an id")], "tester")
        .expect("it is written");
    drop(open);
    assert_eq!(home.state_of("ready"), "cancelled");
    recount(&home);
}

#[test]
fn a_queue_that_cannot_be_read_is_replaced_and_kept() {
    let home = small_home();
    home.run(["backup", "-q", "copy.db"]).ok();
    let before = job_list(&home);
    let noise = "no database at all ".repeat(500);
    fs::write(home.database(), &noise).expect("it is spoiled");
    home.run(["status"]).fails(7);
    home.run(["restore", "copy.db"]).fails(2).says("replace a queue that cannot be read");
    let restored = home.run(["restore", "--yes", "--json", "copy.db"]).ok().json();
    assert_eq!(job_list(&home), before);
    let kept = restored["kept"].as_str().expect("it was kept");
    assert_eq!(fs::read_to_string(kept).expect("it is there"), noise);
    recount(&home);
    drain(&home);
}

#[cfg(debug_assertions)] // Released builds take no migrations from tests.
#[test]
fn an_older_backup_is_migrated() {
    use crate::cli::harness::{MADE_UP_VERSION, made_up_migrations};
    use store::sqlite::SCHEMA_VERSION;

    let home = Home::with_jobs(&["a", "b"]);
    home.run(["backup", "-q", "old.db"]).ok();
    let migrations = made_up_migrations(home.folder());
    let newer = |args: &[&str]| home.call(args).env("QUEUECTL_MIGRATIONS", &migrations).run();
    newer(&["restore", "--yes", "old.db"]).ok().prints("2\n");
    newer(&["enqueue", "-q", "--id", "c", "--", "true"]).ok();
    newer(&["worker", "run", "-q", "--until-empty"]).ok();
    newer(&["list", "--state", "completed", "--json"]).ok().shows("\"id\":\"c\"");
    newer(&["doctor", "--full"]).ok();
    home.run(["list"])
        .fails(7)
        .says(&format!("schema version {MADE_UP_VERSION}, newer than the {SCHEMA_VERSION}"));
}

#[test]
fn fault_36_a_backup_under_load_is_restored_and_the_checker_holds() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "stays", "--priority", "9", "--command", UNTIL_GO]).ok();
    home.run(["worker", "start", "--count", "2", "--concurrency", "2"]).ok();
    home.wait_for_state("stays", "processing");
    top_up(&home);
    wait_until("some are done", || home.jobs().iter().any(|job| job.life.state.name().name() == "completed"));
    let before = home.jobs().len();
    std::thread::scope(|scope| {
        let backup = scope.spawn(|| home.run(["backup", "-q", "copy.db"]).ok());
        while !backup.is_finished() {
            top_up(&home);
        }
    });
    home.go();
    home.run(["worker", "stop", "-q"]).ok();

    let fresh = Home::new();
    let file = home.folder().join("copy.db");
    fresh.run(["restore", "-q", file.to_str().expect("text")]).ok();
    recount(&fresh);
    let count = fresh.jobs().len();
    assert!(count >= before, "what was there before is in the backup: {count} of {before}");
    let history = fresh.show("stays")["history"].clone();
    assert_eq!(history[0]["outcome"], "lost", "{history}");
    assert_eq!(fresh.state_of("stays"), "pending");
    fresh.run(["doctor"]).ok();
    fs::write(home.folder().join("go"), "").expect("its folder is that of the old home");
    drain(&fresh);
    assert_each_succeeded_once(&fresh, count);
    recount(&fresh);
}

/// Keeps the workers busy.
fn top_up(home: &Home) {
    const ENOUGH: usize = 50;
    let unfinished = home.jobs().iter().filter(|job| !job.life.state.name().is_finished()).count();
    if unfinished < ENOUGH {
        let lines = "{\"command\":\"echo hello\"}\n".repeat(2 * ENOUGH);
        home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    }
}

/// Every job is completed, its attempts have no gaps, and one of them succeeded: the last.
fn assert_each_succeeded_once(home: &Home, count: usize) {
    let store = home.store();
    let jobs = home.jobs();
    assert_eq!(jobs.len(), count);
    for job in jobs {
        let record = store.record(&job.id).expect("it is read").expect("it is there");
        let numbers: Vec<u32> = record.history.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, (1..=job.life.attempts).collect::<Vec<u32>>(), "{}", job.id);
        let outcomes = record.history.iter().filter_map(|attempt| Some(attempt.ending.as_ref()?.outcome));
        let successes: Vec<bool> = outcomes.map(|outcome| outcome == Outcome::Success).collect();
        assert_eq!(successes.iter().filter(|success| **success).count(), 1, "{}", job.id);
        assert_eq!(successes.last(), Some(&true), "{}", job.id);
    }
}

#[test]
fn fault_36_attempts_lost_by_a_restore_do_not_count_as_crashes() {
    let home = WorkingHome::new();
    home.run(["config", "set", "crash_limit", "1"]).ok();
    home.run(["enqueue", "-q", "--id", "stays", "--command", UNTIL_GO]).ok();
    home.run(["worker", "start"]).ok();
    home.wait_for_state("stays", "processing");
    home.run(["backup", "-q", "copy.db"]).ok();
    home.go();
    home.run(["worker", "stop", "-q"]).ok();
    home.run(["restore", "-q", "--yes", "copy.db"]).ok();
    assert_eq!(home.state_of("stays"), "pending");
    let store = home.store();
    assert_eq!(store.workers().expect("the workers"), [], "none is left");
    drop(store);
    drain(&home);
    assert_eq!(home.state_of("stays"), "completed");
    recount(&home);
}

#[test]
fn fault_36_a_restore_with_live_workers_is_a_conflict() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    home.run(["backup", "-q", "copy.db"]).ok();
    home.run(["worker", "start"]).ok();
    home.wait_for_state("a", "completed");
    let before = job_list(&home);
    home.run(["restore", "--yes", "copy.db"]).fails(4).says("a worker is running").says("worker stop");
    assert_eq!(job_list(&home), before);
    home.run(["worker", "stop", "-q"]).ok();
    home.run(["restore", "-q", "--yes", "copy.db"]).ok();
    assert_eq!(home.state_of("a"), "pending");
}

/// Its row says so as soon as it has stopped; its process ends later.
#[test]
fn fault_36_a_restore_waits_for_the_process_of_a_worker_that_has_stopped() {
    let home = Home::with_jobs(&["a"]);
    home.run(["backup", "-q", "copy.db"]).ok();
    let workers = home.path().join(liveness_lock::FOLDER);
    fs::create_dir_all(&workers).expect("a folder");
    let held = LivenessLock::hold(&workers, "w", Role::Worker).expect("a lock");
    let restore = Background::start(home.call(["restore", "--yes", "copy.db"]));
    wait_until("the restore waits", || restore.is_asleep());
    drop(held);
    assert!(restore.end().0.success());
    let held = LivenessLock::hold(&workers, "w", Role::Worker).expect("a lock");
    home.run(["restore", "--yes", "copy.db"]).fails(4).says("a worker is running");
    drop(held);
}

#[test]
fn fault_36_live_workers_of_another_home_also_prevent_a_restore() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    home.run(["backup", "-q", "copy.db"]).ok();
    let (other, store) = (Home::new(), home.database());
    let store = store.to_str().expect("text");
    other.run(["worker", "start", "-q", "--store", store]).ok();
    home.wait_for_state("a", "completed");
    let refused = home.run(["restore", "--yes", "copy.db"]);
    // First of all, so that no process is left behind.
    other.run(["worker", "stop", "-q", "--store", store]).ok();
    refused.fails(4).says("a worker is running");
    assert_eq!(home.state_of("a"), "completed", "the queue was left as it was");
    home.run(["restore", "-q", "--yes", "copy.db"]).ok();
    assert_eq!(home.state_of("a"), "pending");
}

#[test]
fn fault_36_a_truncated_backup_leaves_the_queue_untouched() {
    let home = small_home();
    let jobs = "{\"command\":\"true\"}\n".repeat(500);
    home.call(["enqueue", "-q", "-"]).with_stdin(jobs).run().ok();
    home.run(["backup", "-q", "copy.db"]).ok();
    let whole = fs::read(home.folder().join("copy.db")).expect("a backup");
    let before = (job_list(&home), files(&home.path()));
    for length in [0, 1, 511, 2_048, 2_049, whole.len() / 2, whole.len() - 2_048, whole.len() - 1] {
        home.file("short.db", &whole[..length]);
        let ran = home.run(["restore", "--yes", "short.db"]).fails(7);
        assert!(ran.stderr.contains("nothing was changed"), "{length}: {ran}");
    }
    for (what, problem) in
        [("text that is long enough ".repeat(100), "not a database"), ("{}".into(), "not a")]
    {
        home.file("short.db", what);
        home.run(["restore", "--yes", "short.db"]).fails(7).says(problem);
    }
    assert_eq!((job_list(&home), files(&home.path())), before);
    recount(&home);
}

/// The names in a home, except the files that SQLite and the restore keep next to the queue.
fn files(home: &Path) -> Vec<String> {
    let names = fs::read_dir(home).expect("a folder").flatten();
    let mut names: Vec<String> =
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with("queue.db-"));
    names.sort();
    names
}

#[test]
fn fault_36_a_backup_of_a_newer_program_is_refused() {
    let home = small_home();
    home.run(["backup", "-q", "copy.db"]).ok();
    let newer = Connection::open(home.folder().join("copy.db")).expect("a database");
    newer.execute_batch("pragma user_version = 1000").expect("it is newer now");
    drop(newer);
    let before = job_list(&home);
    home.run(["restore", "--yes", "copy.db"]).fails(7).says("schema version 1000");
    assert_eq!(job_list(&home), before);
    let stranger = Connection::open(home.folder().join("other.db")).expect("a database");
    stranger.execute_batch("create table t (a)").expect("a table");
    drop(stranger);
    home.run(["restore", "--yes", "other.db"]).fails(7).says("not a queuectl queue");
    recount(&home);
}

#[cfg(debug_assertions)] // Released builds have no fail-points.
mod seams {
    use std::os::unix::process::ExitStatusExt;

    use rustix::process::Signal;

    use super::*;

    /// Runs the program, which crashes at this fail-point.
    fn die_at(home: &Home, place: &str, args: &[&str]) {
        let mark = home.folder().join("died");
        let armed = format!("{place}={}", mark.display());
        let mut call = home.call(args).env("QUEUECTL_FAILPOINT", armed);
        assert_eq!(call.spawn().wait().expect("it is gone").signal(), Some(Signal::KILL.as_raw()), "{place}");
        fs::remove_file(&mark).expect("it was made");
    }

    #[test]
    fn fault_36_a_backup_that_is_killed_is_not_there() {
        for place in ["backup.copied", "backup.before_rename"] {
            let home = small_home();
            die_at(&home, place, &["backup", "copy.db"]);
            assert!(!home.folder().join("copy.db").exists(), "{place}");
            home.run(["backup", "-q", "copy.db"]).ok();
            recount(&home);
        }
    }

    #[test]
    fn fault_36_a_restore_that_is_killed_leaves_the_old_queue_or_the_new() {
        for (place, is_new) in [
            ("restore.fetched", false),
            ("restore.prepared", false),
            ("restore.kept", false),
            ("restore.before_commit", false),
            ("restore.after_commit", true),
            ("restore.replaced", true),
            ("restore.logs_moved", true),
            ("restore.logs_replaced", true),
        ] {
            let home = small_home();
            let old = job_list(&home);
            home.run(["backup", "-q", "copy.db"]).ok();
            home.run(["enqueue", "-q", "--id", "newer", "--", "true"]).ok();
            let new = job_list(&home);
            die_at(&home, place, &["restore", "--yes", "copy.db"]);
            assert_eq!(job_list(&home), if is_new { &*old } else { &*new }, "{place}");
            recount(&home);
            home.run(["restore", "-q", "--yes", "copy.db"]).ok();
            assert_eq!(job_list(&home), old, "{place}");
            recount(&home);
            drain(&home);
        }
    }

    /// A home in which the first job has left a log file.
    fn home_with_log(id: &str) -> Home {
        let home = Home::new();
        home.run(["enqueue", "-q", "--id", id, "--", "sh", "-c", &format!("{LONG_OUTPUT}; echo {id}")]).ok();
        drain(&home);
        assert!(home.path().join("logs/1-1.log").exists(), "it is long enough for a file");
        home
    }

    #[test]
    fn fault_36_a_restore_that_is_killed_loses_no_log_file_of_the_old_queue_or_the_new() {
        let new = home_with_log("new");
        let copy = new.folder().join("copy.db");
        let copy = copy.to_str().expect("text");
        new.run(["backup", "-q", copy]).ok();
        let whole = |home: &Home, id: &str| {
            let printed = home.run(["logs", id]).ok().stdout;
            assert!(printed.starts_with("1\n2\n") && printed.ends_with(&format!("20000\n{id}\n")), "{id}");
        };
        let old = home_with_log("old");
        for (place, is_new) in [
            ("restore.prepared", false),
            ("restore.kept", false),
            ("restore.before_commit", false),
            ("restore.after_commit", true),
            ("restore.replaced", true),
            ("restore.logs_moved", true),
            ("restore.logs_replaced", true),
        ] {
            die_at(&old, place, &["restore", "--yes", copy]);
            if is_new {
                whole(&old, "new");
                let kept = files(&old.path()).into_iter().find(|name| name.contains(".before-restore-"));
                let kept = old.path().join(kept.unwrap_or_else(|| panic!("what was kept at {place}")));
                old.run(["restore", "-q", "--yes", kept.to_str().expect("text")]).ok();
            }
            whole(&old, "old");
            for name in files(&old.path()) {
                assert!(!name.contains(".restored-"), "{name} is left after {place}");
                if name.contains(".before-restore-") {
                    fs::remove_file(old.path().join(name)).expect("it goes");
                }
            }
        }
    }

    #[test]
    fn fault_36_a_worker_puts_the_log_files_of_a_killed_restore_in_their_place() {
        let (home, other) = (home_with_log("old"), home_with_log("new"));
        let copy = home.folder().join("copy.db");
        let copy = copy.to_str().expect("text");
        other.run(["backup", "-q", copy]).ok();
        die_at(&home, "restore.replaced", &["restore", "--yes", copy]);
        home.run(["enqueue", "-q", "--id", "next", "--", "sh", "-c", LONG_OUTPUT]).ok();
        drain(&home);
        let log = fs::read(home.path().join("logs/1-1.log")).expect("a log file");
        assert_eq!(log, fs::read(other.path().join("logs/1-1.log")).expect("a log file"));
        home.run(["logs", "next"]).ok().shows("20000\n");
    }

    #[test]
    fn fault_36_a_restore_over_a_spoiled_queue_that_is_killed_can_be_repeated() {
        for place in ["restore.prepared", "restore.before_commit", "restore.after_commit", "restore.replaced"]
        {
            let home = small_home();
            let old = job_list(&home);
            home.run(["backup", "-q", "copy.db"]).ok();
            fs::write(home.database(), "noise ".repeat(1_000)).expect("it is spoiled");
            die_at(&home, place, &["restore", "--yes", "copy.db"]);
            home.run(["restore", "-q", "--yes", "copy.db"]).ok();
            assert_eq!(job_list(&home), old, "{place}");
            recount(&home);
        }
    }
}

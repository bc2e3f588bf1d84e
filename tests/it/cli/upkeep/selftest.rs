//! `queuectl selftest`: the verb. The trials themselves are tested in `chaos`.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::cli::harness::background::Background;
use crate::cli::harness::{Call, Home};
use crate::crash_engine::living_processes::processes_around;
use crate::engine::harness::wait_until;
use crate::store::fixture::schema::Schema;

/// A run whose trials take place in a folder of this home.
fn selftest(home: &Home, args: &[&str]) -> Call {
    let inside = home.folder().join("tmp");
    fs::create_dir_all(&inside).expect("a folder");
    home.call(["selftest"].iter().chain(args)).env("TMPDIR", inside)
}

fn assert_left_nothing(home: &Home) {
    let left: Vec<_> = fs::read_dir(home.folder().join("tmp")).expect("a folder").collect();
    assert!(left.is_empty(), "folders are left: {left:?}");
    assert_eq!(processes_around(home.folder()), [], "processes are left");
}

#[test]
fn a_short_run_reports_the_damage_and_the_promises() {
    let home = Home::new();
    let ran =
        selftest(&home, &["--only", "kill-enqueue", "--seed", "42", "--seconds", "0", "--json"]).run().ok();
    let output = ran.json();
    assert_eq!((&output["ok"], &output["seed"], &output["trials"]), (&true.into(), &42.into(), &1.into()));
    assert_eq!(output["violations"], serde_json::json!([]));
    assert_eq!(output["damage"][0]["kind"], "kill-enqueue");
    assert!(output["damage"][0]["strikes"].as_u64() > Some(0), "{output}");
    let promises = output["promises"].as_array().expect("a list");
    assert_eq!(promises.len(), 5);
    let held: Vec<_> = promises.iter().map(|promise| promise["held"].as_bool()).collect();
    assert_eq!(held, [Some(true), Some(true), Some(true), None, Some(true)], "{output}");
    assert_left_nothing(&home);
    assert!(!home.path().exists(), "the user's own queue is not touched");
}

#[test]
fn a_terminal_shows_two_tables() {
    let home = Home::new();
    let ran = selftest(&home, &["--only", "kill-supervisor", "--seed", "7", "--seconds", "0"]).run().ok();
    ran.shows("kill -9 of a supervisor").shows("yes").shows("1 trial with seed 7").says_nothing();
    assert_left_nothing(&home);
}

#[test]
fn an_unknown_kind_of_damage_is_refused_and_the_nearest_offered() {
    let home = Home::new();
    selftest(&home, &["--only", "kill-wroker"]).run().fails(2).says("hint: did you mean `kill-worker`?");
    selftest(&home, &["--only", "x"]).run().fails(2).says("possible values: kill-worker, kill-both");
    selftest(&home, &["--seconds", "-1"]).run().fails(2);
    selftest(&home, &["--seed", "x"]).run().fails(2);
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let home = Home::new();
    let background = Background::start(selftest(&home, &["--seconds", "600"]));
    wait_until("workers run", || processes_around(home.folder()).len() > 3);
    background.signal(Signal::INT);
    let (status, said) = background.end();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{said:?}");
    assert_left_nothing(&home);
}

#[test]
fn workers_do_not_outlive_a_run_that_is_killed() {
    let home = Home::new();
    let background = Background::start(selftest(&home, &["--seconds", "600"]));
    wait_until("workers run", || processes_around(home.folder()).len() > 3);
    background.signal(Signal::KILL);
    background.end();
    wait_until("no process is left", || processes_around(home.folder()).is_empty());
}

#[test]
fn an_unusable_temporary_folder_is_refused() {
    let home = Home::new();
    let only_one = ["selftest", "--only", "kill-supervisor", "--seconds", "0"];
    let at = |place: &str| home.call(only_one).env("TMPDIR", place);
    at("/nowhere/at/all").run().fails(1).says("failed to read `/nowhere/at/all`");
    assert!(!std::path::Path::new("/nowhere").exists());
    // The workers do not run in the program's working directory.
    fs::create_dir(home.folder().join("tmp")).expect("a folder");
    at("tmp").run().ok();
    assert_left_nothing(&home);
}

#[test]
fn a_store_must_be_a_server_and_faults_of_the_network_need_one() {
    let home = Home::new();
    selftest(&home, &["--store", "queue.db"])
        .run()
        .fails(2)
        .says("--store can only name a PostgreSQL server");
    selftest(&home, &["--only", "cut-off"]).run().fails(2).says("needs a PostgreSQL server");
    let server = Schema::new().address.to_string();
    selftest(&home, &["--store", &server, "--only", "pause-jobs"]).run().fails(2).says("is not possible");
    let encrypted = "postgres://db.example.com/jobs";
    selftest(&home, &["--store", encrypted, "--only", "cut-off"]).run().fails(2).says("a way without TLS");
}

#[test]
fn an_interrupted_run_on_a_server_drops_its_schema() {
    let home = Home::new();
    let server = Schema::new();
    let url = server.address.to_string();
    let background = Background::start(selftest(&home, &["--store", &url, "--seconds", "600"]));
    let schemas = format!(
        "select 1 from pg_namespace where nspname like 'queuectl\\_selftest\\_{}\\_%'",
        background.pid().as_raw_pid()
    );
    let session = server.session();
    wait_until("workers of several hosts run", || processes_around(home.folder()).len() > 8);
    assert!(!session.run(&schemas).is_empty(), "it has schemas of its own");
    background.signal(Signal::INT);
    let (status, said) = background.end();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{said:?}");
    assert!(session.run(&schemas).is_empty(), "they are dropped");
    assert_left_nothing(&home);
}

#[test]
fn the_hidden_trial_verbs_refuse_other_callers() {
    let home = Home::new();
    home.run(["__act", "ledger", "--lives", "1s"]).fails(2).says("use `queuectl selftest`");
    assert!(!home.folder().join("ledger").exists());
}

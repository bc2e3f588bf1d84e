//! Two homes that share a database: each has its own workers, and can read the logs of the other's.

use crate::cli::harness::RunResult;
use crate::engine::harness::{Home, Pool, UNTIL_GO};

/// Runs the program in a second home on the queue of the first.
fn run(home: &Home, words: &str) -> RunResult {
    let call = home.call_without_home(words.split(' '));
    call.env("QUEUECTL_HOME", home.folder().join("second")).env("QUEUECTL_STORE", home.database()).run()
}

#[test]
fn logs_are_found_in_the_home_of_the_worker() {
    let home = Home::new();
    home.enqueue("a", &format!("seq 100000; {UNTIL_GO}; echo the end"));
    let _pool = Pool::run(&home, "");
    home.wait_for_file("running");
    let shown = run(&home, "logs a").ok();
    assert!(shown.stdout.starts_with("1\n2\n") && shown.stdout.contains("\n100000\n"), "while it runs");
    home.file("go", "");
    run(&home, "logs -f a").ok().shows("\nthe end\n");
    assert!(home.path().join("logs").join("1-1.log").exists(), "it has a log file");
}

#[test]
fn a_stop_is_for_the_workers_of_its_home() {
    let home = Home::new();
    let _pool = Pool::start(&home, "");
    run(&home, "worker start").ok();
    assert_eq!(home.workers().len(), 2);
    run(&home, "worker stop")
        .ok()
        .says("1 worker stopped")
        .says("1 worker is still running in another home or on another machine")
        .says("queuectl worker stop --everywhere");
    assert_eq!(home.workers().len(), 1);
    run(&home, "worker stop").ok().says("No worker is running in this home");
    assert_eq!(home.workers().len(), 1);
    run(&home, "worker stop --everywhere").ok().says("1 worker stopped");
    assert_eq!(home.workers().len(), 0);
    home.run(["worker", "stop"]).ok().says("No worker is running");
}

#[test]
fn a_machine_with_a_new_host_name_still_stops_its_workers() {
    let home = Home::new();
    let _pool = Pool::start(&home, "");
    let database = rusqlite::Connection::open(home.database()).expect("the database opens");
    database.execute("update workers set host = 'an earlier name'", []).expect("the statement is right");
    home.run(["worker", "stop"]).ok().says("1 worker stopped");
    assert_eq!(home.workers().len(), 0);
}

//! A process without a lease that is stopped in the middle of a write: it is named, and Ctrl-Z waits until the write ends.

use std::time::Duration;

use rustix::process::Signal;
use store::sqlite::gate_path;
use sys::process::holder_of;

use crate::chaos::shim::Shim;
use crate::cli::harness::Home;
use crate::cli::harness::background::Background;
use crate::cli::harness::working_home::wait_until;

/// The process that holds the gate, and whether it is stopped.
fn writer(home: &Home) -> Option<(u32, bool)> {
    holder_of(&gate_path(&home.database())).map(|holder| (holder.pid, holder.is_stopped))
}

#[cfg(debug_assertions)] // Released builds have no fail-points.
#[test]
fn status_and_doctor_name_a_stopped_writer() {
    let home = Home::with_jobs(&["a"]);
    let mark = home.folder().join("stopped");
    let call = home.call(["enqueue", "--id", "b", "--", "true"]);
    let stopped = Background::start(
        call.env("QUEUECTL_FAILPOINT", format!("enqueue.before_commit=!{}", mark.display())),
    );
    wait_until("it is stopped", || writer(&home).is_some_and(|(_, is_stopped)| is_stopped));
    let (pid, _) = writer(&home).expect("a writer");
    let status = home.run(["status", "--json"]).ok().json();
    let problems = status["problems"].as_array().expect("an array");
    let problem = problems
        .iter()
        .find(|problem| problem["problem"] == "stopped_writer")
        .expect("the problem is reported");
    let said = problem["message"].as_str().unwrap_or_default();
    assert!(said.contains(&format!("`kill -CONT {pid}`")), "{said}");
    let doctor = home.run(["doctor"]).stdout;
    let said = format!("process {pid} (queuectl) is stopped in the middle of a write");
    let words = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&said) && words.contains(&format!("kill -CONT {pid}")), "{doctor}");
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.prints(), "b");
    home.run(["status"]).ok().shows_no("stopped");
}

#[test]
fn ctrl_z_in_the_middle_of_a_write_takes_effect_after_it() {
    let home = Home::with_jobs(&["a"]);
    stop_in_the_middle(&home, &["enqueue", "--id", "b", "--", "true"], "b");
}

#[test]
fn ctrl_z_in_the_middle_of_an_import_takes_effect_after_it() {
    let home = Home::with_jobs(&["a"]);
    home.file("b.jsonl", Home::with_jobs(&["b"]).run(["export"]).ok().stdout);
    stop_in_the_middle(&home, &["import", "b.jsonl"], "1");
}

fn stop_in_the_middle(home: &Home, args: &[&str], printed: &str) {
    let shim = Shim::new(home);
    shim.only("-wal");
    shim.slow(Duration::from_millis(30));
    let stopped = Background::start(home.call(args.iter().copied()).envs(shim.variables()));
    wait_until("it is writing", || writer(home).is_some());
    stopped.signal(Signal::TSTP);
    wait_until("it is stopped", || stopped.is_stopped());
    assert_eq!(writer(home), None, "others can write");
    home.run(["enqueue", "--id", "c", "--", "true"]).ok();
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.prints(), printed);
}

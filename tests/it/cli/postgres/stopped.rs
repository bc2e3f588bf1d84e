//! A process that stops in the middle of a transaction, as on a machine that is suspended: the server ends its session, so
//! the others continue, and the process repeats what it was doing.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Machine;
use crate::cli::harness::background::Background;
use crate::engine::harness::{Pool, UNTIL_GO, history, send, wait_until};
use crate::store::fixture::schema::Schema;

/// After how long the server ends a session that stands still inside a transaction, and more for a busy machine.
const FREE_WITHIN: Duration = Duration::from_secs(3 + 5);

#[track_caller]
fn enqueue_in_time(machine: &Machine<'_>, id: &str) {
    let began = Instant::now();
    machine.enqueue(id, "true");
    assert!(began.elapsed() < FREE_WITHIN, "{:?}", began.elapsed());
}

#[test]
fn fault_37_an_enqueue_that_is_stopped_inside_the_gate_is_repeated() {
    let schema = Schema::new();
    let machine = Machine::new(&schema, "near");
    let _pool = machine.worker();
    let point = format!("enqueue.before_commit=!{}", machine.home.folder().join("mark").display());
    let call = machine.call(&["enqueue", "-q", "--id", "stopped", "-c", "true"]);
    let stopped = Background::start(call.env("QUEUECTL_FAILPOINT", point));
    wait_until("it is stopped", || stopped.is_stopped());
    enqueue_in_time(&machine, "other");
    machine.wait_for("other", "completed");
    machine.run("show stopped").fails(3);
    // Whatever the others needed it for: this session has ended.
    let ended = "select count(*) = 0 from pg_stat_activity where state = 'idle in transaction' and application_name = ";
    let ended = format!("{ended}'{}'", schema.address.application_name);
    let session = schema.session();
    wait_until("its session has ended", || session.run(&ended) == ["t"]);
    stopped.signal(Signal::CONT);
    let (status, said) = stopped.end();
    assert!(status.success() && said.is_empty(), "{status}: {said:?}");
    let job = machine.wait_for("stopped", "completed");
    assert_eq!(history(&job).len(), 1, "{job}");
}

#[test]
fn fault_37_a_worker_that_is_stopped_inside_the_gate_keeps_the_outcome() {
    let schema = Schema::new();
    let (near, far) = (Machine::new(&schema, "near"), Machine::new(&schema, "far"));
    let folder = far.home.folder().display().to_string();
    // While the mark is there, the fail-point does nothing.
    let mark = far.home.file("mark", "");
    let command = format!("echo ran >> ran; {UNTIL_GO}");
    near.call(&["enqueue", "-q", "--id", "held", "--cwd", &folder, "-c", &command]).run().ok();
    let _pool = Pool::of(&far.home);
    let call = far.call(&["worker", "run", "-q"]);
    let point = format!("exchange.before_commit=!{}", mark.display());
    let _worker = Background::start(call.env("QUEUECTL_FAILPOINT", point));
    far.home.wait_for_file("running");
    let workers = near.run("worker list --json").ok().json();
    let pid = workers[0]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
    std::fs::remove_file(&mark).expect("it was there");
    far.home.file("go", "");
    wait_until("the worker is stopped", || mark.exists());

    enqueue_in_time(&near, "other");
    assert_eq!(near.show("held")["state"], "processing", "its outcome was rolled back");
    let _near_pool = near.worker();
    near.wait_for("other", "completed");
    send(pid, Signal::CONT);
    let job = near.wait_for("held", "completed");
    assert_eq!(history(&job).len(), 1, "{job}");
    assert_eq!(far.home.read("ran"), "ran\n");
}

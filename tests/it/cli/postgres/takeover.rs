//! A machine whose worker is gone: its jobs run elsewhere, and its output stays readable.

use rustix::process::Signal;

use super::Machine;
use crate::engine::harness::{Pool, send, wait_until};
use crate::store::fixture::schema::Schema;

/// Prints a line at a time, and ends at once when it runs again.
const FIRST_PRINTS: &str = "if [ $QUEUECTL_ATTEMPT = 2 ]; then echo again; exit; fi
i=0; while :; do i=$((i + 1)); echo line $i; sleep 0.1; done";

/// Kills the only worker and its supervisor at once; the home that is left behind is as after a power failure.
fn kill_worker(machine: &Machine<'_>) -> String {
    let workers = machine.run("worker list --json").ok().json();
    let worker = &workers[0];
    for pid in ["supervisor_pid", "pid"] {
        let pid = worker[pid].as_u64().and_then(|pid| u32::try_from(pid).ok());
        send(pid.expect("a pid"), Signal::KILL);
    }
    worker["id"].as_str().expect("an id").to_owned()
}

fn shipped_lines(machine: &Machine<'_>) -> usize {
    machine.run("logs a --attempt 1").stdout.lines().count()
}

/// Runs `a` on a machine, and kills its worker after some of the output was shipped more than once.
fn lose_worker<'a>(far: &'a Machine<'_>, near: &Machine<'_>) -> (Pool<'a>, String) {
    near.shorten_leases();
    near.enqueue("a", FIRST_PRINTS);
    let pool = far.worker();
    wait_until("output is shipped", || shipped_lines(near) > 0);
    let before = shipped_lines(near);
    wait_until("more output is shipped", || shipped_lines(near) > before);
    let worker = kill_worker(far);
    (pool, worker)
}

#[test]
fn jobs_of_a_dead_machine_run_elsewhere_and_its_output_follows_once() {
    let schema = Schema::new();
    let (near, far) = (Machine::new(&schema, "near"), Machine::new(&schema, "far"));
    let (pool, _) = lose_worker(&far, &near);
    let _near_pool = near.worker();
    let job = near.wait_for("a", "completed");
    assert_eq!((&job["history"][0]["outcome"], &job["attempts"]), (&"lost".into(), &2.into()), "{job}");
    near.run("logs a").ok().prints("again\n");
    assert!(shipped_lines(&near) > 0, "the shipped output of the first attempt stays");
    drop(pool);
    let _far_pool = far.worker();
    let spool = far.home.path().join("spool");
    wait_until("the rest is shipped by the next worker there", || {
        spool.read_dir().is_ok_and(|mut files| files.next().is_none())
    });
    let whole = near.run("logs a --attempt 1").ok().stdout;
    let numbers = (1..=whole.lines().count()).map(|number| format!("line {number}\n"));
    assert_eq!(whole, numbers.collect::<String>(), "each line once, in order");
}

#[test]
fn the_jobs_of_a_worker_are_given_back_by_worker_forget() {
    let schema = Schema::new();
    let (near, far) = (Machine::new(&schema, "near"), Machine::new(&schema, "far"));
    let (_pool, worker) = lose_worker(&far, &near);
    wait_until("its last heartbeat is old", || near.run(&format!("worker forget {worker}")).status.success());
    let job = near.show("a");
    assert_eq!((&job["state"], &job["history"][0]["outcome"]), (&"pending".into(), &"lost".into()), "{job}");
}

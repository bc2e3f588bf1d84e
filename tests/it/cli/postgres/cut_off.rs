//! A machine that the network cuts off from the server: its worker ends its commands before they run elsewhere.

use std::time::{Duration, Instant};

use super::Machine;
use crate::engine::harness::{history, is_alive, wait_until};
use crate::engine::workers::cut_off::FIRST_HANGS;
use crate::store::fixture::schema::Schema;
use crate::store::postgres::proxy::{Fault, proxy_to};

const LEASE: Duration = Duration::from_secs(3);
const HEARTBEAT: Duration = Duration::from_millis(500);
/// For a machine that is busy with tests.
const MARGIN: Duration = Duration::from_millis(2_500);

/// Cuts a machine off while it runs a job that another can run. Returns how long the other took to run it.
fn cut_off(fault: Fault) -> Duration {
    let schema = Schema::new();
    let mut proxy = proxy_to(&schema.address);
    proxy.address.connect_timeout = Duration::from_secs(1);
    let (near, far) = (Machine::new(&schema, "near").blind(), Machine::at(&proxy.address, "far"));
    for (key, value) in [("heartbeat_interval", "500ms"), ("lease", "3s"), ("kill_grace", "500ms")] {
        near.run(&format!("config set {key} {value}")).ok();
    }
    let folder = near.home.folder().display().to_string();
    near.call(&["enqueue", "-q", "--id", "a", "--cwd", &folder, "-c", FIRST_HANGS]).run().ok();
    let _far_pool = far.worker();
    let command = near.home.wait_for_pid("running");
    let _near_pool = near.worker();

    proxy.set(fault);
    wait_until("the network is cut", || proxy.is(Fault::BlackHole));
    let cut = Instant::now();
    wait_until("the command is dead", || !is_alive(command));
    let fenced_after = cut.elapsed();
    wait_until("it runs elsewhere", || near.show("a")["attempts"] == 2);
    let taken_over_after = cut.elapsed();
    println!("ended after {fenced_after:?}, taken over after {taken_over_after:?}");
    assert!(fenced_after < LEASE, "{fenced_after:?}");
    let job = near.wait_for("a", "completed");
    let outcomes: Vec<_> = history(&job).iter().map(|attempt| &attempt["outcome"]).collect();
    assert_eq!(outcomes, ["lost", "success"], "{job}");
    assert_eq!(near.home.read("ended"), "term\n", "it was asked to end first");
    assert_eq!(near.home.read("overlap"), "", "the first command was dead by then");
    // A request that was under way has to fail first.
    wait_until("`status` there has the reason", || {
        let said = far.run("status").fails(5).says("in this home worker w-").stderr;
        said.contains("cut off from the store, so it ended its commands")
    });

    proxy.set(Fault::None);
    wait_until("a new worker is up there", || {
        near.run("worker list --json").ok().json().as_array().is_some_and(|workers| workers.len() == 2)
    });
    taken_over_after
}

#[test]
fn fault_37_a_machine_in_a_black_hole_ends_its_command_before_it_runs_elsewhere() {
    let taken_over_after = cut_off(Fault::BlackHole);
    assert!(taken_over_after < LEASE + HEARTBEAT + MARGIN, "{taken_over_after:?}");
}

#[test]
fn fault_37_a_machine_that_is_cut_off_inside_the_gate_delays_no_takeover() {
    let taken_over_after = cut_off(Fault::BlackHoleInGate);
    assert!(taken_over_after < LEASE + HEARTBEAT + MARGIN, "{taken_over_after:?}");
}

/// The job is stored: a hint that cannot be given is no failure.
#[test]
fn fault_37_an_enqueue_that_is_cut_off_after_its_commit_has_succeeded() {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let (near, far) = (Machine::new(&schema, "near"), Machine::at(&proxy.address, "far"));
    near.enqueue("first", "true");
    for (id, args) in [("plain", &["enqueue"][..]), ("json", &["enqueue", "--json"])] {
        proxy.set(Fault::RefuseAfterCommit);
        let args: Vec<&str> = args.iter().copied().chain(["--id", id, "-c", "true"]).collect();
        let enqueued = far.call(&args).run().ok();
        assert!(proxy.is(Fault::Refuse), "it was cut off");
        assert!(enqueued.stdout.contains(id), "{enqueued}");
        proxy.set(Fault::None);
        assert_eq!(near.show(id)["state"], "pending");
    }
}

/// The job is pending again. It cannot be shown, so that is all that the command says.
#[test]
fn fault_37_a_retry_that_is_cut_off_after_its_commit_says_what_it_changed() {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let (near, far) = (Machine::new(&schema, "near"), Machine::at(&proxy.address, "far"));
    for (id, args) in [("plain", &["retry"][..]), ("json", &["retry", "--json"])] {
        near.enqueue(id, "true");
        near.run(&format!("cancel -q {id}")).ok();
        proxy.set(Fault::RefuseAfterCommit);
        let args: Vec<&str> = args.iter().copied().chain([id]).collect();
        far.call(&args).run().fails(1).says("stopped after changing 1 of the jobs");
        assert!(proxy.is(Fault::Refuse), "it was cut off");
        proxy.set(Fault::None);
        assert_eq!(near.show(id)["state"], "pending");
    }
}

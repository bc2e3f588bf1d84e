//! Jobs that one machine enqueues and another runs.

use super::Machine;
use crate::engine::harness::{UNTIL_GO, wait_until};
use crate::store::fixture::schema::Schema;

#[test]
fn a_job_that_one_machine_enqueues_runs_on_another() {
    let schema = Schema::new();
    let (near, far) = (Machine::new(&schema, "near"), Machine::new(&schema, "far"));
    near.enqueue("first", "echo hello");
    let _pool = far.worker();
    near.run("wait first --timeout 20s").ok();
    near.run("logs first").ok().prints("hello\n");
    near.run("run -- echo shown").ok().prints("shown\n");
    assert_eq!(near.call(&["run", "-c", "exit 3"]).run().status.code(), Some(3));
    near.enqueue("slow", &format!("echo one; {UNTIL_GO}; echo two"));
    wait_until("the first line can be read here", || near.run("logs slow").stdout == "one\n");
    far.home.file("go", "");
    near.run("logs -f slow").ok().prints("one\ntwo\n");
    let listed = near.run("list --json").ok().json();
    assert_eq!(listed.as_array().expect("a list").len(), 4, "{listed}");
    near.run("status").ok().shows("default").shows("idle");
    near.run("explain first").ok().shows("completed");
    near.run("events --json").ok();
    near.call(&["__complete", "bash", "--", "queuectl", "show", ""]).run().ok().shows("slow");
}

#[test]
fn a_running_job_is_cancelled_from_another_machine() {
    let schema = Schema::new();
    let (near, far) = (Machine::new(&schema, "near"), Machine::new(&schema, "far"));
    near.shorten_leases();
    near.enqueue("a", "echo $$ > running; exec sleep 600");
    let _pool = far.worker();
    let command = wait_for_pid(&far);
    near.run("cancel a").ok();
    let job = near.wait_for("a", "cancelled");
    assert_eq!(job["history"][0]["outcome"], "cancelled", "{job}");
    assert!(!crate::engine::harness::is_alive(command), "the command is dead");
}

fn wait_for_pid(machine: &Machine<'_>) -> u32 {
    let mut pid = None;
    wait_until("the command runs", || {
        pid = machine.home.read("running").trim().parse().ok();
        pid.is_some()
    });
    pid.expect("it was found")
}

#[test]
fn queues_are_paused_and_limited_for_every_machine() {
    let schema = Schema::new();
    let (near, far) = (Machine::new(&schema, "near"), Machine::new(&schema, "far"));
    near.run("queue pause default --reason upgrade").ok();
    near.call(&["enqueue", "--id", "a", "true"]).run().ok().says("paused (upgrade)");
    let _pool = far.worker();
    near.run("explain a").ok().shows("paused");
    near.run("queue resume default").ok();
    near.run("wait a --timeout 20s").ok();
    near.run("queue set thin --concurrency 1 --rate 100/s").ok();
    for id in ["l1", "l2", "l3"] {
        near.run(&format!("enqueue -q -Q thin --id {id} -- sleep 0.2")).ok();
    }
    let _second = near.worker();
    near.run("wait l1 l2 l3 --timeout 20s").ok();
    let mut spans: Vec<(String, String)> = ["l1", "l2", "l3"]
        .iter()
        .map(|id| {
            let attempt = near.show(id)["history"][0].clone();
            (attempt["started_at"].to_string(), attempt["finished_at"].to_string())
        })
        .collect();
    spans.sort();
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "one at a time: {spans:?}");
}

#[test]
fn schedules_dependencies_keys_batches_and_hooks_work_across_machines() {
    let schema = Schema::new();
    let (near, far) = (Machine::new(&schema, "near"), Machine::new(&schema, "far"));
    near.call(&["hook", "add", "seen", "--on", "success", "--", "sh", "-c", "cat > hooked"]).run().ok();
    near.run("schedule add once --at 2001-01-01T00:00:00Z -- echo late").fails(2);
    near.run("schedule add tick --every 1s -- echo tick").ok();
    near.run("enqueue -q --id first -- sleep 0.1").ok();
    near.run("enqueue -q --id second --depends-on first -- echo second").ok();
    near.run("explain second").ok().shows("first");
    near.run("enqueue -q --id held --unique-key k --delay 1h -- true").ok();
    far.run("enqueue --unique-key k -- true").ok().prints("held\n");
    near.home.file("each", "a\nb\n");
    near.run("enqueue -q --each each --batch both -- echo {}").ok();
    let _pool = far.worker();
    near.run("wait second --timeout 20s").ok();
    near.run("batch wait both --timeout 20s").ok();
    near.run("batch show both").ok().shows("2 of 2");
    wait_until("the schedule ran", || near.run("schedule show tick").ok().stdout.contains("completed"));
    near.run("schedule remove tick").ok();
    wait_until("the hook ran on the machine of the worker", || {
        far.home.read("hooked").contains("\"event\":\"success\"")
    });
    near.run("upcoming").ok().shows("start  ");
}

#[test]
fn old_jobs_are_pruned_and_files_hold_whole_queues() {
    let schema = Schema::new();
    let near = Machine::new(&schema, "near");
    near.enqueue("fails", "exit 7");
    near.run("edit fails --max-retries 0").ok();
    near.enqueue("done", "echo out");
    near.run("worker run --until-empty -q").ok();
    near.run("dlq list").ok().shows("fails").shows("exit code 7");
    near.run("retry fails").ok();
    near.run("worker run --until-empty -q").ok();
    near.run("export queue.jsonl").ok();
    near.run("import queue.jsonl").fails(4).says("there is already a job");
    near.run("config set retain_completed 1ms").ok();
    wait_until("the completed job is pruned", || {
        near.run("prune --yes").ok();
        near.run("show done").status.code() == Some(3)
    });
    near.run("import --if-absent queue.jsonl").ok();
    near.run("logs done").ok().prints("out\n");
    for verb in ["backup", "restore"] {
        near.run(&format!("{verb} file")).fails(2).says("pg_dump").says("queuectl export");
    }
    near.run("events").ok().shows("import");
    near.call(&["doctor"]).run().shows("PostgreSQL").shows("schema");
}

//! Retention in a queue of many finished jobs.

use super::cluster::Cluster;
use super::working_machine::WorkingMachine;
use crate::cli::harness::working_home::wait_until;

/// A worker that waits for jobs looks at its orders once in a heartbeat, and would delete a few hundred jobs each time.
#[test]
fn a_worker_that_deletes_old_jobs_does_not_wait_for_heartbeats() {
    const JOBS: u32 = 30_000;
    const MOST_BEATS: u32 = 10;
    let cluster = Cluster::start("fsync = off");
    let machine = WorkingMachine::new(&cluster.socket_url("keeper"));
    for (key, value) in [("heartbeat_interval", "2s"), ("lease", "12s"), ("retain_completed", "1d")] {
        machine.run(["config", "set", key, value]).ok();
    }
    machine.run(["queue", "resume", "default"]).ok();
    cluster.sql(
        "jobs",
        &format!(
            "set search_path = queuectl;
             insert into jobs (id, queue_id, priority, state, due_at, attempts, max_retries, started_at, finished_at,
                               created_at, updated_at, command)
               select 'old-' || g, (select id from queues), 0, 'completed', 0, 1, 3, 1, 1, 1, 1, 'true'
               from generate_series(1, {JOBS}) g;
             insert into attempts (seq, number, worker_seq, started_at, finished_at, duration_ms, outcome, exit_code)
               select seq, 1, 0, 1, 1, 0, 'success', 0 from jobs where state = 'completed';
             insert into counters (queue_id, state, shard, count) select id, 'completed', 0, {JOBS} from queues"
        ),
    );
    machine.run(["enqueue", "-q", "--id", "kept", "--", "true"]).ok();
    machine.start_worker();
    let number = |sql: &str| cluster.sql("jobs", sql).parse::<u32>().unwrap_or(0);
    let left = || number("select count(*) from queuectl.jobs");
    let beats = || number("select max(beat) from queuectl.workers");
    wait_until("the first jobs are deleted", || left() <= JOBS);
    let before = beats();
    wait_until("only the new job is left", || left() == 1);
    let passed = beats() - before;
    assert!(passed <= MOST_BEATS, "deleting the jobs took {passed} heartbeats");
    assert_eq!(number("select count(*) from queuectl.attempts"), 1);
    let counters = "select sum(count) from queuectl.counters where state = 'completed'";
    wait_until("the counters agree", || number(counters) == 1);
}

//! A server without space for its write-ahead log: it ends, and nothing that it acknowledged is lost.

use super::small_disk::SmallDisk;
use super::working_machine::WorkingMachine;
use crate::cli::harness::working_home::wait_until;

/// More than the log can take, because each begins another segment of it.
const MAX_JOBS: usize = 20;

#[test]
fn fault_37_a_full_disk_of_the_servers_log_loses_nothing_that_was_acknowledged() {
    let disk = SmallDisk::with_log();
    let machine = WorkingMachine::new(&disk.cluster.socket_url("keeper"));
    machine.start_worker();
    let folder = machine.home.folder().display().to_string();
    let held = "until [ -e go ]; do sleep 0.02; done; echo done > ended";
    machine.run(["enqueue", "-q", "--id", "held", "--cwd", &folder, "-c", held]).ok();
    machine.wait_for_state("held", "processing");

    disk.fill();
    let (mut acknowledged, mut unknown) = (Vec::new(), Vec::new());
    for number in 0..MAX_JOBS {
        let id = format!("job-{number}");
        let ran = machine.run(["enqueue", "-q", "--id", &id, "--delay", "1h", "--", "true"]);
        disk.cluster.try_sql("postgres", "postgres", "select pg_switch_wal()");
        match ran.status.code() {
            Some(0) => acknowledged.push(id),
            Some(5) => break,
            Some(6) => {
                unknown.push(id);
                break;
            }
            _ => panic!("{ran}"),
        }
    }
    println!("{} jobs acknowledged, {} unknown", acknowledged.len(), unknown.len());
    assert!(acknowledged.len() < MAX_JOBS, "the server refuses at last");
    machine.go();
    wait_until("the command has ended", || machine.home.folder().join("ended").exists());

    disk.empty();
    disk.wait_until_up();
    machine.run(["wait", "-q", "held"]).ok();
    assert_eq!(machine.show("held")["history"].as_array().map(Vec::len), Some(1), "it ran once");
    for id in &acknowledged {
        machine.run(["show", id]).ok();
    }
    machine.run(["doctor", "--full"]).ok();
    machine.run(["enqueue", "-q", "--id", "after", "--", "true"]).ok();
    machine.run(["wait", "-q", "after"]).ok();
}

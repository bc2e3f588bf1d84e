//! Workers on two machines that share a store, and one that is cut off from it.
//!
//! Both machines are this one: the second has a home of its own, another machine id, and a store that behaves as if it were
//! on a network (`QUEUECTL_SIMULATE_NETWORK`). The home of each is out of reach of the other.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::cli::harness::{Call, RunResult};
use crate::engine::harness::{Home, Pool, UNTIL_GO, history, is_alive, send, wait_until};

/// Runs until it gets SIGTERM the first time, and ends at once the second time. It notices if the first is still alive.
pub(crate) const FIRST_HANGS: &str = "if [ -e running ]; then
  case $(cut -d ' ' -f 3 /proc/$(cat running)/stat 2> /dev/null) in ''|Z|X) ;; *) echo both > overlap;; esac
  exit 0
fi
echo $$ > running; trap 'echo term > ended; exit 1' TERM; while :; do sleep 0.02; done";

/// A second machine that uses the queue of a home.
pub(super) struct Machine<'a> {
    home: &'a Home,
    name: &'a str,
}

impl<'a> Machine<'a> {
    pub(super) fn new(home: &'a Home, name: &'a str) -> Self {
        let machine = Self { home, name };
        // The queue exists before the machine uses it: no machine creates the home of another.
        drop(home.store());
        fs::create_dir_all(machine.path().join("net")).expect("a folder");
        machine
    }

    /// Leases are short, so that a test ends soon.
    fn with_short_leases(home: &'a Home, name: &'a str) -> Self {
        home.set("heartbeat_interval", "500ms");
        home.set("lease", "2s");
        home.set("kill_grace", "300ms");
        Self::new(home, name)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.home.folder().join(self.name)
    }

    pub(super) fn call(&self, words: &str) -> Call {
        let call = self.home.call_without_home(words.split(' '));
        let call = call.env("QUEUECTL_HOME", self.path()).env("QUEUECTL_STORE", self.home.database());
        call.env("QUEUECTL_MACHINE_ID", self.name).env("QUEUECTL_SIMULATE_NETWORK", self.path().join("net"))
    }

    pub(super) fn run(&self, words: &str) -> RunResult {
        self.call(words).run()
    }

    pub(super) fn pool(&self, words: &str) -> Pool<'a> {
        Pool::up(self.home, self.call(&format!("worker run{words}")).interruptible().into_command())
    }

    /// Lets the network behave like this from now on.
    pub(super) fn net(&self, how: &str) {
        fs::write(self.path().join("net").join(how), "").expect("a file");
    }

    /// Loses the answers to this verb from now on.
    fn lose_answers(&self, verb: &str) {
        fs::write(self.path().join("net").join("lose-answers"), verb).expect("a file");
    }

    pub(super) fn repair(&self, how: &str) {
        fs::remove_file(self.path().join("net").join(how)).expect("it was there");
    }

    fn journal(&self) -> String {
        fs::read_to_string(self.path().join("worker.log")).unwrap_or_default()
    }
}

fn outcomes(home: &Home, id: &str) -> Vec<String> {
    let job = home.show(id);
    history(&job).iter().map(|attempt| attempt["outcome"].as_str().unwrap_or("runs").to_owned()).collect()
}

#[test]
fn a_worker_that_is_cut_off_ends_its_commands_before_they_run_elsewhere() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", FIRST_HANGS);
    let _far_pool = far.pool("");
    home.wait_for_file("running");
    let near = Machine::new(&home, "near");
    let _near_pool = near.pool("");
    far.net("cut");
    home.wait_for("a", "completed");
    assert_eq!(home.read("ended"), "term\n", "it was asked to end first");
    assert_eq!(outcomes(&home, "a"), ["lost", "success"]);
    assert_eq!(home.read("overlap"), "", "the first command was dead by then");
    far.run("status")
        .fails(5)
        .says("in this home worker w-")
        .says("cut off from the store, so it ended its commands");
    far.repair("cut");
    wait_until("a new worker is up there", || home.workers().len() == 2);
    far.run("worker stop --everywhere").ok();
}

/// A stopped worker cannot end its commands, so its supervisor does.
#[test]
fn a_worker_that_is_stopped_is_killed_before_its_jobs_run_elsewhere() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", FIRST_HANGS);
    let _far_pool = far.pool("");
    home.wait_for_file("running");
    let stopped = home.workers().remove(0);
    let near = Machine::new(&home, "near");
    let _near_pool = near.pool("");
    send(stopped.pid, Signal::STOP);
    home.wait_for("a", "completed");
    assert_eq!(home.read("overlap"), "", "the first command was dead by then");
    assert!(far.journal().contains("before another machine takes its jobs over"), "{}", far.journal());
}

#[test]
fn without_self_fencing_a_command_runs_on_two_machines_at_once() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", FIRST_HANGS);
    let call = far.call("worker run").env("QUEUECTL_WITHOUT", "self_fencing").interruptible();
    let _far_pool = Pool::up(&home, call.into_command());
    home.wait_for_file("running");
    let near = Machine::new(&home, "near");
    let _near_pool = near.pool("");
    far.net("cut");
    home.wait_for("a", "completed");
    assert_eq!((home.read("ended").as_str(), home.read("overlap").as_str()), ("", "both\n"));
}

#[test]
fn a_store_that_hangs_does_not_keep_a_worker_from_ending_its_commands() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", FIRST_HANGS);
    let _far_pool = far.pool("");
    let command = home.wait_for_pid("running");
    far.net("hang");
    wait_until("the command is dead", || !is_alive(command));
    assert_eq!(home.read("ended"), "term\n");
    assert_eq!(home.show("a")["state"], "processing", "nothing could be recorded");
    far.repair("hang");
    home.wait_for("a", "completed");
    assert_eq!(outcomes(&home, "a"), ["released", "success"]);
}

/// The keeper of leases, which has nothing left to end after the first time, watches again when the store is back.
#[test]
fn a_worker_that_is_cut_off_again_ends_its_commands_again() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", UNTIL_GO);
    let _far_pool = far.pool("");
    for times in 1..=2 {
        let command = home.wait_for_pid("running");
        far.net("cut");
        wait_until("the command is dead", || !is_alive(command));
        let was_killed = || far.journal().matches("the commands are killed").count() == times;
        wait_until("nothing is left to end", was_killed);
        fs::remove_file(home.folder().join("running")).expect("the command wrote it");
        far.repair("cut");
    }
    home.file("go", "");
    home.wait_for("a", "completed");
    assert_eq!(outcomes(&home, "a"), ["released", "released", "success"]);
}

#[test]
fn attempts_that_a_cut_off_worker_ended_are_released_when_the_store_is_back() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", FIRST_HANGS);
    let _far_pool = far.pool("");
    home.wait_for_file("running");
    home.enqueue("b", "echo ran >> b-ran");
    far.net("cut");
    home.wait_for_file("ended");
    wait_until("it says so", || far.journal().contains("no lease was renewed in time"));
    assert_eq!(home.read("b-ran"), "", "nothing new is started");
    far.repair("cut");
    let job = home.wait_for("a", "completed");
    assert_eq!(history(&job)[0]["outcome"], "released");
    assert_eq!(history(&job)[0]["error"], "cut off from the store");
    assert_eq!(job["failures"], 0, "it used up no retry");
    home.wait_for("b", "completed");
    assert!(far.journal().contains("the store answers again"), "{}", far.journal());
}

#[test]
fn an_outcome_outlasts_a_short_outage() {
    let home = Home::new();
    let far = Machine::new(&home, "far");
    home.enqueue("a", &format!("{UNTIL_GO}; exit 7"));
    let _far_pool = far.pool("");
    home.wait_for_file("running");
    far.net("cut");
    home.file("go", "");
    wait_until("the store fails", || far.journal().contains("the network is cut"));
    far.repair("cut");
    home.wait_for("a", "dead");
    assert_eq!(outcomes(&home, "a"), ["failure"]);
}

#[test]
fn an_outcome_whose_answer_was_lost_is_recognised() {
    let home = Home::new();
    let far = Machine::new(&home, "far");
    home.enqueue("a", &format!("{UNTIL_GO}; exit 7"));
    let _far_pool = far.pool("");
    home.wait_for_file("running");
    far.lose_answers("exchange");
    home.file("go", "");
    home.wait_for("a", "dead");
    wait_until("the answer is lost", || far.journal().contains("the answer was lost"));
    far.repair("lose-answers");
    wait_until("the end is logged", || far.journal().contains("end a"));
    assert_eq!(outcomes(&home, "a"), ["failure"]);
    assert!(!far.journal().contains("its lease was lost"), "{}", far.journal());
}

#[test]
fn a_claim_whose_answer_was_lost_is_given_back() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    let _far_pool = far.pool("");
    far.lose_answers("exchange");
    home.enqueue("a", "true");
    wait_until("it is claimed", || home.show("a")["attempts"] != 0);
    far.repair("lose-answers");
    home.wait_for("a", "completed");
    let outcomes = outcomes(&home, "a");
    let (last, before) = outcomes.split_last().expect("an attempt");
    assert_eq!(last, "success");
    assert!(!before.is_empty() && before.iter().all(|outcome| outcome == "released"), "{outcomes:?}");
}

#[test]
fn a_machine_that_died_is_taken_over_after_its_lease() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", FIRST_HANGS);
    let far_pool = far.pool("");
    let command = home.wait_for_pid("running");
    let worker = home.workers().remove(0).pid;
    let _pool = Pool::run(&home, "");
    for pid in [far_pool.supervisor_pid(), worker, command] {
        send(pid, Signal::KILL);
    }
    home.wait_for("a", "completed");
    assert_eq!(outcomes(&home, "a"), ["lost", "success"]);
    assert!(home.journal().contains("sent no heartbeat for a whole lease"), "{}", home.journal());
}

#[test]
fn a_machine_whose_workers_beat_keeps_its_jobs() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", UNTIL_GO);
    let _far_pool = far.pool("");
    home.wait_for_file("running");
    let _pool = Pool::run(&home, "");
    let beat = || home.workers().iter().map(|worker| worker.beat).min().unwrap_or(0);
    wait_until("several leases pass", || beat() > 12);
    assert_eq!(home.show("a")["state"], "processing");
    home.file("go", "");
    home.wait_for("a", "completed");
    assert_eq!(outcomes(&home, "a"), ["success"]);
}

#[test]
fn a_listening_worker_still_notices_a_dead_neighbour_at_once() {
    let home = Home::new();
    let far = Machine::new(&home, "far");
    home.set("lease", "1h");
    home.set("heartbeat_interval", "10m");
    home.enqueue("a", FIRST_HANGS);
    far.net("listening");
    let doomed = far.pool("");
    home.wait_for_file("running");
    let worker = home.workers().remove(0).pid;
    let _other = far.pool("");
    send(doomed.supervisor_pid(), Signal::STOP);
    send(worker, Signal::KILL);
    send(doomed.supervisor_pid(), Signal::KILL);
    home.wait_for("a", "completed");
    assert_eq!(
        (outcomes(&home, "a"), home.read("overlap").as_str()),
        (vec!["lost".to_owned(), "success".to_owned()], "")
    );
}

#[test]
fn a_job_that_runs_elsewhere_is_cancelled_within_a_heartbeat() {
    let home = Home::new();
    let far = Machine::with_short_leases(&home, "far");
    home.enqueue("a", UNTIL_GO);
    let call = far.call("worker run").env("QUEUECTL_WITHOUT", "polling").interruptible();
    let _far_pool = Pool::up(&home, call.into_command());
    let command = home.wait_for_pid("running");
    // Without its bell only the heartbeat is left.
    let bell = format!("{}.bell", home.workers()[0].id);
    fs::remove_file(far.path().join("workers").join(bell)).expect("it has a bell");
    home.run(["cancel", "a"]).ok();
    home.wait_for("a", "cancelled");
    assert!(!is_alive(command));
}

#[test]
fn each_machine_stops_its_own_workers() {
    let home = Home::new();
    let far = Machine::new(&home, "far");
    let _far_pool = far.pool("");
    let pool = Pool::run(&home, "");
    home.run(["worker", "stop"]).ok().says("1 worker stopped").says("1 worker is still running");
    pool.ends_well();
    assert_eq!(home.workers().len(), 1);
    far.run("worker stop").ok().says("1 worker stopped");
    assert_eq!(home.workers().len(), 0);
}

#[test]
fn status_names_the_host_of_a_silent_worker() {
    let home = Home::new();
    let far = Machine::new(&home, "far");
    let _far_pool = far.pool("");
    let worker = home.workers().remove(0);
    send(worker.supervisor_pid.expect("it has one"), Signal::KILL);
    send(worker.pid, Signal::KILL);
    wait_until("the worker is dead", || !is_alive(worker.pid));
    home.silence(worker.id.as_str(), std::time::Duration::from_secs(4 * 3_600));
    let near = Machine::new(&home, "near");
    let said = format!("worker {} on host {} has not been heard of for 4h", worker.id, worker.host);
    near.run("status").ok().shows(&said);
}

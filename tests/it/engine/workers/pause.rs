//! Pausing and resuming running jobs, in control groups and without them.

use std::fs;
use std::process::{Command, Stdio};

use domain::values::timestamp::Timestamp;
use rustix::process::{Pid, Signal};
use serde_json::json;
use sys::cgroup::Site;
use sys::process;
use sys::process::tree;
use sys::process::tree::Member;

use crate::cli::harness::background::end_of;
use crate::engine::harness::{Home, Pool, UNTIL_GO, history, is_alive, send, wait_until};

/// How the processes of a job are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// In control groups, where this machine has them.
    Default,
    /// With signals.
    Signals,
}

#[cfg(debug_assertions)]
const ALL_MEANS: &[Means] = &[Means::Default, Means::Signals];
/// In released builds no guard can be switched off.
#[cfg(not(debug_assertions))]
const ALL_MEANS: &[Means] = &[Means::Default];

fn pool(home: &Home, means: Means) -> Pool<'_> {
    let mut call = home.call(["worker", "run", "--concurrency", "1"]).interruptible();
    if means == Means::Signals {
        call = call.env("QUEUECTL_WITHOUT", "containment");
    }
    Pool::up(home, call.into_command())
}

/// Whether a process is kept from running: it is stopped, or its group is frozen.
pub(crate) fn is_stopped(home: &Home, pid: u32) -> bool {
    let process = Pid::from_raw(pid.cast_signed()).expect("a pid");
    let stat = process::stat(process);
    stat.is_some_and(|stat| stat.is_stopped) || is_frozen(home, pid) || waits_for_stopped_child(process)
}

/// A shell starts commands with vfork(2), and cannot run, or stop, until the new process executes its program.
fn waits_for_stopped_child(pid: Pid) -> bool {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default();
    let waits = text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('D'));
    let is_stopped_child = |member: &Member| member.stat.parent == pid.as_raw_pid() && member.stat.is_stopped;
    waits && tree::of(&[pid]).iter().any(is_stopped_child)
}

fn is_frozen(home: &Home, pid: u32) -> bool {
    let Ok(site) = Site::find() else {
        return false;
    };
    let line = format!("{pid}\n");
    let holds = |text: String, part: &str| text.contains(part);
    home.workers().iter().any(|worker| {
        let slots = fs::read_dir(site.folder_of(worker.id.as_str())).into_iter().flatten().flatten();
        slots.map(|slot| slot.path()).any(|slot| {
            let read = |file: &str| fs::read_to_string(slot.join(file)).unwrap_or_default();
            holds(format!("\n{}", read("cgroup.procs")), &format!("\n{line}"))
                && holds(read("cgroup.events"), "frozen 1")
        })
    })
}

/// Pauses a job, and waits until all of these processes are stopped.
#[track_caller]
fn pause(home: &Home, id: &str, pids: &[u32]) {
    home.run(["pause", id]).ok();
    for pid in pids {
        wait_until(&format!("process {pid} is stopped"), || is_stopped(home, *pid));
    }
}

/// A command with a daemon; both write their pids, and end when the test creates the file `go`.
const WITH_DAEMON: &str =
    "setsid sh -c 'echo $$ > daemon; until [ -e go ]; do sleep 0.02; done; echo end >> ends' &
     echo $$ > shell; until [ -e go ]; do sleep 0.02; done; wait; echo end >> ends";

#[test]
fn a_paused_job_stops_with_its_daemons_and_continues() {
    for means in ALL_MEANS {
        let home = Home::new();
        home.enqueue("a", WITH_DAEMON);
        home.enqueue("waits", "true");
        let _pool = pool(&home, *means);
        let pids = ["shell", "daemon"].map(|name| home.wait_for_pid(name));
        pause(&home, "a", &pids);
        let paused = home.show("a");
        assert_eq!(paused["state"], "processing");
        assert!(paused["paused_at"].is_string(), "{paused}");
        home.file("go", "");
        home.run(["pause", "a"]).ok();
        assert_eq!(home.show("a")["paused_at"], paused["paused_at"], "it is paused since the first request");
        // Its slot stays occupied.
        let why = home.run(["explain", "waits"]).ok().stdout;
        assert!(
            why.contains("job a is paused and keeps its slot; `queuectl resume a` continues it"),
            "{why}"
        );
        assert!(pids.iter().all(|pid| is_stopped(&home, *pid)));
        assert_eq!(home.read("ends"), "", "{means:?}");
        home.run(["resume", "a"]).ok();
        let job = home.wait_for("a", "completed");
        assert_eq!((&job["attempts"], &job["paused_at"]), (&json!(1), &json!(null)));
        assert_eq!(home.read("ends"), "end\nend\n", "{means:?}");
        home.wait_for("waits", "completed");
    }
}

#[test]
fn a_pause_takes_effect_without_polling() {
    let home = Home::new();
    home.enqueue("a", UNTIL_GO);
    let _pool = Pool::run_without_polling(&home, "");
    let pid = home.wait_for_pid("running");
    pause(&home, "a", &[pid]);
    home.file("go", "");
    home.run(["resume", "--state", "paused"]).ok();
    home.wait_for("a", "completed");
}

/// The job is paused until its timeout has passed. If the machine is too slow to pause it in time, or to end it after that,
/// this is tried again with a longer timeout.
#[test]
fn the_timeout_of_a_paused_job_stands_still() {
    for means in ALL_MEANS {
        let completes = ["1s", "4s", "16s"].into_iter().any(|timeout| {
            let home = Home::new();
            home.enqueue_with("a", UNTIL_GO, &format!("--max-retries 0 --timeout {timeout}"));
            let _pool = pool(&home, *means);
            let pid = home.wait_for_pid("running");
            let job = home.show("a");
            let timeout = job["timeout_ms"].as_u64().expect("a number").cast_signed();
            let began: Timestamp = job["started_at"].as_str().and_then(|at| at.parse().ok()).expect("a time");
            home.run(["pause", "a"]);
            wait_until("it is stopped or over", || {
                home.state_of("a") != "processing" || is_stopped(&home, pid)
            });
            let store = home.store();
            wait_until("its timeout has passed", || {
                store.now().expect("the time").as_millis() - began.as_millis() > timeout
            });
            home.file("go", "");
            home.run(["resume", "a"]);
            wait_until("it has ended", || home.state_of("a") != "processing");
            home.state_of("a") == "completed"
        });
        assert!(completes, "{means:?}");
    }
}

#[test]
fn a_paused_job_can_handle_the_signal_of_a_cancel() {
    for means in ALL_MEANS {
        let home = Home::new();
        home.set("kill_grace", "1h");
        let daemon = "setsid sh -c 'echo $$ > daemon; exec sleep 600' &";
        let shell = "trap 'echo got >> got; exit' TERM; echo $$ > shell; while :; do sleep 0.02; done";
        home.enqueue("a", &format!("{daemon} {shell}"));
        let _pool = pool(&home, *means);
        let pids = ["shell", "daemon"].map(|name| home.wait_for_pid(name));
        pause(&home, "a", &pids);
        home.run(["cancel", "a"]).ok();
        let job = home.wait_for("a", "cancelled");
        assert_eq!(history(&job)[0]["outcome"], "cancelled");
        assert_eq!(home.read("got"), "got\n", "{means:?}");
        assert!(!pids.into_iter().any(is_alive), "{means:?}");
    }
}

#[test]
fn a_paused_job_that_ignores_a_cancel_is_killed() {
    for means in ALL_MEANS {
        let home = Home::new();
        home.set("kill_grace", "100ms");
        home.enqueue("a", "trap '' TERM; echo $$ > shell; while :; do sleep 0.02; done");
        home.enqueue("next", "true");
        let _pool = pool(&home, *means);
        let pid = home.wait_for_pid("shell");
        pause(&home, "a", &[pid]);
        home.run(["cancel", "a"]).ok();
        home.wait_for("a", "cancelled");
        assert!(!is_alive(pid), "{means:?}");
        home.wait_for("next", "completed");
    }
}

#[test]
fn a_paused_job_that_another_process_kills_leaves_its_slot_usable() {
    for means in ALL_MEANS {
        let home = Home::new();
        home.enqueue("a", WITH_DAEMON);
        home.enqueue("next", "true");
        let _pool = pool(&home, *means);
        let pids = ["shell", "daemon"].map(|name| home.wait_for_pid(name));
        pause(&home, "a", &pids);
        send(pids[0], Signal::KILL);
        assert_eq!(home.wait_for("a", "dead")["signal"], "SIGKILL");
        assert!(!is_alive(pids[1]), "{means:?}");
        home.wait_for("next", "completed");
    }
}

#[test]
fn a_stopping_worker_resumes_its_paused_jobs_and_lets_them_finish() {
    for means in ALL_MEANS {
        let home = Home::new();
        home.enqueue("a", UNTIL_GO);
        let pool = pool(&home, *means);
        let pid = home.wait_for_pid("running");
        pause(&home, "a", &[pid]);
        pool.signal(Signal::TERM);
        home.wait_until_draining();
        wait_until("it continues", || home.show("a")["paused_at"].is_null());
        home.run(["pause", "a"]).fails(4).says("its worker is stopping");
        home.file("go", "");
        pool.ends_well();
        assert_eq!(home.state_of("a"), "completed", "{means:?}");
        let events = home.show("a")["events"].clone();
        let names: Vec<&str> =
            events.as_array().expect("a list").iter().filter_map(|event| event["event"].as_str()).collect();
        assert_eq!(names, ["pause", "resume"]);
        assert!(events[1]["by"].as_str().is_some_and(|by| by.starts_with("w-")), "{events}");
    }
}

#[test]
fn a_stop_with_a_deadline_kills_a_paused_job_and_gives_it_back() {
    for means in ALL_MEANS {
        let home = Home::new();
        home.set("kill_grace", "100ms");
        home.enqueue("a", UNTIL_GO);
        let pool = pool(&home, *means);
        let pid = home.wait_for_pid("running");
        pause(&home, "a", &[pid]);
        home.run(["worker", "stop", "--now"]).ok();
        pool.ends_well();
        assert!(!is_alive(pid), "{means:?}");
        let job = home.show("a");
        assert_eq!((&job["state"], &job["paused_at"]), (&json!("pending"), &json!(null)));
        assert_eq!(history(&job)[0]["outcome"], "released");
    }
}

#[test]
fn run_says_that_its_job_is_paused() {
    let home = Home::new();
    let _pool = Pool::run(&home, "");
    let said = home.folder().join("run-said");
    let mut command: Command = home.call(["run", "--id", "a", "--command", UNTIL_GO]).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.stderr(fs::File::create(&said).expect("a file")).spawn().expect("it starts");
    let pid = home.wait_for_pid("running");
    pause(&home, "a", &[pid]);
    let says = |part: &str| fs::read_to_string(&said).is_ok_and(|text| text.contains(part));
    wait_until("run says so", || says("job a is paused; `queuectl resume a` continues it"));
    home.run(["resume", "a"]).ok();
    wait_until("run says so", || says("job a continues"));
    home.file("go", "");
    assert!(end_of(child).success());
}

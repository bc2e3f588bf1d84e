//! A limit on file sizes (`ulimit -f`): exceeding it is an error for queuectl, not a fatal signal.

use std::process::Command;

use crate::cli::harness::{Call, Home, PROGRAM};
use crate::crash_engine::harness::CrashHome;
use crate::crash_engine::processes::wait;

/// The program under a limit in KiB.
fn limited(call: Call, kibibytes: u32) -> Call {
    let mut command = Command::new("/bin/bash");
    command.arg("-c").arg(format!("ulimit -f {kibibytes} && exec \"$0\" \"$@\"")).arg(PROGRAM);
    call.through(command)
}

#[test]
fn fault_29_an_enqueue_that_exceeds_the_file_size_limit_is_refused() {
    let long = format!(": {}", "x".repeat(100_000));
    for (home, what) in [(Home::new(), "a new home"), (Home::with_jobs(&["first"]), "a home in use")] {
        let before = home.count();
        for kibibytes in [0, 1, 16, 64] {
            let call = home.call(["enqueue", "--id", "long", "--command", &long]);
            let ran = limited(call, kibibytes).run();
            println!("{what}, {kibibytes} KiB: {ran}");
            let ran = ran.fails(5).prints("");
            assert!(ran.stderr.contains("file size limit") || ran.stderr.contains("File too large"), "{ran}");
            assert_eq!(home.count(), before, "{what}, {kibibytes} KiB: nothing is stored");
        }
        home.run(["enqueue", "--id", "long", "--command", &long]).ok();
        assert_eq!(home.count(), before + 1);
    }
}

#[test]
fn fault_29_a_worker_survives_a_file_size_limit() {
    let crash_home = CrashHome::new();
    crash_home.job("loud", "head -c 3000000 /dev/zero");
    crash_home.jobs(3, |_| "sleep 0.01");
    let call = limited(crash_home.call(&["worker", "run", "--until-empty"]), 1_024);
    call.run().ok();
    for id in crash_home.ids() {
        assert_eq!(crash_home.story_of_started(&id), "completed: success", "{id}: {}", crash_home.journal());
    }
}

#[test]
fn fault_21_a_job_that_exceeds_its_file_size_limit_is_killed_by_sigxfsz() {
    let crash_home = CrashHome::new();
    crash_home
        .home
        .run([
            "enqueue",
            "-q",
            "--id",
            "a",
            "--max-retries",
            "0",
            "--command",
            "ulimit -f 1; exec head -c 9999 /dev/zero > big",
        ])
        .ok();
    crash_home.pool();
    wait("the job has ended", || crash_home.unfinished().is_empty());
    let job = crash_home.home.show("a");
    assert_eq!(job["signal"], "SIGXFSZ", "{job}");
}

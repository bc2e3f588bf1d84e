//! The shim injects exactly the requested faults; otherwise the tests that use it would prove nothing.

use std::process::Command;

use rustix::io::Errno;

use super::{Fault, Shim, When};
use crate::engine::harness::{Home, Pool, history};

/// Runs a script in the parent folder of the home and returns its output.
fn run(home: &Home, shim: &Shim, script: &str) -> String {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).current_dir(home.folder()).envs(shim.variables());
    let output = shell.output().expect("a shell");
    String::from_utf8(output.stdout).expect("text")
}

fn home() -> (Home, Shim) {
    let home = Home::new();
    std::fs::create_dir(home.path()).expect("the home is created");
    let shim = Shim::new(&home);
    (home, shim)
}

/// A script that writes to a file `count` times and prints `+` or `-` for each write.
fn writes(path: &str, count: u32) -> String {
    format!("for _ in $(seq {count}); do echo x 2>&- >> {path} && printf + || printf -; done")
}

#[test]
fn the_shim_fails_the_requested_calls() {
    let (home, shim) = home();
    for (when, expected) in [
        (When::Never, "++++"),
        (When::Always, "----"),
        (When::Once, "-+++"),
        (When::Nth(3), "++-+"),
        (When::Chance { per_mille: 0, seed: 1 }, "++++"),
        (When::Chance { per_mille: 1000, seed: 1 }, "----"),
    ] {
        shim.write_fails(Errno::NOSPC, when);
        assert_eq!(run(&home, &shim, &writes("home/file", 4)), expected, "{when:?}");
    }
    assert_eq!(shim.struck(Fault::Write), 10);
    let chance = When::Chance { per_mille: 500, seed: 7 };
    let draw = || {
        shim.write_fails(Errno::IO, chance);
        run(&home, &shim, &writes("home/file", 40))
    };
    let drawn = draw();
    assert!(drawn.contains('+') && drawn.contains('-'), "{drawn}");
    assert_eq!(draw(), drawn, "the same seed fails the same calls");
    shim.heal();
    assert_eq!(run(&home, &shim, &writes("home/file", 4)), "++++");
}

#[test]
fn the_shim_fails_only_the_requested_files() {
    let (home, shim) = home();
    shim.write_fails(Errno::NOSPC, When::Always);
    assert_eq!(run(&home, &shim, &writes("outside", 1)), "+");
    shim.only("-wal");
    assert_eq!(run(&home, &shim, &writes("home/queue.db", 1)), "+");
    assert_eq!(run(&home, &shim, &writes("home/queue.db-wal", 1)), "-");
    shim.heal();
    shim.sync_fails(Errno::IO, When::Once);
    let sync = "sync home/queue.db 2>&1; sync home/queue.db && echo well";
    let said = run(&home, &shim, sync);
    assert!(said.contains("Input/output error") && said.ends_with("well\n"), "{said}");
}

#[test]
fn the_shim_shifts_the_wall_clock() {
    let (home, shim) = home();
    let seconds = || run(&home, &shim, "date +%s").trim().parse::<i64>().expect("a number");
    let now = seconds();
    shim.shift_clock(-86_400);
    assert!((now - 86_400..now - 86_400 + 60).contains(&seconds()));
    assert!(shim.clock_shifted() > 0);
}

#[test]
fn the_shim_slows_the_monotonic_clock() {
    let home = Home::new();
    home.enqueue("it", "sleep 1");
    let shim = Shim::new(&home);
    shim.slow_clock(30);
    let call = home.call(["worker", "run", "-q", "--until-empty"]).envs(shim.variables());
    Pool::spawn(&home, call.interruptible().into_command()).ends_well();
    let job = home.show("it");
    let seemed = history(&job)[0]["duration_ms"].as_u64().expect("a duration");
    assert!((33..500).contains(&seemed), "a second was measured as {seemed} ms");
}

//! `queuectl service` as far as it needs no running systemd: the units that it writes, and machines without one.

use std::process::Command;

use crate::cli::harness::{Home, PROGRAM, RunResult};

/// systemd's own check of a unit, which starts nothing. It knows no manual pages.
#[track_caller]
fn verify(home: &Home, scope: &str, text: &str) {
    let unit = home.file("queuectl-worker.service", text);
    let checked = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no", scope])
        .arg(&unit)
        .env("XDG_RUNTIME_DIR", home.folder())
        .output()
        .expect("systemd-analyze runs (package systemd)");
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && !said.contains("queuectl-worker"), "{said}\n{text}");
}

#[test]
fn systemd_accepts_every_unit_without_a_warning() {
    let home = Home::new();
    let args = ["service", "install", "--dry-run", "--system", "-j", "auto", "--queue", "a,b"];
    let system = home.run(args).ok().shows("worker run --count 1 --concurrency auto --queue a --queue b");
    verify(&home, "--system", &system.stdout);
    let user = home.run(["service", "install", "--dry-run", "--user", "--name", "mail"]).ok().says_nothing();
    verify(&home, "--user", &user.stdout);
    let folder = home.folder().join("50% of \"it\"");
    let folder = folder.to_str().expect("text");
    let odd =
        ["service", "install", "--dry-run", "--account", "root", "--writable", folder, "--home", folder];
    verify(&home, "--system", &home.call_without_home(odd).run().ok().stdout);
    assert!(!home.path().exists(), "a dry run makes nothing");
}

#[test]
fn a_unit_holds_no_password() {
    let home = Home::new();
    let install = |store: &str| {
        home.run(["service", "install", "--dry-run", "--system", "--account", "jobs", "--store", store])
    };
    install("postgres://ada:secret@db/jobs").fails(2).says("every user can read a unit").says("config.toml");
    install("postgres://ada@db/jobs").ok().shows("--store postgres://ada@db/jobs");
    install("other/queue.db").ok().shows(&format!("--store {}/other/queue.db", home.folder().display()));
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let home = Home::new();
    home.run(["service", "install", "--dry-run", "--name", "../x"]).fails(2).says("letters, digits");
    home.run(["service", "install", "--dry-run", "--user", "--account", "jobs"]).fails(2);
    home.run(["service", "install", "--dry-run", "--writable", "/srv"]).fails(2).says("--account");
    home.run(["service", "install", "--dry-run", "--count", "0"]).fails(2);
    home.run(["service", "install", "--dry-run", "--user", "--system"]).fails(2);
}

/// In a mount namespace of its own, whose `/run` is empty, so that no systemd can be reached.
fn without_systemd(home: &Home, args: &[&str]) -> RunResult {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg("mount -t tmpfs tmpfs /run && exec \"$0\" \"$@\"").arg(PROGRAM);
    home.call(args).through(command).run()
}

#[test]
fn a_machine_without_systemd_gets_examples_for_other_service_managers() {
    let home = Home::new();
    let install = without_systemd(&home, &["service", "install", "--count", "2"]);
    let install = install.fails(1).says("systemd is not running").says("worker start");
    for part in
        ["# OpenRC: /etc/init.d/queuectl-worker", "# runit:", "# supervisord:", "worker run --count 2"]
    {
        assert!(install.stdout.contains(part), "{part}: {install}");
    }
    for verb in ["status", "uninstall", "restart", "logs"] {
        without_systemd(&home, &["service", verb]).fails(1).says("systemd is not running").prints("");
    }
    let error = without_systemd(&home, &["service", "install", "--json"]).fails(1);
    assert_eq!((error.stdout.as_str(), &error.error_json()["exit_code"]), ("", &1.into()));
    assert!(!home.path().exists(), "nothing was made");
}

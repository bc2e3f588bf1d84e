//! `queuectl service` as far as it needs no running systemd: the units that it writes, and machines without one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::cli::harness::{Home, PROGRAM, RunResult};

/// systemd's own check of a unit, which starts nothing. It knows no manual pages.
#[track_caller]
fn verify(home: &Home, scope: &str, text: &str) {
    let unit = home.file("queuectl-worker.service", text);
    verify_file(home, scope, &unit);
}

#[track_caller]
fn verify_file(home: &Home, scope: &str, unit: &Path) {
    let checked = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no", scope])
        .arg(unit)
        .env("XDG_RUNTIME_DIR", home.folder())
        .output()
        .expect("systemd-analyze runs (package systemd)");
    let said = String::from_utf8_lossy(&checked.stderr);
    let text = || fs::read_to_string(unit).expect("the unit is text");
    assert!(checked.status.success() && !said.contains("queuectl-"), "{said}\n{}", text());
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

#[cfg(feature = "dashboard")]
#[test]
fn a_dashboard_that_other_machines_reach_is_refused() {
    let home = Home::new();
    for address in ["0.0.0.0:80", "[::]:7878"] {
        home.run(["service", "install", "--dry-run", "--dashboard", "--listen", address])
            .fails(2)
            .says("can be reached from other machines")
            .says("use --allow-remote with --tls-cert and --tls-key");
    }
}

#[cfg(feature = "dashboard")]
#[test]
fn a_dashboard_has_sockets_that_systemd_opens() {
    let home = Home::new();
    let install = ["service", "install", "--dry-run", "--dashboard"];
    let units = |more: &[&str]| home.run(install.iter().chain(more).chain(&["--json"])).ok().json();
    for (scope, more) in
        [("--user", vec!["--user"]), ("--system", vec!["--account", "root", "--listen", "unix:/run/q"])]
    {
        let units = units(&more);
        for (name, key) in [("queuectl-dashboard.socket", "socket"), ("queuectl-dashboard.service", "unit")] {
            home.file(name, units[key].as_str().expect("text"));
        }
        for name in ["queuectl-dashboard.socket", "queuectl-dashboard.service"] {
            verify_file(&home, scope, &home.folder().join(name));
        }
    }
    let shown = home.run(install).ok();
    shown.shows("ListenStream=127.0.0.1:7878").shows("ListenStream=[::1]:7878").shows("dashboard --quiet");
    home.run(install.iter().chain(&["--count", "2"])).fails(2).says("not for a dashboard");
    home.run(["service", "install", "--dry-run", "--listen", "7878"]).fails(2);
}

/// A `systemctl` that notes how it was called, on a machine that looks as if systemd ran it.
fn with_fake_systemd(home: &Home, args: &[&str]) -> RunResult {
    let calls = home.folder().join("calls");
    for program in ["systemctl", "loginctl"] {
        let script = format!(
            "#!/bin/sh\necho \"${{0##*/}} $*\" >> '{}'\ncase \"$*\" in *show*) echo LoadState=loaded; echo ActiveState=active;; esac\n",
            calls.display()
        );
        let program = home.file(program, script);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be executed");
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    let script =
        "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && PATH=$TOOLS:$PATH exec \"$0\" \"$@\"";
    command.arg(script).arg(PROGRAM);
    let call =
        home.call(args).env("TOOLS", home.folder()).env("XDG_CONFIG_HOME", home.folder().join("config"));
    call.through(command).run()
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_sandbox_that_would_hide_a_directory_is_refused() {
    let home = Home::new();
    with_fake_systemd(&home, &["service", "install", "--account", "root", "--writable", "/tmp"])
        .fails(2)
        .says("it has a /tmp of its own");
}

#[test]
fn an_uninstalled_service_leaves_no_unit() {
    let home = Home::new();
    let units = home.folder().join("config/systemd/user");
    let calls = || fs::read_to_string(home.folder().join("calls")).unwrap_or_default();
    with_fake_systemd(&home, &["service", "install", "--user", "--name", "mail"]).ok().shows("");
    assert_eq!(files(&units), ["queuectl-worker-mail.service"]);
    assert!(calls().contains("systemctl --user enable --quiet queuectl-worker-mail.service"), "{}", calls());
    assert!(calls().contains("systemctl --user start queuectl-worker-mail.service"), "{}", calls());
    let again = ["service", "install", "--user", "--name", "mail", "-j", "2"];
    with_fake_systemd(&home, &again).ok();
    assert!(calls().contains("systemctl --user restart queuectl-worker-mail.service"), "{}", calls());
    with_fake_systemd(&home, &["service", "restart", "--user", "--name", "mail"]).ok();
    with_fake_systemd(&home, &["service", "uninstall", "--user", "--name", "mail"]).ok();
    assert!(calls().contains("disable --quiet --now queuectl-worker-mail.service"), "{}", calls());
    assert_eq!(files(&units), Vec::<String>::new());
}

#[cfg(feature = "dashboard")]
#[test]
fn the_socket_of_a_dashboard_is_started_and_removed_before_it() {
    let home = Home::new();
    let units = home.folder().join("config/systemd/user");
    with_fake_systemd(&home, &["service", "install", "--user", "--dashboard"]).ok();
    assert_eq!(files(&units), ["queuectl-dashboard.service", "queuectl-dashboard.socket"]);
    with_fake_systemd(&home, &["service", "status", "--user", "--dashboard"]).ok().shows("active");
    with_fake_systemd(&home, &["service", "uninstall", "--user", "--dashboard"]).ok();
    assert_eq!(files(&units), Vec::<String>::new());
    let calls = fs::read_to_string(home.folder().join("calls")).expect("it was called");
    assert!(calls.contains("systemctl --user start queuectl-dashboard.socket"), "{calls}");
    let [socket, service] = ["socket", "service"].map(|kind| {
        calls.find(&format!("disable --quiet --now queuectl-dashboard.{kind}")).expect("it was disabled")
    });
    assert!(socket < service, "{calls}");
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
    assert!(!install.stdout.contains("--listen"), "`worker run` has no such flag: {install}");
    for verb in ["status", "uninstall", "restart", "logs"] {
        without_systemd(&home, &["service", verb]).fails(1).says("systemd is not running").prints("");
    }
    let error = without_systemd(&home, &["service", "install", "--json"]).fails(1);
    assert_eq!((error.stdout.as_str(), &error.error_json()["exit_code"]), ("", &1.into()));
    assert!(!home.path().exists(), "nothing was made");
}

//! Homes that are missing, open to other users, owned by another user, or not homes at all.

use std::fs;

use super::{Diagnosis, snapshot};
use crate::cli::harness::{Home, allow, is_root};

#[test]
fn a_missing_home_is_not_an_error_and_is_not_created() {
    let home = Home::new();
    Diagnosis::of(&home).code(0).finds("home", "ok", "does not exist yet").finds(
        "database",
        "ok",
        "does not exist yet",
    );
    assert!(!home.path().exists());
    home.run(["doctor"]).ok().says_nothing().shows("it is created on first use");
}

#[test]
fn a_home_that_cannot_be_created_is_unavailable() {
    let home = Home::new();
    allow(home.folder(), 0o555);
    home.call(["doctor"]).unprivileged().run().fails(5).shows("Permission denied");
    allow(home.folder(), 0o755);
    assert!(!home.path().exists());
}

#[test]
fn a_home_that_other_users_can_enter_is_reported() {
    let home = Home::with_jobs(&["a"]);
    allow(&home.path(), 0o750);
    Diagnosis::of(&home)
        .code(0)
        .finds("home", "warning", "is accessible to other users (mode 0750)")
        .advises(&format!("run `chmod 700 {}`", home.path().display()));
    allow(&home.path(), 0o777);
    Diagnosis::of(&home)
        .code(5)
        .finds("home", "error", "is writable by others (mode 0777)")
        .advises("`chmod go-w ");
}

#[test]
fn files_that_other_users_can_read_are_reported() {
    let home = Home::with_jobs(&["a"]);
    home.file("home/logs/1-1.log", "said");
    allow(&home.path().join("logs"), 0o700);
    allow(&home.path().join("logs/1-1.log"), 0o600);
    Diagnosis::of(&home).code(0).finds("files", "ok", "7 files").finds("logs", "ok", "1 file, 4 bytes");

    allow(&home.path().join("logs/1-1.log"), 0o644);
    Diagnosis::of(&home)
        .code(0)
        .finds("files", "warning", "other users have access to 1 of 7 files: logs/1-1.log")
        .advises("chmod -R go-rwx ");

    allow(&home.path().join("logs/1-1.log"), 0o606);
    Diagnosis::of(&home).code(1).finds("owners", "error", "logs/1-1.log` is writable by others");
    allow(&home.database(), 0o666);
    Diagnosis::of(&home)
        .code(5)
        .finds("files", "warning", "to 2 of 7 files")
        .finds("owners", "error", "queue.db` is writable by others")
        .advises("`chmod -R go-w ");
}

#[test]
fn fault_14_a_home_that_is_a_file_is_reported() {
    let home = Home::new();
    home.file("home", "precious");
    Diagnosis::of(&home).code(7).finds("home", "error", "is a file, but the home must be a directory");
}

#[test]
fn a_private_home_stays_closed_to_other_users() {
    if !is_root() {
        return; // Only root can create a home that belongs to another user.
    }
    let home = Home::with_jobs(&["a"]);
    allow(home.folder(), 0o755);
    let before = snapshot(home.folder());
    let ran = home.call(["doctor", "--json"]).unprivileged().run();
    assert!(snapshot(home.folder()) == before, "something was changed");
    Diagnosis { ran }
        .code(5)
        .finds("home", "error", "belongs to root, but you are ")
        .finds("files", "error", "Permission denied")
        .finds("user", "ok", "not root");
}

#[test]
fn a_readable_queue_can_be_checked_by_other_users() {
    if !is_root() {
        return; // As above.
    }
    let home = Home::with_jobs(&["a"]);
    allow(home.folder(), 0o755);
    allow(&home.path(), 0o755);
    for entry in home.path().read_dir().expect("a folder") {
        allow(&entry.expect("an entry").path(), 0o644);
    }
    for without_index in [false, true] {
        if without_index {
            fs::remove_file(home.path().join("queue.db-shm")).expect("it was there");
        }
        let before = snapshot(home.folder());
        let ran = home.call(["doctor", "--json"]).unprivileged().run();
        assert!(snapshot(home.folder()) == before, "something was changed");
        Diagnosis { ran }
            .code(5)
            .finds("home", "error", "Permission denied")
            .finds("database", "ok", "intact")
            .finds("no_worker", "warning", "1 job waits");
    }
}

#[test]
fn an_invalid_settings_file_is_reported() {
    let home = Home::with_jobs(&["a"]);
    let file = home.file("home/config.toml", "stroe = \"x\"\n");
    allow(&file, 0o600);
    Diagnosis::of(&home)
        .code(1)
        .finds("config", "error", "line 1")
        .finds_no("database")
        .finds("proc", "ok", "");
    home.file("home/config.toml", "store = \"other.db\"\n");
    Diagnosis::of(&home).code(0).finds("config", "ok", "config.toml is valid").finds(
        "database",
        "ok",
        "not exist yet",
    );
}

#[test]
fn the_machine_is_checked_even_without_a_home() {
    let home = Home::new();
    let ran = home.call_without_home(["doctor", "--json"]).without_env("HOME").run();
    Diagnosis { ran }.code(1).finds("home", "error", "no home directory: ").finds("proc", "ok", "");
}

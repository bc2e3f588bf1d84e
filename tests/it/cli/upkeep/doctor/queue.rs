//! Invalid settings, and the problems that `status` reports.

use store::Pause;

use super::{Diagnosis, tamper};
use crate::cli::harness::Home;

#[test]
fn an_invalid_setting_is_reported() {
    let home = Home::with_jobs(&["a"]);
    tamper(&home, "insert into settings values ('lease', 'soon')");
    Diagnosis::of(&home)
        .code(7)
        .finds("settings", "error", "lease")
        .finds("database", "ok", "intact")
        .finds("workers", "ok", "none running")
        .advises("`queuectl config unset lease`");
    home.run(["config", "unset", "lease"]).ok();
    Diagnosis::of(&home).code(0).finds("settings", "ok", "");
}

#[test]
fn contradictory_settings_are_reported() {
    let home = Home::with_jobs(&["a"]);
    tamper(&home, "insert into settings values ('lease', '1s')");
    Diagnosis::of(&home).code(1).finds("settings", "error", "lease").advises("queuectl config set");
    home.run(["config", "set", "lease", "1m"]).ok();
    Diagnosis::of(&home).code(0).finds("settings", "ok", "");
}

#[test]
fn the_problems_of_status_are_warnings() {
    let home = Home::new();
    home.completed_job("a");
    Diagnosis::of(&home).code(0).finds("queue", "ok", "no queue is paused").finds("settings", "ok", "");

    home.run(["enqueue", "-q", "--", "true"]).ok();
    home.run(["config", "set", "durability", "normal"]).ok();
    let pause = Pause { by: "ada".to_owned(), reason: Some("the disk is full".to_owned()) };
    home.store().pause_queue(&"default".parse().expect("a name"), &pause).expect("it is paused");
    Diagnosis::of(&home)
        .code(0)
        .finds("no_worker", "warning", "1 job waits, but no worker is running")
        .finds("durability_lowered", "warning", "durability is normal")
        .finds("queue_paused", "warning", "paused by ada (the disk is full)")
        .finds_no("queue");
}

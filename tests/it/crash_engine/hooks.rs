//! FAULTS 26, for hooks: if a worker dies between a delivery and its record, the event is delivered again.

use super::harness::CrashHome;
use super::processes::wait;

/// The names of the deliveries for one job when the worker died once at this fail-point.
fn deliveries_after_death_at(point: &str) -> Vec<String> {
    let crash_home = CrashHome::new();
    crash_home.run(&["hook", "add", "h", "--on", "success", "--command", "cat >> delivered"]).ok();
    crash_home.job("a", "true");
    let pool = crash_home.pool_dying_at(point, &["--until-empty"]);
    assert!(crash_home.ending_of(pool).success(), "{point}: the pool ends well");
    assert!(crash_home.has_died(), "{point} was never reached");
    crash_home.check();
    let delivered = std::fs::read_to_string(crash_home.home.folder().join("delivered")).unwrap_or_default();
    let shown = crash_home.run(&["hook", "show", "h", "--json"]).ok().json();
    assert_eq!(shown["pending"], 0, "{point}: {shown}");
    let name = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        event["delivery"].as_str().expect("a name").to_owned()
    };
    delivered.lines().map(name).collect()
}

#[test]
fn fault_26_an_unrecorded_delivery_is_repeated_under_the_same_name() {
    let delivered = deliveries_after_death_at("delivery.after_send");
    assert_eq!(delivered.len(), 2, "at least once: {delivered:?}");
    assert_eq!(delivered[0], delivered[1]);
}

#[test]
fn fault_26_an_event_is_delivered_once_if_a_worker_dies_before_sending_it() {
    for point in ["exchange_deliveries.before_commit", "exchange_deliveries.after_commit"] {
        assert_eq!(deliveries_after_death_at(point).len(), 1, "{point}");
    }
}

#[test]
fn fault_24_a_hook_process_is_killed_after_worker_and_supervisor_were_killed_at_once() {
    let crash_home = CrashHome::new();
    crash_home
        .run(&["hook", "add", "h", "--on", "success", "--command", "echo $$ > hooked; exec sleep 600"])
        .ok();
    let pool = crash_home.pool();
    crash_home.job("a", "true");
    let hooked = || std::fs::read_to_string(crash_home.home.folder().join("hooked")).unwrap_or_default();
    wait("the hook process runs", || hooked().ends_with('\n'));
    let pid = rustix::process::Pid::from_raw(hooked().trim().parse().expect("a pid")).expect("a pid");
    crash_home.kill_pool(pool);
    // Otherwise the next worker would start the same command again.
    crash_home.run(&["hook", "remove", "h"]).ok();
    crash_home.pool();
    let is_gone = || sys::process::stat(pid).is_none_or(|stat| stat.is_zombie);
    wait("the orphan of the dead worker is killed", is_gone);
}

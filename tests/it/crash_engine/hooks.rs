//! FAULTS 26, for hooks: whoever dies between telling a hook and writing that down, it is told again.

use super::harness::Ground;
use super::processes::wait;

/// What a hook was told of one job when the worker died once at this place, as delivery names.
fn told_after_death_at(place: &str) -> Vec<String> {
    let ground = Ground::new();
    ground.run(&["hook", "add", "h", "--on", "success", "--command", "cat >> told"]).ok();
    ground.job("a", "true");
    let pool = ground.pool_dying_at(place, &["--until-empty"]);
    assert!(ground.ending_of(pool).success(), "{place}: the pool ends well");
    assert!(ground.has_died(), "nobody came by {place}");
    ground.check();
    let told = std::fs::read_to_string(ground.home.folder().join("told")).unwrap_or_default();
    let shown = ground.run(&["hook", "show", "h", "--json"]).ok().json();
    assert_eq!(shown["pending"], 0, "{place}: {shown}");
    let name = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        event["delivery"].as_str().expect("a name").to_owned()
    };
    told.lines().map(name).collect()
}

#[test]
fn fault_26_what_a_hook_was_told_before_a_crash_it_is_told_again_by_the_same_name() {
    let told = told_after_death_at("messenger.after_send");
    assert_eq!(told.len(), 2, "at least once: {told:?}");
    assert_eq!(told[0], told[1]);
}

#[test]
fn fault_26_what_was_to_be_told_is_told_whoever_dies_before() {
    for place in ["exchange_deliveries.before_commit", "exchange_deliveries.after_commit"] {
        assert_eq!(told_after_death_at(place).len(), 1, "{place}");
    }
}

#[test]
fn fault_24_a_command_that_tells_a_hook_dies_when_worker_and_supervisor_are_killed_at_once() {
    let ground = Ground::new();
    ground
        .run(&["hook", "add", "h", "--on", "success", "--command", "echo $$ > hooked; exec sleep 600"])
        .ok();
    let pool = ground.pool();
    ground.job("a", "true");
    let hooked = || std::fs::read_to_string(ground.home.folder().join("hooked")).unwrap_or_default();
    wait("the hook is being told", || hooked().ends_with('\n'));
    let pid = rustix::process::Pid::from_raw(hooked().trim().parse().expect("a pid")).expect("a pid");
    ground.kill_whole(pool);
    // It would start the same command again.
    ground.run(&["hook", "remove", "h"]).ok();
    ground.pool();
    let is_gone = || sys::process::stat(pid).is_none_or(|stat| stat.is_zombie);
    wait("what the dead left behind is killed", is_gone);
}

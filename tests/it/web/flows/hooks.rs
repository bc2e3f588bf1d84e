//! Hooks: one is added, tested, fails, and is removed.

use crate::cli::harness::Home;
use crate::web::browser::Site;

#[test]
fn a_hook_is_added_tested_and_removed() {
    let site = Site::new(Home::with_queue());
    let told = site.server.home.folder().join("told");
    let tab = site.open_live("/hooks");
    tab.wait_for_text("No hook yet").click_on("#add summary");
    tab.fill("textbox", "name", "notify").click("checkbox", "dead").click("checkbox", "dlq-above");
    let command = format!("cat > {}", told.display());
    tab.fill("textbox", "run a command", &command).fill("spinbutton", "dead jobs above", "5");
    tab.wait_for_text("--on dead,dlq-above");
    tab.click("button", "Add the hook").wait_for_path("/hooks/notify").wait_for_text("dead, dlq-above 5");
    tab.click("button", "test").wait_for_text("Done: queuectl hook test notify");
    let event = std::fs::read_to_string(&told).expect("the sample arrived");
    assert!(event.contains("\"test\":true") || event.contains("dead"), "{event}");
    tab.click("button", "remove")
        .click_on("dialog button[value=yes]")
        .wait_for_path("/hooks")
        .wait_for_text("No hook yet");
}

#[test]
fn a_hook_that_fails_shows_its_tries_and_why() {
    let home = Home::with_queue();
    home.run(["hook", "add", "broken", "--on", "success", "--command", "echo no such user >&2; exit 67"])
        .ok();
    home.run(["enqueue", "--", "true"]).ok();
    home.run(["worker", "start"]).ok();
    let site = Site::new(home);
    let tab = site.open_live("/hooks/broken");
    tab.wait_for_text("failing").wait_for_text("no such user").wait_for("#waiting .rows");
    site.expect_fault("502");
    tab.click("button", "test").wait_for_text("exit code 67");
    tab.open("/hooks").wait_for_text("failing");
    site.server.home.run(["worker", "stop"]).ok();
}

#[test]
fn a_waiting_delivery_is_tried_now() {
    let home = Home::with_queue();
    let repaired = home.folder().join("repaired");
    let command = format!("test -e {} || exit 67", repaired.display());
    home.run(["hook", "add", "broken", "--on", "success", "--command", &command]).ok();
    for _ in 0..2 {
        home.run(["enqueue", "-q", "--", "true"]).ok();
    }
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let site = Site::new(home);
    let tab = site.open_live("/hooks/broken");
    tab.wait_for("#waiting tbody tr").wait_for_text("queuectl hook deliveries broken");
    assert_eq!(tab.count("#waiting tbody tr"), 2);
    tab.click_on("#waiting tbody button").wait_for_text("Done: queuectl hook retry broken d-");
    let deliveries = || site.server.get("/api/v1/hooks/broken/deliveries");
    let events = site.server.get("/api/v1/events?event=hook_retry");
    assert!(events[0]["detail"].as_str().is_some_and(|detail| detail.starts_with("broken d-")), "{events}");
    std::fs::write(&repaired, "").expect("the receiver is repaired");
    tab.click("button", "try all now").wait_for_text("Done: queuectl hook retry broken");
    site.server.home.run(["worker", "run", "-q", "--until-empty"]).ok();
    tab.wait_for_text("No event waits to be delivered");
    assert_eq!(deliveries()["waiting"].as_array().map(Vec::len), Some(0));
}

//! Queues: the list leads to a queue, which is paused with a reason, limited and removed.

use serde_json::json;

use crate::cli::harness::Home;
use crate::web::browser::Site;

fn home() -> Home {
    let home = Home::with_queue();
    for id in ["a", "b", "c"] {
        home.run(["enqueue", "--id", id, "--queue", "mail", "--", "true"]).ok();
    }
    home
}

#[test]
fn a_queue_is_paused_with_a_reason_and_resumed() {
    let site = Site::new(home());
    let tab = site.open_live("/queues");
    tab.click("link", "mail").wait_for_path("/queues/mail");
    tab.wait_for_text("Holds back 3 jobs").wait_for_text("no worker");
    tab.fill("textbox", "why (the others see it)", "smtp is down");
    tab.wait_for_text("queuectl queue pause mail --reason 'smtp is down'");
    assert!(tab.text_of("form.line [data-shows=curl]").contains(r#"{"reason":"smtp is down"}"#));
    tab.click("button", "pause").wait_for_role("button", "resume").wait_for_text("paused by");
    let queue = site.server.get("/api/v1/queues/mail");
    assert_eq!(queue["pause_reason"], "smtp is down", "{queue}");
    tab.wait_for_text("its queue mail was paused by");
    tab.open("/queues").wait_for_text("smtp is down").click("button", "resume");
    tab.wait_for_role("link", "pause or limit");
    assert_eq!(site.server.get("/api/v1/queues/mail")["paused"], false);
}

#[test]
fn the_limits_of_a_queue_are_changed_and_lifted() {
    let site = Site::new(home());
    let tab = site.open_live("/queues/mail");
    tab.fill("spinbutton", "jobs at once", "2").fill("textbox", "starts per time", "10/m");
    tab.fill("textbox", "resources of a job", "memory=512M,pids=100");
    tab.wait_for_text("queuectl queue set mail --concurrency 2 --rate 10/m --limits memory=512M,pids=100");
    let curl = tab.text_of("form.limits [data-shows=curl]");
    assert!(curl.starts_with("curl -X PATCH ") && curl.contains("\"concurrency\":2"), "{curl}");
    tab.click("button", "change the limits").wait_for_text("2 at once").wait_for_text("10/m");
    let queue = site.server.get("/api/v1/queues/mail");
    assert_eq!((&queue["concurrency"], &queue["limits"]["pids"]), (&json!(2), &json!(100)), "{queue}");
    tab.reload().fill("spinbutton", "jobs at once", "");
    tab.press("Backspace").wait_for_text("--concurrency none");
    tab.click("button", "change the limits").wait_for_no_text("2 at once");
    assert_eq!(site.server.get("/api/v1/queues/mail")["concurrency"], json!(null));
    site.expect_fault("422");
    tab.reload().fill("textbox", "starts per time", "often");
    tab.click("button", "change the limits").wait_for_text("invalid rate");
    assert_eq!(site.server.get("/api/v1/queues/mail")["rate"], queue["rate"]);
}

#[test]
fn a_queue_that_does_not_exist_says_so_and_an_empty_one_is_removed() {
    let site = Site::new(home());
    site.server.home.run(["queue", "set", "old", "--concurrency", "1"]).ok();
    site.expect_fault("404");
    let tab = site.open("/queues/mial");
    tab.wait_for_text("mial").wait_for_text("mail").wait_for_role("link", "Overview");
    tab.open("/queues/old").click("button", "remove this queue");
    tab.click_on("dialog button[value=yes]").wait_for_path("/queues").wait_for_text("1 queue");
    tab.open("/queues/mail?range=7d").wait_for_text("No attempt has ended in this time");
}

//! Workers: each slot is a lane with its job; draining asks first.

use crate::cli::harness::Home;
use crate::web::browser::Site;

#[test]
fn each_slot_is_a_lane_and_draining_asks_first() {
    let home = Home::with_queue();
    home.run(["worker", "start", "--concurrency", "2"]).ok();
    home.run(["enqueue", "--id", "long", "--name", "a long one", "--", "sleep", "600"]).ok();
    let site = Site::new(home);
    let tab = site.open_live("/workers");
    tab.wait_for_text("1 of 2 slots busy").wait_for_text("a long one").wait_for_text("free");
    assert_eq!(tab.count(".lanes li"), 2);
    let worker = site.server.get("/api/v1/workers")[0]["id"].as_str().expect("an id").to_owned();
    tab.click("link", &worker).wait_for_path(&format!("/workers/{worker}")).wait_for_text("all queues");
    tab.open("/workers").click("button", "drain").wait_for_text("queuectl worker stop");
    tab.click_on("dialog button[value=yes]").wait_for_text("draining");
    tab.click("button", "stop now").wait_for_text("Type now to confirm");
    tab.type_text("now").click_on("dialog button[value=yes]");
    tab.wait_for_text("No worker runs").wait_for_text("queuectl worker start");
    site.expect_fault("404");
    tab.open(&format!("/workers/{worker}")).wait_for_text("does not run");
}

#[test]
fn one_worker_is_drained_and_the_others_stay() {
    let home = Home::with_queue();
    home.run(["worker", "start", "-q", "--count", "2"]).ok();
    let site = Site::new(home);
    let worker = site.server.get("/api/v1/workers")[0]["id"].as_str().expect("an id").to_owned();
    let tab = site.open_live(&format!("/workers/{worker}"));
    tab.click("button", "drain this worker").wait_for_text(&format!("queuectl worker stop {worker}"));
    tab.click_on("dialog button[value=no]");
    assert_eq!(site.server.get("/api/v1/workers").as_array().map(Vec::len), Some(2), "it asks first");
    tab.click("button", "drain this worker").click_on("dialog button[value=yes]");
    site.server.until("/api/v1/workers", |left| left.as_array().is_some_and(|left| left.len() == 1));
    assert_ne!(site.server.get("/api/v1/workers")[0]["id"], worker.as_str());
    tab.open("/workers").wait_for_text("1 worker");
    site.server.home.run(["worker", "stop", "-q"]).ok();
}

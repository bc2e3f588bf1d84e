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
    tab.click("button", "stop now").type_text("now").click_on("dialog button[value=yes]");
    tab.wait_for_text("No worker runs").wait_for_text("queuectl worker start");
    site.expect_fault("404");
    tab.open(&format!("/workers/{worker}")).wait_for_text("does not run");
}

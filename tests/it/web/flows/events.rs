//! The event log: filters that are links, and a way back.

use crate::cli::harness::Home;
use crate::web::browser::Site;

#[test]
fn events_are_filtered_by_kind_and_person() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["cancel", "a"]).ok();
    home.run(["queue", "pause", "mail"]).ok();
    let site = Site::new(home);
    let tab = site.open("/events");
    tab.wait_for_role("link", "cancel").wait_for_role("link", "pause");
    tab.click("link", "cancel").wait_for_path("/events?event=cancel");
    assert_eq!(tab.count("#events tbody tr"), 1);
    tab.fill("textbox", "by", "another").click("button", "filter").wait_for_text("No event matches");
    tab.open("/events?event=cancel").click_on(".chip").wait_for_role("link", "pause");
}

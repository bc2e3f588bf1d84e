//! Settings: a value is checked before it is saved; tokens are listed and removed.

use crate::cli::harness::Home;
use crate::web::browser::Site;

#[test]
fn a_setting_is_checked_while_it_is_typed_saved_and_reset() {
    let site = Site::new(Home::with_queue());
    let value = || site.server.get("/api/v1/config/lease")["value"].clone();
    let tab = site.open_live("/settings");
    tab.wait_for_text("how long a silent worker keeps its jobs");
    tab.fill("textbox", "Value of lease", "5s")
        .wait("the value is refused", "document.querySelector('#s-lease button').disabled");
    assert_eq!(value(), "30s");
    tab.fill("textbox", "Value of lease", "1m")
        .wait("the button works", "!document.querySelector('#s-lease button').disabled");
    tab.click("button", "Save lease").wait_for_text("Done: queuectl config set lease 1m");
    assert_eq!(value(), "1m");
    tab.wait_for_text("1 of 24 differ")
        .click_on("#s-lease button[data-act=DELETE]")
        .wait_for_text("0 of 24 differ");
    assert_eq!(value(), "30s");
}

#[test]
fn tokens_are_listed_and_removed_and_the_other_parts_are_there() {
    let site = Site::new(Home::with_queue());
    let tab = site.open_live("/settings?show=tokens");
    tab.wait_for_text("admin").click_on("#t-test button");
    tab.click_on("dialog button[value=yes]").wait_for_text("No token yet");
    let left = site.server.home.run(["dashboard", "token", "list", "--json"]).ok().stdout;
    assert_eq!(left.trim(), "[]");
    tab.open("/settings?show=doctor").wait_for_text("checks passed");
    tab.open("/settings?show=about").wait_for_text("this session may").wait_for_text("admin");
}

//! The main pages without a mouse.

use super::{QUICK_RETRY, enqueue, rows, work};
use crate::cli::harness::Home;
use crate::web::browser::{Site, Tab};

/// More fields, links and buttons than any page has before what a test looks for.
const MAX_TABS: usize = 120;

/// Presses Tab until something has the focus.
#[track_caller]
fn tab_to(tab: &Tab<'_>, wanted: &str) {
    let mut seen = Vec::new();
    for _ in 0..MAX_TABS {
        let focus = tab.press("Tab").focus();
        if focus == wanted {
            return;
        }
        seen.push(focus);
    }
    panic!("Tab never comes to {wanted}: {seen:#?}");
}

#[test]
fn everything_on_the_main_pages_is_done_by_keys() {
    let site = Site::new(Home::with_queue());
    let fixed = site.server.home.path().join("fixed");
    let command = format!(
        "echo trying; seq 300; [ -e '{}' ] || {{ echo smtp refused >&2; exit 75; }}",
        fixed.display()
    );
    enqueue(&site, &["d1", "d2", "d3"], &[&["--queue", "mail"], &QUICK_RETRY[..]].concat(), &command);
    work(&site.server);
    work(&site.server);
    enqueue(&site, &["p1"], &["--queue", "later"], "true");
    let tab = site.open_live("/");

    // Overview: the first link of the page skips the bar, and keys lead elsewhere.
    tab.press("Tab");
    assert_eq!(tab.focus(), "link \"Skip to the content\"");
    tab.press("?").wait_for("dialog[open] kbd").press("Escape");
    tab.wait("the keys are closed", "!document.querySelector('dialog[open]')");
    tab.press("g").press("j").wait_for_path("/jobs").wait_for("#age.live");

    // Jobs: filter, choose, change.
    tab.press("/").type_text("dead").press("Enter").wait_for_path("/jobs?state=dead").wait_for("#age.live");
    assert_eq!(rows(&tab), ["d3", "d2", "d1"]);
    tab.press("j").press("x").press("j").press("j").press("X").wait_for_text("3 of 3 chosen").press("u");
    tab.press("k").press("x").wait_for_text("1 of 3 chosen").press("r").wait_for_text("Retry 1 job? dead 1");
    assert_eq!(tab.focus(), "button \"No\"");
    tab_to(&tab, "button \"retry\"");
    tab.press("Enter").wait_for_text("retry: 1 of 1");
    work(&site.server);
    work(&site.server);
    tab.press("g").press("j").wait_for_path("/jobs").wait_for("#age.live");
    tab.press("j").press("j").press("Enter").wait_for_path("/jobs/d3").wait_for("#age.live");

    // A job: its output and its attempts.
    tab.press("t").wait_for("#log.times").press("w").wait_for("#log.nowrap");
    tab.press("/").type_text("29").press("Enter").wait_for("#log .current").press("n").wait_for_text("of 13");
    // On a loaded machine an attempt may be given back, which is no failure: then there are more than two.
    let last = tab.count(".attempts a");
    let before = last - 1;
    let of_last = format!("/jobs/d3?attempt={last}");
    tab.press("[").wait_for_path(&format!("/jobs/d3?attempt={before}")).wait_for("#age.live");
    tab.press("]").wait_for_path(&of_last).wait_for("#age.live");
    tab.press("d").wait_for_path(&format!("/jobs/d3/diff?a={before}&b={last}")).back();
    tab.wait_for_path(&of_last).wait_for("#age.live");
    tab.press("e").wait_for(".form form");
    tab_to(&tab, "textbox \"command\"");
    tab.press("Ctrl+a").type_text("echo edited by keys");
    tab_to(&tab, "button \"save and retry\"");
    tab.press("Enter").wait_for_text("edit by");
    work(&site.server);
    tab.wait_for_text("completed");

    // Dead: one first, then the others.
    tab.press("Ctrl+k").wait_for("dialog[open] input").type_text("Dead").press("Enter");
    tab.wait_for_path("/dead").wait_for("#age.live");
    tab_to(&tab, "link \"exit code 75: smtp refused\"");
    tab.press("Enter").wait_for_text("2 dead jobs").wait_for("#age.live");
    std::fs::write(&fixed, "").expect("the cause is gone");
    tab_to(&tab, "button \"retry one first\"");
    tab.press("Enter").wait_for_text("Retried first");
    work(&site.server);
    tab.wait_for_text("It succeeded").wait_for("#age.live");
    tab_to(&tab, "button \"retry the other 1\"");
    tab.press("Enter").wait_for_text("Retry 1 job?");
    tab_to(&tab, "button \"retry the other 1\"");
    tab.press("Enter").wait_for_text("No dead job has this cause any more");

    // The other pages.
    tab.press("g").press("q").wait_for_path("/queues").wait_for("#age.live");
    tab_to(&tab, "link \"later\"");
    tab.press("Enter").wait_for_path("/queues/later").wait_for("#age.live");
    for (key, path) in [("w", "/workers"), ("s", "/schedules"), ("b", "/batches"), ("h", "/hooks")] {
        tab.press("g").press(key).wait_for_path(path).wait_for("#age.live");
    }

    // A job is enqueued.
    tab.press("g").press("n").wait_for_path("/enqueue").wait_for("#age.live");
    tab_to(&tab, "textbox \"command\"");
    tab.type_text("echo by keys").wait_for_text("queuectl enqueue");
    tab_to(&tab, "button \"Enqueue\"");
    tab.press("Enter")
        .wait("the page of the job", "location.pathname.startsWith('/jobs/')")
        .wait_for_text("echo by keys");
}

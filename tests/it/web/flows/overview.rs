//! The overview.

use super::{enqueue, work};
use crate::cli::harness::Home;
use crate::web::browser::Site;

#[test]
fn the_overview_teaches_then_shows_and_every_number_leads_to_its_jobs() {
    let site = Site::new(Home::with_queue());
    let tab = site.open("/");
    tab.wait_for_text("queuectl enqueue -- echo hello").wait_for("#age.live");
    enqueue(&site, &["a", "b"], &["--queue", "mail"], "true");
    // The page changes by itself, and within a second or two of the change.
    tab.wait_for_role("link", "2 pending").wait_for("#chart");
    tab.click("link", "2 pending").wait_for_path("/jobs?state=pending");
    assert_eq!(super::rows(&tab), ["b", "a"]);

    enqueue(&site, &["bad"], &["--max-retries", "0"], "echo smtp refused >&2; exit 75");
    enqueue(&site, &["bad2"], &["--max-retries", "0"], "echo smtp refused >&2; exit 75");
    work(&site.server);
    tab.open("/").wait_for_text("exit code 75: smtp refused").wait_for_text("×2");
    tab.click_on(".chart .numbers summary").wait_for(".chart table");
    let died = "[...document.querySelectorAll('.chart tbody tr')].reduce((sum, row) => sum + Number(row.cells[3].innerText), 0)";
    assert_eq!(tab.eval(died), 2);
    assert_eq!(tab.count("svg.spark.wide"), 0, "one minute is no course");
    tab.wait_for_text("1 worker started");
    tab.click("link", "24h").wait_for_path("/?range=24h");
    tab.eval("(document.querySelector('.choice select').value = 'mail', \
              document.querySelector('.choice select').dispatchEvent(new Event('change', { bubbles: true })))");
    tab.wait_for_path("/?range=24h&queue=mail");
    tab.click("link", "log").wait_for("#log .log").wait_for_text("smtp refused");
    assert!(tab.path().contains("?attempt=1#log-bar"), "{}", tab.path());
}

#[test]
fn a_paused_queue_says_why_and_is_resumed_from_its_row() {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["a"], &["--queue", "mail"], "true");
    site.server.home.run(["queue", "pause", "mail", "--reason", "smtp is down"]).ok();
    let tab = site.open("/");
    tab.wait_for_text("smtp is down");
    // The problem has its remedy behind it.
    tab.click_on(".problems summary").wait_for_text("queuectl queue resume mail");
    tab.click("button", "resume").wait_for_text("Done: queuectl queue resume mail");
    tab.wait("the row is not paused", "!document.querySelector('#q-mail').innerText.includes('paused')");
    let mail = "mail".parse().expect("a name");
    assert_eq!(site.server.home.store().pause_of(&mail).expect("it is read"), None);
}

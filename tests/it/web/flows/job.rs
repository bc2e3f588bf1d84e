//! The page of a job, and those below it.

use super::{QUICK_RETRY, enqueue, work};
use crate::cli::harness::Home;
use crate::web::browser::Site;

#[test]
fn a_dead_job_is_understood_edited_and_retried() {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["bad"], &QUICK_RETRY, "echo smtp refused >&2; exit 75");
    work(&site.server);
    work(&site.server);
    let tab = site.open("/jobs/bad");
    tab.wait_for("#age.live").wait_for_text("retries exhausted").wait_for_text("smtp refused");
    assert_eq!(tab.count(".timeline a"), 2, "each attempt is in the timeline");
    tab.press("[").wait_for_path("/jobs/bad?attempt=1").wait_for("#log li");
    tab.open("/jobs/bad").wait_for("#age.live").press("e").wait_for(".form form");
    tab.fill("textbox", "command", "echo fixed").click("button", "save and retry");
    tab.wait_for_text("pending").wait_for_text("edit by");
    work(&site.server);
    tab.wait_for_text("completed").wait_for_text("fixed");
    // A clone is another job, and the page of it opens.
    tab.open("/jobs/bad").click_on(".form summary").click("button", "clone");
    tab.wait("the clone is shown", "!location.pathname.endsWith('/bad')").wait_for_text("has not run yet");
    tab.press("Ctrl+k")
        .wait_for("dialog[open] input")
        .type_text("cancel")
        .press("Enter")
        .wait_for_text("Cancel job");
    tab.click("button", "cancel").wait_for_text("cancelled");
}

#[test]
fn two_attempts_are_compared_line_by_line() {
    let site = Site::new(Home::with_queue());
    let command = "seq 50; [ -e seen ] && echo second || echo first; touch seen; seq 50; exit 1";
    enqueue(&site, &["twice"], &QUICK_RETRY, command);
    work(&site.server);
    work(&site.server);
    let tab = site.open("/jobs/twice");
    tab.wait_for("#log li").press("d").wait_for_path("/jobs/twice/diff?a=1&b=2");
    assert_eq!(tab.text_of(".diff .minus code"), "− first");
    assert_eq!(tab.text_of(".diff .plus code"), "+ second");
    assert!(tab.count(".diff li") < 12, "what is the same is left out");
    tab.open("/jobs/twice/diff?a=2&b=2").wait_for_text("Both attempts printed the same");
}

#[test]
fn the_graph_has_each_job_as_a_link_with_its_state() {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["fetch"], &[], "true");
    enqueue(&site, &["left", "right"], &["--depends-on", "fetch"], "true");
    enqueue(&site, &["join"], &["--depends-on", "left", "--depends-on", "right"], "true");
    let tab = site.open("/jobs/left");
    tab.wait_for_text("depends on").wait_for_role("link", "fetch").wait_for_role("link", "join");
    tab.press("G").wait_for_path("/jobs/left/graph");
    assert_eq!((tab.count("svg a"), tab.count("svg .own")), (3, 1));
    let layers = "[...document.querySelectorAll('svg .node')].map((node) => node.getAttribute('x'))";
    let layers = tab.eval(layers);
    let distinct: std::collections::BTreeSet<&str> =
        layers.as_array().expect("a list").iter().filter_map(serde_json::Value::as_str).collect();
    assert_eq!(distinct.len(), 3, "{layers}");
    work(&site.server);
    tab.wait_for_text("completed");
    tab.click_on("svg a[href$='/join']").wait_for_path("/jobs/join");
    let many: Vec<String> = (0..420).map(|at| at.to_string()).collect();
    let many = many.join("\n");
    let many = site.server.home.file("many", many);
    let many = many.to_str().expect("a path");
    site.server.home.run(["enqueue", "-q", "--each", many, "--depends-on", "join", "--", "true", "{}"]).ok();
    tab.open("/jobs/join/graph").wait_for_text("and more that are not shown");
    assert_eq!(tab.count("svg a"), 400);
}

#[test]
fn what_is_gone_says_so_and_leads_on() {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["a"], &[], "seq 100000");
    work(&site.server);
    let tab = site.open("/jobs/a");
    tab.wait_for("#log li");
    // The output is removed, as pruning does; then the job.
    std::fs::remove_dir_all(site.server.home.path().join("logs")).expect("the logs are removed");
    tab.reload()
        .wait_for_text("output")
        .wait("it says so", "!document.querySelector('#log .log') && document.querySelector('#log .empty')");
    site.server.home.run(["remove", "a"]).ok();
    tab.wait_for_text("there is no job");
    site.expect_fault("404");
    tab.open("/jobs/a")
        .wait_for_text("it may have been removed")
        .click("link", "Jobs")
        .wait_for_path("/jobs");
}

//! The list of jobs.

use super::{enqueue, rows, work};
use crate::cli::harness::Home;
use crate::web::browser::Site;

fn site_with_dead() -> Site {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["d1", "d2", "d3"], &["--queue", "mail", "--max-retries", "0"], "exit 75");
    enqueue(&site, &["e1"], &["--max-retries", "0"], "exit 3");
    work(&site.server);
    enqueue(&site, &["p1", "p2"], &["--tag", "slow"], "true");
    site
}

#[test]
fn a_filter_is_in_the_url_and_the_same_after_a_reload() {
    let site = site_with_dead();
    let tab = site.tab();
    // The first message of the stream comes while the reader types.
    tab.hold_stream().open("/jobs").press("/");
    assert_eq!(tab.focus(), "combobox \"state\"");
    tab.type_text("dead").let_go();
    assert_eq!(tab.focus(), "combobox \"state\"");
    tab.fill("textbox", "exit code", "75").press("Enter").wait_for_path("/jobs?state=dead&exit_code=75");
    tab.wait_for_text("queuectl list --state dead --exit-code 75");
    assert_eq!(rows(&tab), ["d3", "d2", "d1"]);
    assert!(tab.text_of("#count").contains("3 jobs"));
    let path = tab.path();
    tab.reload();
    assert_eq!((rows(&tab), tab.path()), (vec!["d3".into(), "d2".into(), "d1".into()], path));
    // A chip takes its filter away.
    tab.click_on(".chips a:nth-of-type(2)").wait_for_path("/jobs?state=dead");
    for (query, flags, found) in [
        ("tag=slow", "--tag slow", vec!["p2", "p1"]),
        ("id=e", "--id-prefix e", vec!["e1"]),
        (
            "queue=mail&reason=retries_exhausted",
            "--queue mail --reason retries_exhausted",
            vec!["d3", "d2", "d1"],
        ),
        (
            "since=2020-01-01T00:00:00Z&state=pending",
            "--state pending --changed-after 2020-01-01T00:00:00Z",
            vec!["p2", "p1"],
        ),
        ("like=*75*&order=oldest", "--command-like '*75*' --sort oldest", vec!["d1", "d2", "d3"]),
    ] {
        tab.open(&format!("/jobs?{query}"));
        tab.wait_for_text(&format!("queuectl list {flags}"));
        assert_eq!(rows(&tab), found, "{query}");
        // The command line finds the same.
        let words = flags.split(' ').map(|word| word.trim_matches('\''));
        let listed = site
            .server
            .home
            .run(["list", "--columns", "id", "--format", "csv"].into_iter().chain(words))
            .ok();
        assert_eq!(listed.lines()[1..], found, "{query}");
    }
    tab.open("/jobs?cols=job,priority,created_at").wait_for_text("created at");
    assert_eq!(tab.count("#jobs thead th"), 4, "with that of the choice");
    tab.click_on(".menu + .menu summary").click("link", "tags").wait_for("#jobs tbody");
    assert_eq!(tab.count("#jobs thead th"), 5);
}

#[test]
fn a_dry_run_counts_exactly_what_is_changed_then() {
    let site = site_with_dead();
    let tab = site.open("/jobs?queue=mail");
    tab.wait_for("#age.live").press("j").press("x");
    tab.wait_for_text("1 of 3 chosen").press("*").wait_for_text("all 3 that match are chosen");
    tab.press("r").wait_for_text("Retry 3 jobs? dead 3").wait_for_text("queuectl retry --queue mail");
    assert_eq!(tab.focus(), "button \"No\"", "Enter alone changes nothing");
    tab.click("button", "retry").wait_for_text("retry: 3 of 3");
    let count = site.server.get("/api/v1/count?queue=mail&state=pending");
    assert_eq!(count["count"], 3);
    tab.wait("no row is dead", "!document.querySelector('#jobs').innerText.includes('dead')");

    // What cannot be undone wants its number typed.
    tab.open("/jobs?state=dead").wait_for("#age.live").click("checkbox", "Choose all rows");
    tab.wait_for_text("1 of 1 chosen").press("Delete").wait_for_text("Remove 1 job? dead 1");
    assert_eq!(tab.eval("document.querySelector('dialog .danger').disabled"), true);
    tab.type_text("1").wait("it can be confirmed", "!document.querySelector('dialog .danger').disabled");
    tab.click_on("dialog .danger").wait_for_text("remove: 1 of 1").wait_for_text("No job matches");
    assert_eq!(site.server.get("/api/v1/count?state=dead")["count"], 0);
    let removals = site.server.get("/api/v1/events").to_string();
    assert!(removals.contains("via dashboard"), "{removals}");
}

#[test]
fn ranges_are_chosen_by_shift_and_survive_changes_of_the_list() {
    let site = site_with_dead();
    let tab = site.open("/jobs");
    tab.wait_for("#age.live").press("j").press("x").press("j").press("j").press("j").press("X");
    tab.wait_for_text("4 of 6 chosen");
    enqueue(&site, &["p3"], &[], "true");
    tab.wait_for_role("link", "p3").wait_for_text("4 of 7 chosen");
    assert_eq!(tab.count("#jobs tr.chosen"), 4);
    assert_eq!(tab.focus(), "link \"d3\"", "the focus stays in its row");
    tab.press("u").wait("none is chosen", "document.getElementById('chosen').getClientRects().length === 0");
    tab.press("Enter").wait_for_path("/jobs/d3");
    // One first, then the others.
    tab.open("/jobs?state=dead&queue=mail").wait_for("#age.live").click("checkbox", "Choose all rows");
    let worker =
        crate::cli::harness::background::Background::start(site.server.home.call(["worker", "start"]));
    tab.click("button", "retry one first").wait_for_text("retry the other 2 jobs");
    worker.signal(rustix::process::Signal::TERM);
    let left = site.server.get("/api/v1/count?queue=mail&state=dead");
    assert_eq!(left["count"], 3, "the first one died again, and the others were not touched");
}

#[test]
fn jobs_are_chosen_in_a_small_window_and_all_of_them_are_named_by_the_filter() {
    let site = site_with_dead();
    let tab = site.tab();
    tab.viewport(390, 800).open("/jobs?state=dead&queue=mail").wait_for("#age.live");
    let sizes = "[...document.querySelectorAll('#jobs .choice label')].map((one) => one.getBoundingClientRect()).every(({ width, height }) => width >= 44 && height >= 44)";
    assert_eq!(tab.eval(sizes), true);
    for id in ["d1", "d2", "d3"] {
        tab.click("checkbox", &format!("Choose job {id}"));
    }
    tab.wait_for_text("3 of 3 chosen").press("r");
    tab.wait_for_text("queuectl retry --state dead --queue mail");
}

#[test]
fn chosen_jobs_are_edited_together() {
    let site = site_with_dead();
    let tab = site.open("/jobs?queue=mail");
    tab.wait_for("#age.live").press("j").press("x").press("*").wait_for_text("all 3 that match are chosen");
    tab.click("button", "edit").wait_for("dialog[open] input[name=queue]");
    tab.fill("textbox", "queue", "slow").fill("spinbutton", "priority", "7");
    tab.wait_for_text("queuectl edit … --set-queue slow --priority 7");
    tab.click("button", "count them").wait_for_text("Edit 3 jobs? dead 3");
    tab.wait_for_text("queuectl edit --queue mail --set-queue slow --priority 7");
    assert_eq!(site.server.get("/api/v1/jobs/d1")["priority"], 0, "nothing is changed before the answer");
    tab.click_on("dialog button[value=yes]").wait_for_text("edit: 3 of 3");
    for id in ["d1", "d2", "d3"] {
        let job = site.server.get(&format!("/api/v1/jobs/{id}"));
        assert_eq!((&job["queue"], &job["priority"]), (&"slow".into(), &7.into()), "{job}");
    }
    let events = site.server.get("/api/v1/events?event=bulk_edit");
    assert_eq!(events[0]["detail"], "3 of 3 jobs: queue, priority");
    // What the server refuses is said.
    site.expect_fault("422");
    tab.open("/jobs?state=pending").wait_for("#age.live").press("j").press("x").press("e");
    tab.fill("textbox", "time limit", "often").click("button", "count them").wait_for_text("timeout");
    assert_eq!(site.server.get("/api/v1/jobs/p2")["timeout_ms"], serde_json::Value::Null);
}

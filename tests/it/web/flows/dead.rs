//! Dead jobs: one is retried before the rest, and a removal needs their number.

use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::web::browser::Site;

/// Jobs of one cause that succeed once a file exists.
fn failing(count: usize) -> Site {
    let home = Home::with_queue();
    let command =
        format!("test -e {}/fixed || {{ echo smtp refused >&2; exit 75; }}", home.folder().display());
    let job =
        |number| json!({ "id": format!("m{number}"), "queue": "mail", "max_retries": 0, "command": command });
    let jobs: Vec<Value> = (0..count).map(job).collect();
    home.run(["enqueue", "-q", &Value::from(jobs).to_string()]).ok();
    work(&home);
    Site::new(home)
}

fn work(home: &Home) {
    home.run(["worker", "run", "--until-empty"]).ok();
}

fn state(site: &Site, job: &str) -> String {
    site.server.get(&format!("/api/v1/jobs/{job}"))["state"].as_str().expect("a state").to_owned()
}

#[test]
fn a_cause_shows_when_its_jobs_died_and_one_is_retried_before_the_others() {
    let site = failing(3);
    let tab = site.open_live("/dead");
    tab.wait_for_text("exit code 75: smtp refused").wait_for_text("3 in 24 h");
    assert!(tab.text().contains("queuectl dlq retry --cause"), "{}", tab.text());
    assert_eq!(tab.count(".cause-row .spark path[d^=M]"), 2, "the ground, and one hour with deaths");
    std::fs::write(site.server.home.folder().join("fixed"), "").expect("the cause is gone");
    tab.click("button", "retry one first").wait_for_text("Retried first");
    assert!(tab.path().ends_with("?canary=m2"), "{}", tab.path());
    tab.wait_for_text("waits for a worker").wait_for_text("2 dead jobs");
    work(&site.server.home);
    tab.wait_for_text("It succeeded, so the cause seems to be gone.");
    assert_eq!((state(&site, "m2"), state(&site, "m0")), ("completed".into(), "dead".into()));
    tab.click("button", "retry the other 2").wait_for_text("Retry 2 jobs?");
    tab.wait_for_text("queuectl dlq retry --cause");
    tab.click_on("dialog button[value=yes]").wait_for_text("No dead job has this cause any more");
    work(&site.server.home);
    assert_eq!((state(&site, "m0"), state(&site, "m1")), ("completed".into(), "completed".into()));
    tab.open("/dead").wait_for_text("No job is dead");
}

/// The clicks of "Find out why a job failed" in docs/dashboard.md.
#[test]
fn a_newcomer_finds_out_why_a_job_failed_and_retries_all_its_siblings() {
    let site = failing(4);
    let tab = site.open_live("/");
    tab.click("link", "m3").wait_for_path("/jobs/m3").wait_for("#age.live");
    tab.wait("its output says why", "document.getElementById('log').innerText.includes('smtp refused')");
    std::fs::write(site.server.home.folder().join("fixed"), "").expect("the cause is gone");
    tab.click("link", "3 other dead jobs have the same cause").wait_for_text("4 dead jobs");
    tab.wait_for("#age.live").click("button", "retry one first").wait_for_text("Retried first");
    work(&site.server.home);
    tab.wait_for_text("It succeeded, so the cause seems to be gone.");
    tab.click("button", "retry the other 3").wait_for_text("Retry 3 jobs?");
    tab.click_on("dialog button[value=yes]").wait_for_text("No dead job has this cause any more");
    work(&site.server.home);
    for job in ["m0", "m1", "m2", "m3"] {
        assert_eq!(state(&site, job), "completed", "{job}");
    }
}

#[test]
fn a_canary_that_dies_again_leaves_the_others_alone() {
    let site = failing(2);
    let tab = site.open_live("/dead");
    tab.click("button", "retry one first").wait_for_text("Retried first");
    work(&site.server.home);
    tab.wait_for_text("It died again, so the cause is still there");
    assert!(!tab.text().contains("retry the other"), "{}", tab.text());
    assert_eq!((state(&site, "m0"), state(&site, "m1")), ("dead".into(), "dead".into()));
    site.expect_fault("404");
    tab.open("/dead/ffffffff").wait_for_text("no dead job has the cause");
}

#[test]
fn the_jobs_of_a_cause_are_removed_once_their_number_is_typed() {
    let site = failing(2);
    let tab = site.open_live("/dead");
    tab.click("button", "remove all").wait_for_text("Remove 2 jobs for ever");
    assert_eq!(tab.eval("document.querySelector('dialog button[value=yes]').disabled"), true);
    tab.type_text("2");
    tab.click_on("dialog button[value=yes]").wait_for_text("No job is dead");
    assert_eq!(site.server.get("/api/v1/jobs").as_array().map(Vec::len), Some(0));
}

/// Jobs of another queue that died of the same cause.
fn fail_elsewhere(site: &Site, ids: &[&str]) {
    let command = format!(
        "test -e {}/fixed || {{ echo smtp refused >&2; exit 75; }}",
        site.server.home.folder().display()
    );
    for id in ids {
        let words =
            ["enqueue", "-q", "--id", id, "--queue", "web", "--max-retries", "0", "--command", &command];
        site.server.home.run(words).ok();
    }
    work(&site.server.home);
}

#[test]
fn actions_on_a_cause_of_one_queue_leave_the_other_queues_alone() {
    let site = failing(2);
    fail_elsewhere(&site, &["w0", "w1"]);
    let tab = site.open_live("/dead?queue=mail");
    tab.wait_for_text("2 jobs of 1 cause").wait_for_text("--queue mail");
    let leads = |selector: &str| tab.attribute(selector, "href").unwrap_or_default();
    assert!(leads(".cause-row .count").ends_with("&queue=mail"), "{}", leads(".cause-row .count"));
    tab.click_on(".cause-row .message").wait_for_text("2 dead jobs").wait_for("#age.live");
    assert!(tab.path().ends_with("?queue=mail"), "{}", tab.path());
    assert_eq!(tab.count("#jobs-of-cause tbody tr"), 2);
    tab.click("button", "retry all").wait_for_text("Retry 2 jobs? dead 2 · queue mail 2.");
    let shown = tab.text_of("dialog .cli code");
    assert!(shown.ends_with("--queue mail"), "{shown}");
    // The command finds the same jobs.
    let words: Vec<&str> = shown.split(' ').skip(1).chain(["--dry-run"]).collect();
    let counted = site.server.home.run(words).ok().stdout;
    assert!(counted.contains("Would retry 2 jobs"), "{counted}");
    tab.click_on("dialog button[value=yes]").wait_for_text("its jobs may have been retried or removed");
    assert_eq!((state(&site, "m0"), state(&site, "m1")), ("pending".into(), "pending".into()));
    assert_eq!((state(&site, "w0"), state(&site, "w1")), ("dead".into(), "dead".into()));

    work(&site.server.home);
    tab.open("/dead?queue=mail").wait_for("#age.live").click("button", "retry one first");
    tab.wait_for_text("Retried first").wait_for_text("queue:mail");
    work(&site.server.home);
    tab.open("/dead?queue=mail").wait_for("#age.live").click("button", "remove all");
    tab.wait_for_text("Remove 2 jobs for ever").type_text("2").click_on("dialog button[value=yes]");
    tab.wait_for_text("No job is dead");
    let left = site.server.get("/api/v1/jobs");
    let left: Vec<&str> =
        left.as_array().expect("a list").iter().filter_map(|job| job["id"].as_str()).collect();
    assert_eq!(left, ["w1", "w0"], "only those of the other queue are left");
}

#[test]
fn many_jobs_are_retried_once_their_number_is_typed() {
    // More than the store counts one by one.
    let site = failing(201);
    let tab = site.open_live("/dead");
    assert!(tab.text_of("#problems").contains("201 jobs died in the last hour"), "{}", tab.text());
    tab.click("button", "retry all").wait_for_text("Retry 201 jobs? dead 201 · queue mail 201.");
    assert_eq!(tab.eval("document.querySelector('dialog button[value=yes]').disabled"), true);
    tab.type_text("201");
    assert_eq!(tab.eval("document.querySelector('dialog button[value=yes]').disabled"), false);
}

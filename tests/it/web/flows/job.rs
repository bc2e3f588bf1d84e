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
fn every_field_that_an_edit_accepts_is_in_the_form_and_the_line_says_the_same() {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["a", "b"], &["--env", "OLD=1", "--tags", "x"], "true");
    let tab = site.open_live("/jobs/a");
    tab.press("e").wait_for("#edit input[name=queue]");
    let names = "[...new Set([...document.querySelectorAll('#edit [name]')].map((field) => field.name))].sort().join(' ')";
    assert_eq!(
        tab.eval(names),
        "backoff command cwd env limits max_retries name no_retry_on priority queue retry_on run_at tags timeout"
    );
    tab.fill("textbox", "name", "a name").fill("textbox", "queue", "slow").fill(
        "textbox",
        "time limit",
        "90s",
    );
    tab.fill("textbox", "tags", "").fill("textbox", "resources", "pids=9").fill(
        "textbox",
        "retry only on exit codes",
        "75",
    );
    tab.fill("textbox", "delay of retries", r#"{"strategy":"fixed","delay":"5s"}"#);
    tab.fill("textbox", "variables to set", "NEW=it's").fill("textbox", "variables to remove", "OLD");
    tab.wait_for_text("--no-tags").wait_for_text("--unset-env OLD");
    let line = tab.text_of("#edit [data-shows=cli]");
    assert!(
        line.starts_with("queuectl edit a --name 'a name' --set-queue slow --timeout 90s --no-tags"),
        "{line}"
    );
    assert!(tab.text_of("#edit [data-shows=curl]").starts_with("curl -X PATCH "));
    tab.click("button", "save").wait_for_text("Done: queuectl edit a");
    let script = format!("queuectl() {{ \"$PROGRAM\" \"$@\"; }}; {}", line.replace("edit a ", "edit b "));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).env("PROGRAM", env!("CARGO_BIN_EXE_queuectl"));
    let done = shell.env("QUEUECTL_HOME", site.server.home.path()).output().expect("the shell runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let fields = |id: &str| {
        let job = site.server.get(&format!("/api/v1/jobs/{id}"));
        ["name", "queue", "timeout_ms", "tags", "limits", "retry_on", "backoff", "env"]
            .map(|name| job[name].clone())
    };
    assert_eq!(fields("a"), fields("b"));
    assert_eq!((&fields("a")[1], &fields("a")[3]), (&"slow".into(), &serde_json::json!([])));
    // What is wrong is said beside the form, and nothing is lost.
    site.expect_fault("422");
    tab.fill("textbox", "time limit", "often")
        .click("button", "save")
        .wait_for("#edit .problem:not([hidden])");
    assert_eq!(fields("a"), fields("b"));
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
    // Nothing changes any more that could take the link away under a click.
    tab.open("/jobs/left/graph").click_on("svg a[href$='/join']").wait_for_path("/jobs/join");
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
        .click("link", "Go to Jobs")
        .wait_for_path("/jobs");
}

//! The form that enqueues: the job has all its fields, and the shown command makes the same job.

use serde_json::Value;

use crate::cli::harness::Home;
use crate::web::browser::Site;

/// The fields that a user sets.
fn fields(job: &Value) -> Vec<Value> {
    ["command", "queue", "name", "priority", "max_retries", "timeout", "tags", "limits", "batch"]
        .iter()
        .map(|name| job[*name].clone())
        .collect()
}

#[test]
fn the_form_and_its_command_line_make_the_same_job() {
    let site = Site::new(Home::with_queue());
    let tab = site.open_live("/enqueue");
    tab.fill("textbox", "command", "echo \"it's done\" && exit 0").fill("textbox", "queue", "mail");
    tab.fill("textbox", "name", "a name").fill("spinbutton", "priority", "-5").fill(
        "spinbutton",
        "retries",
        "2",
    );
    tab.fill("textbox", "time limit", "90s")
        .fill("textbox", "tags", "x, y")
        .fill("textbox", "batch", "import");
    tab.click_on("#enqueue summary").fill("textbox", "resources", "memory=512M,cpu=1.5");
    let line = tab.text_of("[data-shows=cli]");
    assert!(line.starts_with("queuectl enqueue --command 'echo") && line.contains("--priority=-5"), "{line}");
    let curl = tab.text_of("[data-shows=curl]");
    assert!(curl.contains("/api/v1/jobs?batch=import") && curl.contains("\"cpu\":1.5"), "{curl}");
    tab.click("button", "Enqueue").wait("the page of the job", "location.pathname.startsWith('/jobs/')");
    let from_form = site.server.get(&format!("/api/v1{}", tab.path()));
    // The shell that a user would paste it into.
    let script = format!("queuectl() {{ \"$PROGRAM\" \"$@\"; }}; {line}");
    let program = env!("CARGO_BIN_EXE_queuectl");
    let home = site.server.home.path();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).env("PROGRAM", program).env("QUEUECTL_HOME", &home);
    let done = shell.output().expect("the shell runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let id = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    let from_line = site.server.get(&format!("/api/v1/jobs/{id}"));
    assert_eq!(fields(&from_form), fields(&from_line));
    assert_eq!(from_form["name"], "a name", "{from_form}");
}

#[test]
fn the_form_begins_with_the_fields_of_another_job_and_says_what_is_wrong() {
    let home = Home::with_queue();
    let words = [
        "enqueue",
        "--id",
        "old",
        "--queue",
        "mail",
        "--tags",
        "x,y",
        "--env",
        "SECRET=1",
        "--timeout",
        "2m",
    ];
    home.run(words.iter().copied().chain(["--command", "echo a; echo b"])).ok();
    let site = Site::new(home);
    let tab = site.open_live("/enqueue?from=old");
    tab.wait_for_text("like old").wait_for_text("neither its environment");
    tab.wait_for_text("--command 'echo a; echo b'").wait_for_text("--queue mail").wait_for_text("--tags x,y");
    site.expect_fault("422");
    tab.fill("textbox", "queue", "no blanks allowed")
        .wait_for_text("--queue 'no blanks allowed'")
        .click("button", "Enqueue")
        .wait_for("#enqueue .problem:not([hidden])");
    tab.fill("textbox", "queue", "mail").wait_for_text("--queue mail").click("button", "Enqueue");
    tab.wait("the page of the job", "location.pathname.startsWith('/jobs/')");
    assert_eq!(site.server.get("/api/v1/jobs").as_array().map(Vec::len), Some(2));
    site.expect_fault("404");
    tab.open("/enqueue?from=gone").wait_for_text("there is no job `gone`");
}

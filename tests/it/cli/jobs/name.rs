//! The name of a job: a label for people.

use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

fn named(name: &str) -> Home {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--name", name, "--", "echo", "hi"]).ok();
    home
}

#[test]
fn a_name_is_shown_with_the_job_and_in_place_of_the_command_in_lists() {
    let home = named("nightly report");
    home.run(["show", "a"]).ok().shows("  name          nightly report\n  command       echo hi\n");
    home.run(["list"]).ok().shows("nightly report").shows_no("echo hi");
    let job = home.show("a");
    assert_eq!((&job["number"], &job["name"]), (&json!(1), &json!("nightly report")));
    let listed = home.run(["list", "--json"]).ok();
    assert!(
        listed.stdout.starts_with(r#"[{"number":1,"id":"a","name":"nightly report","queue":"#),
        "{listed}"
    );
    home.run(["list", "--columns", "number,name,id"]).ok().shows("NUMBER").shows("nightly report");
    home.run(["list", "--columns", "number,name,id", "--format", "csv"])
        .ok()
        .prints("number,name,id\n1,nightly report,a\n");
    home.run(["enqueue", "-q", "--id", "b", "--name", "nightly report", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "c", "--", "true"]).ok();
    assert_eq!(home.show("b")["name"], "nightly report", "a name need not be unique");
    assert_eq!(home.show("c")["name"], Value::Null);
}

#[test]
fn a_name_is_one_short_line() {
    let home = Home::with_queue();
    for (name, message) in [
        ("", "`name` is empty"),
        (" ", "`name` is empty"),
        ("a\nb", "`name` has more than one line"),
        (&"x".repeat(257), "`name` has more than 256 bytes"),
    ] {
        home.run(["enqueue", "--name", name, "--", "true"]).fails(2).says(message);
        home.run(["enqueue", &json!({"command": "true", "name": name}).to_string()]).fails(2).says(message);
        home.run(["schedule", "add", "s", "--every", "1h", "--name", name, "--", "true"])
            .fails(2)
            .says(message);
    }
    assert!(home.is_empty());
    home.run(["enqueue", "--name", &"x".repeat(256), "--", "true"]).ok();
    home.run(["enqueue", "--label", "x", "--", "true"]).fails(2).says("use --name");
    home.run(["run", "--label", "x", "--", "true"]).fails(2).says("use --name");
}

#[test]
fn a_name_can_be_changed_and_removed() {
    let home = named("first");
    home.run(["edit", "-q", "a", "--priority", "1"]).ok();
    assert_eq!(home.show("a")["name"], "first");
    home.run(["edit", "-q", "a", "--name", "second"]).ok();
    assert_eq!(home.show("a")["name"], "second");
    home.run(["edit", "a", "--name", "x\ny"]).fails(2).says("more than one line");
    let call = home.call(["--color", "never", "edit", "a"]).env("EDITOR", "sed -i s/second/third/");
    assert_eq!(on_terminal(call.into_command(), 100, "").screen, "Job a changed: name\n");
    assert_eq!(home.show("a")["name"], "third");
    home.run(["edit", "-q", "a", "--name", "none"]).ok();
    assert_eq!(home.show("a")["name"], Value::Null);
    home.run(["cancel", "-q", "a"]).ok();
    home.run(["retry", "-q", "a", "--edit", "--name", "again"]).ok();
    assert_eq!(home.show("a")["name"], "again");
}

#[test]
fn schedules_and_lines_pass_names_on() {
    let home = Home::new();
    home.run(["schedule", "add", "s", "--every", "1h", "--name", "hourly", "--", "true"]).ok();
    home.run(["schedule", "show", "s"]).ok().shows("hourly");
    let job = home.run(["schedule", "run", "s", "--json"]).ok().json();
    assert_eq!(job["name"], "hourly");
    let lines = "x\ny\n";
    home.call(["enqueue", "-q", "--each", "-", "--name", "sweep", "--", "echo"]).with_stdin(lines).run().ok();
    assert_eq!(home.jobs().iter().filter(|job| job.name() == Some("sweep")).count(), 2);
}

#[test]
fn a_name_survives_export_and_import() {
    let (home, other) = (named("nightly report"), Home::new());
    let exported = home.run(["export"]).ok();
    other.call(["import", "-"]).with_stdin(exported.stdout.as_str()).run().ok();
    assert_eq!(other.show("a")["name"], "nightly report");
}

#[test]
fn a_hostile_name_is_stored_as_it_is_and_shown_escaped() {
    let name = "\u{1b}[31mred\u{7}\u{202e}";
    let home = named(name);
    assert_eq!(home.show("a")["name"], name);
    for args in [&["list"][..], &["show", "a"], &["list", "--columns", "name"], &["list", "--json"]] {
        let ran = home.run(args).ok();
        assert!(!ran.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{ran}");
        let seen = on_terminal(home.call(args).env("NO_COLOR", "1").into_command(), 200, "");
        assert!(!seen.screen.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{}", seen.screen);
    }
}

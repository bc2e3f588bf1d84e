//! `queuectl edit` of a selection, and of several jobs.

use serde_json::json;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

/// Three jobs in the queue `mail`, and one elsewhere.
fn with_queues() -> Home {
    let home = Home::with_jobs(&["elsewhere"]);
    for id in ["a", "b", "c"] {
        home.run(["enqueue", "-q", "--id", id, "--queue", "mail", "--tags", "t", "--", "true"]).ok();
    }
    home
}

#[test]
fn a_selection_is_changed_after_a_confirmation_and_counted() {
    let home = with_queues();
    home.run(["cancel", "-q", "c"]).ok();
    let edit = ["edit", "--queue", "mail", "--set-queue", "slow", "--priority", "7", "--timeout", "2h"];
    let dry = home.run(edit.iter().chain(&["--dry-run", "--json"])).ok().json();
    assert_eq!((&dry["count"], &dry["jobs"]), (&json!(3), &json!({"pending": 2, "cancelled": 1})));
    home.run(edit.iter().chain(&["--dry-run"])).ok().shows("Would edit 3 jobs: 2 pending, 1 cancelled");
    home.run(edit).fails(2).says("--yes");
    assert_eq!(home.show("a")["priority"], 0, "nothing was changed");
    assert_eq!(home.run(edit.iter().chain(&["--yes", "--json"])).ok().json(), json!({"count": 3}));
    for id in ["a", "b", "c"] {
        let job = home.show(id);
        assert_eq!(
            (&job["queue"], &job["priority"], &job["timeout_ms"]),
            (&json!("slow"), &json!(7), &json!(7_200_000))
        );
        assert_eq!(job["tags"], json!(["t"]), "other fields stay");
    }
    assert_eq!((&home.show("elsewhere")["priority"], home.state_of("c").as_str()), (&json!(0), "cancelled"));
    home.run(["edit", "--queue", "mail", "--priority", "1", "--yes"]).ok().says("hint: ");
    home.run(["edit", "--tag", "t", "--state", "pending", "--no-tags", "--yes"]).ok().prints("2\n");
    assert_eq!((&home.show("a")["tags"], &home.show("c")["tags"]), (&json!([]), &json!(["t"])));
}

#[test]
fn a_terminal_asks_and_says_how_many_were_edited() {
    let home = with_queues();
    let edit = home.call(["--color", "never", "edit", "--queue", "mail", "--priority", "low"]);
    let seen = on_terminal(edit.into_command(), 100, "y\n");
    assert!(seen.screen.contains("edit 3 jobs?") || seen.screen.contains("Edit 3 jobs?"), "{}", seen.screen);
    assert!(seen.screen.contains("3 jobs edited"), "{}", seen.screen);
    assert_eq!(home.show("b")["priority"], -10);
}

#[test]
fn what_cannot_be_given_to_many_is_refused() {
    let home = with_queues();
    let refuse = |args: &[&str], why: &str| {
        let all = ["edit", "--yes"].iter().chain(args).copied().collect::<Vec<_>>();
        home.run(all).fails(2).says(why);
    };
    refuse(&["--queue", "mail", "--command", "false"], "`command` cannot be changed for many jobs at once");
    refuse(&["--queue", "mail", "--name", "n"], "`name` cannot be changed for many jobs at once");
    refuse(&["--queue", "mail"], "no changes given");
    refuse(&["--queue", "mail", "--cwd", "x", "--priority", "1"], "absolute path");
    refuse(&["--state", "completed", "--priority", "1"], "cannot be edited");
    refuse(&["a", "--state", "pending", "--priority", "1"], "ids cannot be combined with a selection");
    refuse(&["a", "--queue", "x", "--set-queue", "y"], "--set-queue");
    refuse(&["a", "--tag", "x", "--no-tags"], "--no-tags");
    refuse(&["a", "--batch", "x", "--priority", "1"], "`batch` cannot be changed");
    for id in ["a", "b", "c"] {
        assert_eq!((&home.show(id)["command"], &home.show(id)["priority"]), (&json!("true"), &json!(0)));
    }
}

#[test]
fn several_named_jobs_are_all_tried() {
    let home = with_queues();
    home.run(["edit", "a", "b", "--queue", "slow", "--tag", "x,y", "--dry-run"])
        .ok()
        .shows("Would edit 2 jobs");
    assert_eq!(home.show("a")["queue"], "mail");
    home.run(["edit", "a", "none", "b", "--queue", "slow", "--tag", "x,y"]).fails(3).prints("a\nb\n");
    for id in ["a", "b"] {
        let job = home.show(id);
        assert_eq!((&job["queue"], &job["tags"]), (&json!("slow"), &json!(["x", "y"])));
    }
}

#[test]
fn a_job_whose_other_fields_contradict_the_change_is_skipped() {
    let home = with_queues();
    home.run(["edit", "b", "--no-retry-on", "75"]).ok();
    let ran = home.run(["edit", "--queue", "mail", "--retry-on", "75", "--yes"]).ok().prints("2\n");
    ran.says("1 job was skipped: its state changed, or its other fields contradict the change");
}

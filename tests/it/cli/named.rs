//! One rule for all verbs that change a thing by its name: a sentence on a terminal, the name in a pipe, nothing with `-q`,
//! and the thing with `--json`.

use super::harness::Home;
use super::pseudo_terminal::on_terminal;

/// Each of them, in an order in which all succeed in one home; the name, and what a person reads.
const CHANGES: [(&[&str], &str, &str); 13] = [
    (&["config", "set", "max-retries", "5"], "max_retries", "max_retries is now 5"),
    (&["config", "unset", "max-retries"], "max_retries", "max_retries is now 3"),
    (&["queue", "pause", "q"], "q", "Queue q is paused"),
    (&["queue", "resume", "q"], "q", "Queue q goes on"),
    (&["queue", "set", "q", "--rate", "1/s"], "q", "Queue q was changed"),
    (
        &["hook", "add", "h", "--on", "dead", "--", "true"],
        "h",
        "Hook h added; `queuectl hook test h` shows whether it works",
    ),
    (&["hook", "test", "h"], "h", "Hook h was told: it works"),
    (&["hook", "remove", "h"], "h", "Hook h removed"),
    (&["schedule", "add", "s", "--every", "1h", "--", "true"], "s", "Schedule s is added"),
    (&["schedule", "pause", "s"], "s", "Schedule s is paused"),
    (&["schedule", "resume", "s"], "s", "Schedule s goes on"),
    (&["schedule", "remove", "s"], "s", "Schedule s is removed; its jobs stay"),
    (&["edit", "j", "--priority", "1"], "j", "Job j changed: priority"),
];

#[test]
fn a_program_reads_the_name() {
    let home = Home::with_jobs(&["j"]);
    for (args, name, _) in CHANGES {
        home.run(args).ok().prints(&format!("{name}\n"));
    }
}

#[test]
fn quiet_is_quiet_and_json_is_one_object() {
    let (quiet, json) = (Home::with_jobs(&["j"]), Home::with_jobs(&["j"]));
    for (args, name, _) in CHANGES {
        quiet.run(["-q"].iter().chain(args)).ok().prints("").says_nothing();
        let object = json.run(["--json"].iter().chain(args)).ok().json();
        let names = ["name", "key", "hook", "id"].map(|field| object[field].as_str().unwrap_or_default());
        assert!(names.contains(&name), "{args:?}: {object}");
    }
}

#[test]
fn a_person_reads_a_sentence() {
    let home = Home::with_jobs(&["j"]);
    for (args, _, sentence) in CHANGES {
        let seen = on_terminal(home.call(["--color", "never"].iter().chain(args)).into_command(), 100, "");
        assert_eq!(seen.code, Some(0), "{args:?}");
        assert_eq!(seen.screen.lines().next(), Some(sentence), "{args:?}");
    }
}

//! One rule for all verbs that change a named thing: a sentence on a terminal, the name in a pipe, nothing with `-q`,
//! and the thing with `--json`.

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

/// Each verb, in an order in which all succeed in one home, with the name and the sentence.
const CHANGES: [(&[&str], &str, &str); 15] = [
    (&["config", "set", "max-retries", "5"], "max_retries", "max_retries is now 5"),
    (&["config", "unset", "max-retries"], "max_retries", "max_retries is now 3"),
    (&["queue", "pause", "q"], "q", "Queue q paused"),
    (&["queue", "resume", "q"], "q", "Queue q resumed"),
    (&["queue", "resume", "q"], "q", "Queue q was not paused"),
    (&["queue", "resume", "new"], "new", "Queue new created; it is not paused"),
    (&["queue", "set", "q", "--rate", "1/s"], "q", "Queue q changed"),
    (
        &["hook", "add", "h", "--on", "dead", "--", "true"],
        "h",
        "Hook h added; try it with `queuectl hook test h`",
    ),
    (&["hook", "test", "h"], "h", "Hook h works: the sample event was delivered"),
    (&["hook", "remove", "h"], "h", "Hook h removed"),
    (&["schedule", "add", "s", "--every", "1h", "--", "true"], "s", "Schedule s added"),
    (&["schedule", "pause", "s"], "s", "Schedule s paused"),
    (&["schedule", "resume", "s"], "s", "Schedule s resumed"),
    (&["schedule", "remove", "s"], "s", "Schedule s removed; its jobs are kept"),
    (&["edit", "j", "--priority", "1"], "j", "Job j changed: priority"),
];

#[test]
fn a_pipe_gets_the_name() {
    let home = Home::with_jobs(&["j"]);
    for (args, name, _) in CHANGES {
        home.run(args).ok().prints(&format!("{name}\n"));
    }
}

#[test]
fn quiet_prints_nothing_and_json_prints_one_object() {
    let (quiet, json) = (Home::with_jobs(&["j"]), Home::with_jobs(&["j"]));
    for (args, name, _) in CHANGES {
        quiet.run(["-q"].iter().chain(args)).ok().prints("").says_nothing();
        let object = json.run(["--json"].iter().chain(args)).ok().json();
        let names = ["name", "key", "hook", "id"].map(|field| object[field].as_str().unwrap_or_default());
        assert!(names.contains(&name), "{args:?}: {object}");
    }
}

#[test]
fn a_terminal_shows_a_sentence() {
    let home = Home::with_jobs(&["j"]);
    for (args, _, sentence) in CHANGES {
        let seen = on_terminal(home.call(["--color", "never"].iter().chain(args)).into_command(), 100, "");
        assert_eq!(seen.code, Some(0), "{args:?}");
        assert_eq!(seen.screen.lines().next(), Some(sentence), "{args:?}");
    }
}

//! Answers that need no queue.

use super::*;

/// The answer for a line whose last word is at the cursor, in a home without a queue.
fn asked(line: &[&str]) -> Answer {
    let words = ["queuectl", "--home", "/nonexistent/queuectl"].iter().chain(line);
    answer(&words.map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

fn offered(line: &[&str]) -> Vec<String> {
    let answer = asked(line);
    let Answer::Values(found) = answer else {
        panic!("{line:?}: {answer:?}");
    };
    found.into_iter().map(|candidate| candidate.value).collect()
}

#[test]
fn verbs_are_offered_without_the_hidden_ones() {
    let verbs = offered(&[""]);
    assert!(verbs.contains(&"enqueue".to_owned()) && verbs.contains(&"help".to_owned()), "{verbs:?}");
    assert!(!verbs.iter().any(|verb| verb.starts_with('_')), "{verbs:?}");
    assert!(offered(&["_"]).is_empty() && offered(&["__w"]).is_empty());
    assert_eq!(offered(&["enq"]), ["enqueue"]);
    assert_eq!(offered(&["worker", "st"]), ["start", "stop"]);
    assert_eq!(offered(&["help", "wor"]), ["worker"]);
    assert_eq!(offered(&["help", "worker", "fo"]), ["forget"]);
    assert_eq!(offered(&["help", "gl"]), ["globals"]);
    assert!(offered(&["help", "worker", "gl"]).is_empty());
}

#[test]
fn an_alias_is_offered_once_it_is_begun_and_completed_as_the_verb_that_it_stands_for() {
    assert!(!offered(&[""]).contains(&"ls".to_owned()));
    assert_eq!(offered(&["l"]), ["list", "logs", "ls", "log"]);
    assert_eq!(offered(&["ls", "--sta"]), ["--state"]);
    assert_eq!(asked(&["add", "ma"]), Answer::Command(4));
}

#[test]
fn flags_are_offered_once_unless_they_repeat_and_never_if_hidden() {
    let flags = offered(&["enqueue", "--"]);
    for flag in ["--priority", "--queue", "--home", "--help"] {
        assert_eq!(flags.contains(&flag.to_owned()), flag != "--home", "{flag} in {flags:?}");
    }
    assert!(!offered(&["enqueue", "-p", "3", "--"]).contains(&"--priority".to_owned()));
    assert!(offered(&["enqueue", "--env", "A=b", "--"]).contains(&"--env".to_owned()));
    assert!(!offered(&["edit", "--"]).contains(&"--unique-key".to_owned()), "edit hides it");
    assert_eq!(offered(&["--versi"]), ["--version"]);
    assert_eq!(offered(&["upcoming", ""])[0], "--limit", "a verb without arguments has only flags");
}

#[test]
fn the_value_of_a_flag_is_offered_in_each_of_its_forms() {
    assert_eq!(offered(&["list", "--state", "de"]), ["dead"]);
    assert_eq!(offered(&["list", "-s", "de"]), ["dead"]);
    assert_eq!(offered(&["list", "--state=de"]), ["--state=dead"]);
    assert_eq!(offered(&["list", "--state", "dead,pe"]), ["dead,pending"]);
    assert!(!offered(&["list", "--state", "dead,"]).contains(&"dead,dead".to_owned()));
    assert_eq!(offered(&["list", "--state", "runn"]), ["running"], "a word from other programs");
    assert!(!offered(&["list", "--state", ""]).contains(&"running".to_owned()));
    assert_eq!(offered(&["--color", "al"]), ["always"]);
    assert_eq!(offered(&["list", "--sort", "long"]), ["longest-running"]);
    assert_eq!(offered(&["list", "--columns", "id,exit"]), ["id,exit_code"]);
    assert_eq!(offered(&["run", "-p", "u"]), ["urgent"]);
    assert_eq!(offered(&["hook", "add", "h", "--on", "success,dlq"]), ["success,dlq-above"]);
    assert_eq!(offered(&["schedule", "add", "n", "--tz", "Europe/Berl"]), ["Europe/Berlin"]);
    assert_eq!(offered(&["completions", ""]), ["bash", "zsh", "fish"]);
}

#[test]
fn settings_and_their_values_are_offered_without_a_queue() {
    assert_eq!(offered(&["config", "set", "max-r"]), ["max-retries"]);
    assert_eq!(offered(&["config", "get", "max_r"]), ["max_retries"]);
    assert_eq!(offered(&["config", "set", "durability", ""]), ["full", "normal"]);
    assert_eq!(offered(&["config", "set", "backoff-strategy", "f"]), ["fixed"]);
    assert_eq!(offered(&["config", "set", "max-retries", ""]), ["3"]);
    assert_eq!(offered(&["config", "set", "autostart", ""]), ["off", "on"]);
    assert_eq!(offered(&["config", "set", "concurrency", ""]), ["1", "auto"]);
    assert!(offered(&["config", "set", "nonsense", ""]).is_empty());
}

#[test]
fn files_folders_and_commands_are_left_to_the_shell() {
    assert_eq!(asked(&["enqueue", "--file", ""]), Answer::Files);
    assert_eq!(asked(&["enqueue", "-f", "jo"]), Answer::Files);
    assert_eq!(asked(&["enqueue", "--file=jo"]), Answer::Files);
    assert_eq!(asked(&["restore", ""]), Answer::Files);
    assert_eq!(asked(&["run", "--cwd", ""]), Answer::Folders);
    assert_eq!(asked(&["run", "ma"]), Answer::Command(4));
    assert_eq!(asked(&["run", "--queue", "q", "make", "te"]), Answer::Command(6));
    assert_eq!(asked(&["run", "make", "--de"]), Answer::Command(4), "the flags of make");
    assert_eq!(asked(&["run", "--", "ma"]), Answer::Command(5));
    assert_eq!(asked(&["schedule", "add", "nightly", "ma"]), Answer::Command(6));
    assert_eq!(asked(&["enqueue", "--command", "ma"]), Answer::Command(5));
    assert_eq!(offered(&["enqueue", "make && make test", "--prio"]), ["--priority"]);
    assert_eq!(offered(&["enqueue", "{\"command\":\"x\"}", "--prio"]), ["--priority"]);
}

#[test]
fn nothing_is_offered_for_new_names_and_free_text() {
    for line in [
        &["schedule", "add", ""][..],
        &["hook", "add", ""],
        &["enqueue", "--id", ""],
        &["enqueue", "--name", ""],
        &["enqueue", "--timeout", ""],
        &["nonsense", ""],
        &["show", "1", ""],
    ] {
        let found = offered(line);
        assert!(found.is_empty() || found[0].starts_with("--"), "{line:?}: {found:?}");
    }
}

/// A flag whose value is offered by no rule must be free text on purpose.
#[test]
fn every_argument_with_a_value_has_a_rule() {
    const FREE: [&str; 30] = [
        "ADDRESS",
        "BASE",
        "CODES",
        "CODES|none",
        "CODE",
        "DELIVERY",
        "DURATION",
        "EXPRESSION",
        "GLOB",
        "HEADER",
        "HOST",
        "ID",
        "JSON",
        "JSON|none",
        "KEY",
        "LIMITS",
        "LIMITS|none",
        "N",
        "NAME",
        "NAME=VALUE",
        "NAME|none",
        "N|none",
        "PORT",
        "PREFIX",
        "RATE|none",
        "ROLE",
        "S",
        "TEXT",
        "TIME",
        "USER",
    ];
    fn visit(command: &Command, path: &str) {
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        for argument in shown.filter(|argument| argument.get_action().takes_values()) {
            let name = argument.get_value_names().and_then(|names| names.first());
            let name = name.map_or(argument.get_id().as_str(), |name| name.as_str());
            if subject(path, argument) == Subject::Free && !matches!(name, "WORD" | "URL") {
                let id = argument.get_id();
                assert!(FREE.contains(&name), "`{path}`: the value {name} of {id} is not completed");
            }
        }
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            visit(verb, format!("{path} {}", verb.get_name()).trim());
        }
    }
    visit(&whole(), "");
}

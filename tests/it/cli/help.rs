//! Help, version, and the form of errors.

use std::collections::BTreeSet;

use domain::job::spec::JobSpec;

use super::harness::Home;

/// The verbs in a help text: under `Commands:`, or in groups under the usage of the whole.
fn verbs_in(help: &str) -> Vec<String> {
    let is_whole = help.lines().any(|line| line == "Upkeep:");
    let section = help.lines().skip_while(|line| *line != "Commands:" && !(is_whole && *line == "Jobs:"));
    let section =
        section.take_while(|line| if is_whole { *line != "Global options:" } else { !line.is_empty() });
    let entries = section.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = entries.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every verb and subverb, found in the help itself.
fn all_verbs(home: &Home) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(verb) = open.pop() {
        let help = home.run(verb.iter().map(String::as_str).chain(["--help"])).ok().says_nothing().stdout;
        for name in verbs_in(&help) {
            open.push(verb.iter().cloned().chain([name]).collect());
        }
        if !verb.is_empty() {
            found.push(verb);
        }
    }
    found
}

/// Every verb that the help must list.
const KNOWN: [&str; 71] = [
    "enqueue",
    "run",
    "list",
    "show",
    "explain",
    "logs",
    "wait",
    "graph",
    "events",
    "metrics",
    "status",
    "cancel",
    "pause",
    "resume",
    "retry",
    "edit",
    "remove",
    "init",
    "doctor",
    "selftest",
    "completions",
    "man",
    "prune",
    "backup",
    "bench",
    "restore",
    "export",
    "import",
    "dlq",
    "dlq list",
    "dlq show",
    "dlq retry",
    "dlq purge",
    "queue",
    "queue list",
    "queue pause",
    "queue resume",
    "queue set",
    "schedule",
    "schedule add",
    "schedule list",
    "schedule show",
    "schedule pause",
    "schedule resume",
    "schedule remove",
    "schedule run",
    "batch",
    "batch list",
    "batch show",
    "batch wait",
    "batch cancel",
    "hook",
    "hook add",
    "hook list",
    "hook show",
    "hook test",
    "hook remove",
    "config list",
    "config get",
    "config set",
    "service",
    "service install",
    "service uninstall",
    "service restart",
    "service status",
    "service logs",
    "worker start",
    "worker run",
    "worker stop",
    "worker list",
    "worker forget",
];

#[test]
fn every_verb_has_help_with_an_example_and_the_common_flags() {
    let home = Home::new();
    let verbs = all_verbs(&home);
    for known in KNOWN {
        assert!(verbs.iter().any(|verb| verb.join(" ") == known), "{known} is missing in {verbs:?}");
    }
    for verb in verbs {
        let name = verb.join(" ");
        let ran = home.run(verb.iter().map(String::as_str).chain(["--help"])).ok();
        let example = ran
            .lines()
            .iter()
            .any(|line| line.contains(&format!("queuectl {name}")) && !line.contains("Usage"));
        assert!(example, "no example of `{name}`: {ran}");
        for flag in ["--json", "--home", "--store", "--color", "-q"] {
            assert!(ran.stdout.contains(flag), "{flag} is missing: {ran}");
        }
    }
    assert!(!home.path().exists(), "help makes nothing");
}

/// The long flags in a text.
fn flags_in(help: &str) -> BTreeSet<&str> {
    let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| word.starts_with("--") && word.len() > 2).collect()
}

#[test]
fn the_short_help_of_every_verb_is_one_screen_with_examples() {
    let home = Home::new();
    for verb in all_verbs(&home).into_iter().chain([Vec::new()]) {
        let ask = |flag: &str| home.run(verb.iter().map(String::as_str).chain([flag])).ok().says_nothing();
        let (short, full) = (ask("-h"), ask("--help"));
        let lines = short.lines();
        assert!(lines.len() <= 40, "{} lines: {short}", lines.len());
        for line in &lines {
            assert!(line.chars().count() <= 80 && line.trim_end() == *line, "`{line}` in {short}");
        }
        assert!(lines.iter().any(|line| line.starts_with("Usage: queuectl")), "{short}");
        let examples = lines.iter().skip_while(|line| !line.starts_with("Example")).skip(1);
        let examples = examples.take_while(|line| line.starts_with("  ")).count();
        assert!((1..=3).contains(&examples), "{short}");
        let globals = "Global options: --home --store --json -q --utc --color (queuectl help globals)";
        assert!(lines.contains(&globals), "{short}");
        // Each flag is shown, or at least named; and the complete help has it.
        let options = |help: &str| help.split("\nExample").next().map(str::to_owned).unwrap_or_default();
        let (named, known) = (options(&short.stdout), options(&full.stdout));
        for flag in flags_in(&named) {
            assert!(flags_in(&known).contains(flag), "{flag} of {short} is not in {full}");
        }
        for line in known.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
            let is_common =
                ["--home", "--store", "--json", "--quiet", "--utc", "--color", "--help", "--version"]
                    .iter()
                    .any(|flag| flags_in(line).contains(flag));
            let flag = flags_in(line).into_iter().next().unwrap_or_default();
            assert!(is_common || flags_in(&named).contains(flag), "{flag} is not named in {short}");
        }
    }
}

#[test]
fn help_globals_explains_the_flags_of_every_verb() {
    let home = Home::new();
    let ran = home.run(["help", "globals"]).ok().says_nothing();
    for flag in
        ["--home <DIR>", "--store <PATH>", "--json", "-q, --quiet", "--utc", "--color <WHEN>", "NO_COLOR"]
    {
        assert!(ran.stdout.contains(flag), "{flag} is missing: {ran}");
    }
    home.run(["help", "global"]).fails(2).says("unknown command `global`");
    home.run(["help", "nosuch"]).fails(2).says("hint: `queuectl --help` lists the commands");
    home.run(["help", "queue", "nosuch"]).fails(2).says("hint: `queuectl queue --help` lists the commands");
    home.run(["nosuch", "status"]).fails(2).says("hint: `queuectl --help` lists the commands");
    home.run(["queue", "nosuch", "list"]).fails(2).says("hint: `queuectl queue --help` lists the commands");
}

#[test]
fn the_first_of_both_flags_decides() {
    let home = Home::new();
    let (short, full) = (home.run(["run", "-h"]).ok().stdout, home.run(["run", "--help"]).ok().stdout);
    assert_ne!(short, full);
    assert_eq!(home.run(["run", "-qh", "--help"]).ok().stdout, short);
    assert_eq!(home.run(["run", "--help", "-h"]).ok().stdout, full);
    assert_eq!(home.run(["help", "run"]).ok().stdout, full);
}

#[test]
fn the_version_is_that_of_the_package() {
    let expected = format!("queuectl {}\n", env!("CARGO_PKG_VERSION"));
    Home::new().run(["--version"]).ok().prints(&expected);
    Home::new().run(["-V"]).ok().prints(&expected);
}

#[test]
fn a_missing_verb_of_a_verb_prints_help_on_stderr_and_fails() {
    for args in [vec!["dlq"], vec!["worker"], vec!["schedule"], vec!["queue"], vec!["hook"]] {
        let home = Home::new();
        let ran = home.call_without_home(args).run();
        assert_eq!(ran.status.code(), Some(2), "{ran}");
        assert!(ran.stdout.is_empty() && ran.stderr.contains("Usage: queuectl"), "{ran}");
        assert!(!verbs_in(&ran.stderr).is_empty() && !ran.stderr.contains("error: The"), "{ran}");
    }
}

#[test]
fn flags_of_a_verb_without_its_verb_are_an_error_that_names_no_hidden_verb() {
    let home = Home::new();
    let hint = "`queuectl worker --help` lists the commands";
    let ran = home.call_without_home(["worker", "-q"]).run().fails(2).prints("");
    assert_eq!(ran.stderr, format!("error: no command given\nhint: {hint}\n"));
    let ran = home.call_without_home(["worker", "--json"]).run().fails(2).prints("");
    let expected = serde_json::json!({"error": "no command given", "exit_code": 2, "hint": hint});
    assert_eq!(ran.error_json(), expected);
}

#[test]
fn every_list_of_verbs_describes_help_in_the_same_words() {
    let home = Home::new();
    for args in [vec!["--help"], vec!["worker", "--help"], vec!["dlq", "--help"]] {
        home.run(args).ok().shows("Print this help, or the help of a command");
    }
}

/// Failures of every kind: usage, bad input, not found, conflict, incompatible.
fn failures() -> Vec<(Vec<&'static str>, i32)> {
    vec![
        (vec!["bogus"], 2),
        (vec!["list", "--bogus"], 2),
        (vec!["list", "--state", "daed"], 2),
        (vec!["edit"], 2),
        (vec!["--color", "sometimes", "list"], 2),
        (vec!["enqueue"], 2),
        (vec!["enqueue", "{"], 2),
        (vec!["enqueue", "--timeout", "soon", "--", "x"], 2),
        (vec!["enqueue", "--id", "a", "--", "x"], 4),
        (vec!["show", "nope"], 3),
        (vec!["config", "set", "lease", "1s"], 2),
        (vec!["dlq", "retry", "a"], 4),
        (vec!["remove", "a", "--state", "dead"], 2),
        (vec!["--store", "postgres://h/db?sslmode=prefer", "list"], 2),
    ]
}

#[test]
fn an_error_is_one_line_and_at_most_one_hint() {
    let home = Home::with_jobs(&["a"]);
    for (args, code) in failures() {
        let ran = home.run(args).fails(code).prints("");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert!(lines[0].starts_with("error: ") && lines.len() <= 2, "{ran}");
        assert!(!lines[0].ends_with('.'), "{ran}");
    }
}

#[test]
fn with_json_an_error_is_an_object() {
    let home = Home::with_jobs(&["a"]);
    for (args, code) in failures() {
        let ran = home.run([&["--json"], args.as_slice()].concat()).fails(code);
        assert!(matches!(ran.stdout.as_str(), "" | "[]\n"), "{ran}");
        let object = ran.error_json();
        assert_eq!(object["exit_code"], code, "{ran}");
        assert!(object["error"].as_str().is_some_and(|message| !message.is_empty()), "{ran}");
        assert!(object["hint"].is_null() || object["hint"].is_string(), "{ran}");
    }
}

#[test]
fn json_after_two_dashes_is_an_ordinary_word() {
    Home::new().run(["enqueue", "--bogus", "--", "--json"]).fails(2).says("error: ");
}

#[test]
fn quiet_still_prints_errors() {
    Home::with_queue().run(["-q", "show", "nope"]).fails(3).says("error: there is no job `nope`");
}

#[test]
fn quoted_input_is_truncated_in_errors() {
    let long = "x".repeat(100_000);
    for args in
        [vec!["show", &long], vec!["config", "get", &long], vec!["list", "--state", &long], vec![&long]]
    {
        let home = Home::new();
        for json in [false, true] {
            let args = args.iter().copied().chain(json.then_some("--json"));
            let ran = home.run(args).fails(2);
            assert!(ran.stderr.len() < 5_000, "{} bytes of error", ran.stderr.len());
        }
    }
}

#[test]
fn every_field_of_a_job_has_a_flag_and_every_editable_one_a_flag_of_edit() {
    let home = Home::new();
    for (verb, without) in [
        (&["enqueue"][..], &[][..]),
        (&["run"], &[]),
        (&["schedule", "add"], &["id", "run_at", "delay", "depends_on", "on_dependency_failure"]),
        (&["edit"], &["id", "depends_on", "unique_key", "unique_for"]),
    ] {
        let help = home.run(verb.iter().chain(&["--help"])).ok().stdout;
        let has = |flag: &str| help.split([' ', ',', ']', '\n']).any(|word| word == flag);
        for field in JobSpec::field_names() {
            let flag = format!("--{}", field.replace('_', "-"));
            assert_eq!(has(&flag), !without.contains(field), "{verb:?} {flag}");
        }
    }
}

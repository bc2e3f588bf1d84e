//! Case 15: text with terminal control characters is stored unchanged and shown escaped.

use serde_json::json;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

/// Each with its escaped form.
const HOSTILE: [(&str, &str); 9] = [
    ("\u{1b}[31mred\u{1b}[0m", r"\u{1b}[31mred\u{1b}[0m"),
    ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
    ("two\nlines\r\n\tand tabs", r"two\nlines\r\n\tand tabs"),
    ("back\u{8}space and del\u{7f}", r"back\u{8}space and del\u{7f}"),
    ("c1 \u{9b}31m", r"c1 \u{9b}31m"),
    ("\u{202e}gpj.exe\u{202c}", r"\u{202e}gpj.exe\u{202c}"),
    ("\u{2066}isolate\u{2069}", r"\u{2066}isolate\u{2069}"),
    ("mark\u{200f}\u{200e}\u{61c}", r"mark\u{200f}\u{200e}\u{61c}"),
    ("zero\u{200b}width\u{feff}", r"zero\u{200b}width\u{feff}"),
];

fn is_harmless(text: &str) -> bool {
    let hostile = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    !text.contains(hostile)
}

#[test]
fn fault_15_hostile_text_is_stored_byte_by_byte() {
    for (text, _) in HOSTILE {
        let home = Home::new();
        home.run(["enqueue", "-q", "--id", "a", "--command", text]).ok();
        assert_eq!(home.jobs()[0].command, text);
        assert_eq!(home.show("a")["command"], text, "JSON gives it back whole");
    }
}

#[test]
fn fault_15_hostile_text_is_shown_escaped() {
    for (text, shown) in HOSTILE {
        let home = Home::new();
        let cwd = home.folder().join(text);
        std::fs::create_dir_all(&cwd).expect("a folder");
        let job = json!({"id": "a", "command": text, "cwd": cwd.to_str(), "tags": [text], "unique_key": text,
                         "env": {text: "x"}, "max_retries": 0});
        home.run(["enqueue", "-q", &job.to_string()]).ok();
        home.kill_next("a", &format!("exit code 1: {text}"));
        for args in [["list"].as_slice(), &["show", "a"], &["dlq", "list"], &["dlq", "show", "a"]] {
            let ran = home.run(args).ok().shows(shown);
            assert!(is_harmless(&ran.stdout), "{args:?}: {:?}", ran.stdout);
            let seen = on_terminal(home.call(args).env("NO_COLOR", "1").into_command(), 200, "");
            assert!(is_harmless(&seen.screen), "{args:?} on a terminal: {:?}", seen.screen);
        }
        let ran = home.run(["dlq", "list", "--group"]).ok();
        assert!(is_harmless(&ran.stdout), "{:?}", ran.stdout);
    }
}

#[test]
fn fault_15_hostile_text_is_escaped_in_json() {
    for (text, _) in HOSTILE {
        let home = Home::new();
        let args = ["enqueue", "--json", "--id", "a", "--tag", text, "--command", text];
        let enqueued = home.run(args).ok();
        for ran in [enqueued, home.run(["list", "--json"]).ok(), home.run(["show", "a", "--json"]).ok()] {
            assert!(is_harmless(&ran.stdout), "{:?}", ran.stdout);
            assert!(ran.stdout.contains("\\u") || ran.stdout.contains("\\n"), "{:?}", ran.stdout);
        }
    }
}

#[test]
fn fault_15_an_export_is_escaped_and_read_back_byte_by_byte() {
    for (text, _) in HOSTILE {
        let (home, other) = (Home::new(), Home::new());
        let job = json!({"id": "a", "command": text, "tags": [text], "env": {"X": text}, "max_retries": 0});
        home.run(["enqueue", "-q", &job.to_string()]).ok();
        home.kill_next("a", &format!("exit code 1: {text}"));
        home.run(["queue", "pause", "mail", "--reason", text]).ok();
        let exported = home.run(["export"]).ok();
        assert!(is_harmless(&exported.stdout), "{:?}", exported.stdout);
        other.call(["import", "-"]).with_stdin(exported.stdout.as_str()).run().ok();
        assert_eq!(other.jobs()[0].command, text);
        let again = other.run(["export"]).ok().stdout;
        assert!(again.starts_with(&exported.stdout), "{again:?}");
    }
}

#[test]
fn fault_15_an_editor_gets_escaped_json() {
    for (text, _) in HOSTILE {
        let home = Home::new();
        home.run(["enqueue", "-q", "--id", "a", "--command", text]).ok();
        let copy = home.folder().join("copy.json");
        let editor = format!("cat > {} <", copy.display());
        let _ = on_terminal(home.call(["edit", "a"]).env("EDITOR", editor).into_command(), 100, "");
        let edited = std::fs::read_to_string(copy).expect("the editor saw a file");
        assert!(is_harmless(&edited), "{edited:?}");
        assert_eq!(home.show("a")["command"], text);
    }
}

#[test]
fn fault_15_errors_quote_what_was_typed_escaped() {
    for (text, _) in HOSTILE {
        let home = Home::new();
        for args in [
            vec!["show", text],
            vec!["list", "--state", text],
            vec!["list", "--queue", text],
            vec!["list", "--limit", text],
            vec!["config", "get", text],
            vec!["config", "set", "lease", text],
            vec!["enqueue", "--id", text, "--", "x"],
            vec!["enqueue", "--timeout", text, "--", "x"],
            vec!["enqueue", "--file", text],
            vec![text],
        ] {
            let ran = home.run(args.clone()).fails(2);
            assert!(is_harmless(&ran.stderr), "{args:?}: {:?}", ran.stderr);
            let args: Vec<&str> = ["--json"].into_iter().chain(args).collect();
            let ran = home.run(args.clone()).fails(2);
            assert!(is_harmless(&ran.stderr), "{args:?}: {:?}", ran.stderr);
        }
        let field = json!({"command": "x", text: 1}).to_string();
        let ran = home.run(["enqueue", &field]).fails(2);
        assert!(is_harmless(&ran.stderr), "{:?}", ran.stderr);
    }
}

#[test]
fn fault_15_names_from_the_environment_are_shown_escaped() {
    let home = Home::with_jobs(&["a"]);
    home.call(["cancel", "a"]).env("USER", "\u{1b}[31meve").run().ok();
    let ran = home.run(["show", "a"]).ok().shows(r"\u{1b}[31meve");
    assert!(is_harmless(&ran.stdout), "{:?}", ran.stdout);
}

#[test]
fn fault_15_a_home_with_a_hostile_name_works_and_is_shown_escaped() {
    let home = Home::new();
    let hostile = home.folder().join("\u{1b}[31mred");
    home.call_without_home(["enqueue", "--id", "a", "--", "true"]).env("QUEUECTL_HOME", &hostile).run().ok();
    assert!(hostile.join("queue.db").is_file());
    std::fs::write(hostile.join("queue.db"), "").expect("the database is emptied");
    let ran = home.call_without_home(["list"]).env("QUEUECTL_HOME", &hostile).run().fails(7);
    assert!(is_harmless(&ran.stderr), "{:?}", ran.stderr);
}

//! Commands that run without a shell, compared with real shells: the program must receive the same words.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use domain::job::template::Template;
use domain::text::shell::{direct_words, quote_words};
use proptest::prelude::*;

use super::fuzz::corpus;

/// Not written by the test: a file that is open for writing cannot be executed, and a process that another thread is
/// just starting may briefly inherit the descriptor.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/it/shell/say-arguments");

/// Most commands with a special character are not run directly, so that many cases cost little.
const SPECIAL_CASES: u32 = 4_000;
const PLAIN_CASES: u32 = 200;
/// Lines with placeholders, most of which are refused.
const LINE_CASES: u32 = 400;

/// Characters that expand, redirect, comment out or end a command unless they are quoted.
const SPECIAL_CHARACTERS: &str = "~#*?$\\!{},[]()|&;<>\n^`+@%:='\"\r\t\u{1}\u{7f}\u{a0}é";

/// Words, blanks and quoted parts, in any order.
fn plain() -> impl Strategy<Value = String> {
    let fragments = vec![
        "a",
        "b",
        "-x",
        "a=b",
        "2",
        "/",
        ".",
        "if",
        "echo",
        " ",
        " ",
        " ",
        "\t",
        "''",
        "\"\"",
        "'a b'",
        "\"a b\"",
        "'*'",
        "\"~ it's\"",
        "'$a \\ \"b'",
    ];
    prop::collection::vec(prop::sample::select(fragments), 0..7).prop_map(|fragments| fragments.concat())
}

/// A plain command with one or two special characters inserted.
fn special() -> impl Strategy<Value = String> {
    let character = || prop::sample::select(SPECIAL_CHARACTERS.chars().collect::<Vec<char>>());
    let tail = prop_oneof![character().prop_map(String::from), Just(String::new())];
    (plain(), character(), tail, plain())
        .prop_map(|(before, character, tail, after)| format!("{before}{character}{tail}{after}"))
}

/// The arguments that the program received when this shell ran the command. `PATH` contains only the program, under the
/// given name, and two files that a pattern could match.
fn arguments_from_shell(shell: &Path, command: &str, program: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("tempdir");
    for name in ["c", "d"] {
        fs::write(folder.path().join(name), "").expect("a file that a pattern could match");
    }
    symlink(PROGRAM, folder.path().join(program)).expect("link");
    let output = Command::new(shell)
        .arg0("sh")
        .args(["-c", command])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", folder.path())
        .output()
        .expect("the shell starts");
    assert!(
        output.status.success(),
        "{}: {command:?}: {}",
        shell.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn expected_output(words: &[String]) -> Vec<u8> {
    let count = (words.len() - 1).to_string();
    let mut output = Vec::new();
    for word in std::iter::once(&count).chain(&words[1..]) {
        output.extend_from_slice(word.as_bytes());
        output.push(0);
    }
    output
}

/// This system's `sh`, and the two shells that are `sh` on other systems.
fn shells() -> Vec<PathBuf> {
    let shells =
        ["/bin/sh", "/bin/dash", "/bin/bash"].into_iter().filter_map(|shell| fs::canonicalize(shell).ok());
    let mut shells: Vec<PathBuf> = shells.collect();
    shells.sort();
    shells.dedup();
    shells
}

fn check(command: &str) {
    let Some(words) = direct_words(command) else {
        return;
    };
    // A program in another folder is not looked up on the PATH.
    if words[0].contains('/') || words[0].starts_with('.') {
        return;
    }
    for shell in shells() {
        let received = arguments_from_shell(&shell, command, &words[0]);
        assert_eq!(shown(&received), shown(&expected_output(&words)), "{}: {command:?}", shell.display());
    }
}

/// Values that create a file if a shell interprets any part of them.
const HOSTILE_VALUES: [&str; 6] =
    ["$(>pwned)", "`>pwned`", "';>pwned;'", "\";>pwned;\"", "\n>pwned\n", "E\n>pwned\n#'\n>pwned"];

/// Lines for the shell with placeholders, in and between quotes and substitutions.
fn line_with_placeholders() -> impl Strategy<Value = String> {
    let fragments = vec![
        "{}", "{}", "{}", "{}", "{.}", "echo ", "a", " ", " ", "'", "'", "\"", "\"", "$(", ")", "`", "${x",
        "${x:-", "}", "${x}", "#", "\\", "<<E", "\n", "((", "$((", "))", "$'", "$\"", "$", ";", "(", "[ ",
        " ]", "{ ",
    ];
    prop::collection::vec(prop::sample::select(fragments), 1..12).prop_map(|fragments| fragments.concat())
}

/// Fills hostile values into the line, and runs it.
fn check_that_values_are_inert(line: &str) {
    let Ok(template) = Template::for_shell_line(line) else {
        return;
    };
    for value in HOSTILE_VALUES {
        let command = template.fill(1, &[value]);
        for shell in shells() {
            let folder = tempfile::tempdir().expect("tempdir");
            let ran = Command::new(&shell)
                .arg0("sh")
                .args(["-c", &command])
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", folder.path())
                .output();
            ran.expect("the shell starts");
            let is_inert = !folder.path().join("pwned").exists();
            assert!(is_inert, "{} runs the value: {line:?} becomes {command:?}", shell.display());
        }
    }
}

#[test]
fn a_value_in_a_shell_line_arrives_unchanged() {
    for line in [
        "printf %s {}",
        "printf %s \"{}\"",
        "printf %s '{}'",
        "x={}; printf %s \"$x\"",
        "x=$(printf %s {}x); printf %s \"${x%x}\"",
        "printf %s",
    ] {
        let template = Template::for_shell_line(line).expect(line);
        for value in HOSTILE_VALUES.iter().chain(&["it's", "a b", "*", "\\", "-"]) {
            for shell in shells() {
                let run = Command::new(&shell).args(["-c", &template.fill(1, &[value])]).output();
                let printed = run.expect("the shell starts").stdout;
                assert_eq!(shown(&printed), shown(value.as_bytes()), "{}: {line}", shell.display());
            }
        }
    }
}

#[test]
fn the_fuzzing_corpus_means_the_same_to_a_shell() {
    for (_, input) in corpus::inputs("shell") {
        check(&String::from_utf8_lossy(&input));
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(LINE_CASES))]

    #[test]
    fn a_shell_never_interprets_a_value(line in line_with_placeholders()) {
        check_that_values_are_inert(&line);
    }
}

proptest! {
    #![proptest_config(cases(PLAIN_CASES))]

    #[test]
    fn words_mean_the_same_to_a_shell(first in plain(), rest in plain()) {
        check(&format!("a{first} {rest}"));
    }
}

proptest! {
    #![proptest_config(cases(SPECIAL_CASES))]

    #[test]
    fn special_arguments_mean_the_same_to_a_shell(rest in special()) {
        check(&format!("a {rest}"));
    }

    #[test]
    fn a_special_first_word_means_the_same_to_a_shell(command in special()) {
        check(&command);
    }

    /// `enqueue -- WORDS` quotes the words; the result is split again without a shell where possible.
    #[test]
    fn quoted_words_survive_a_round_trip(words in prop::collection::vec("[ -~]{0,6}", 1..5)) {
        if let Some(direct) = direct_words(&quote_words(&words)) {
            prop_assert_eq!(direct, words);
        }
    }
}

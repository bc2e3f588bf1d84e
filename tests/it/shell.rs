//! Commands that are run without a shell, against real shells: the program must see the same words.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use domain::text::shell::{direct_words, quote_words};
use proptest::prelude::*;

use crate::fuzz::corpus;

/// Not written by the test: a file that some thread has open for writing cannot be executed, and a process that another
/// thread is about to start has it open for a moment.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/it/shell/say-arguments");

/// Most commands with a nasty character are refused, so that trying many costs little.
const NASTY_CASES: u32 = 4_000;
const TAME_CASES: u32 = 200;

/// Characters that expand, redirect, comment out or end a command where nothing keeps them from it.
const NASTY: &str = "~#*?$\\!{},[]()|&;<>\n^`+@%:='\"\r\t\u{1}\u{7f}\u{a0}é";

/// Words, blanks and quoted parts, in any order.
fn tame() -> impl Strategy<Value = String> {
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

/// A tame command with one or two nasty characters somewhere in it.
fn nasty() -> impl Strategy<Value = String> {
    let character = || prop::sample::select(NASTY.chars().collect::<Vec<char>>());
    let tail = prop_oneof![character().prop_map(String::from), Just(String::new())];
    (tame(), character(), tail, tame())
        .prop_map(|(before, character, tail, after)| format!("{before}{character}{tail}{after}"))
}

/// What the program saw when this shell ran the command. `PATH` holds nothing but the program, under the given name,
/// beside two files that a pattern could find.
fn seen(shell: &Path, command: &str, program: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("tempdir");
    for name in ["c", "d"] {
        fs::write(folder.path().join(name), "").expect("a file to be found");
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

fn said_about(words: &[String]) -> Vec<u8> {
    let count = (words.len() - 1).to_string();
    let mut said = Vec::new();
    for word in std::iter::once(&count).chain(&words[1..]) {
        said.extend_from_slice(word.as_bytes());
        said.push(0);
    }
    said
}

/// This system's `sh`, and the two shells that it may be elsewhere.
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
    // A program in another folder is found without the shell's help.
    if words[0].contains('/') || words[0].starts_with('.') {
        return;
    }
    for shell in shells() {
        let seen = seen(&shell, command, &words[0]);
        assert_eq!(shown(&seen), shown(&said_about(&words)), "{}: {command:?}", shell.display());
    }
}

#[test]
fn what_is_kept_for_fuzzing_means_the_same_to_a_shell() {
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
    #![proptest_config(cases(TAME_CASES))]

    #[test]
    fn words_mean_the_same_to_a_shell(first in tame(), rest in tame()) {
        check(&format!("a{first} {rest}"));
    }
}

proptest! {
    #![proptest_config(cases(NASTY_CASES))]

    #[test]
    fn nasty_arguments_mean_the_same_to_a_shell(rest in nasty()) {
        check(&format!("a {rest}"));
    }

    #[test]
    fn a_nasty_first_word_means_the_same_to_a_shell(command in nasty()) {
        check(&command);
    }

    /// `enqueue -- WORDS` quotes them; what comes out is taken apart again without a shell where that is possible.
    #[test]
    fn quoted_words_come_back(words in prop::collection::vec("[ -~]{0,6}", 1..5)) {
        if let Some(direct) = direct_words(&quote_words(&words)) {
            prop_assert_eq!(direct, words);
        }
    }
}

//! `queuectl man`: pages in a pipe, on a terminal, and in files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

#[test]
fn in_a_pipe_a_page_is_roff() {
    let home = Home::new();
    home.run(["man"]).ok().says_nothing().shows(".TH \"QUEUECTL\" \"1\"").shows(".SH \"EXIT STATUS\"");
    let ran = home.run(["man", "worker", "start"]).ok().says_nothing();
    assert!(ran.stdout.starts_with(".TH \"QUEUECTL\\-WORKER\\-START\" \"1\""), "{ran}");
    assert!(ran.stdout.contains("\\fB\\-j, \\-\\-concurrency <N>\\fR"), "{ran}");
    assert!(ran.stdout.contains("\\fBqueuectl\\-worker\\fR(1)"), "it names the page above: {ran}");
    assert_eq!(home.run(["man", "ps"]).ok().stdout, home.run(["man", "worker", "list"]).ok().stdout);
    let page = home.run(["man", "run", "--json"]).ok().json();
    assert_eq!(page["page"], "queuectl-run.1");
    assert!(!home.path().exists(), "a page needs no queue");
}

#[test]
fn an_unknown_verb_is_answered_as_on_the_command_line() {
    let home = Home::new();
    for (words, hint) in [
        (&["stop"][..], "use `queuectl worker stop`, or `queuectl cancel JOB` for one job"),
        (&["worker", "status"], "use `queuectl worker list`"),
        (&["enqeue"], "did you mean `queuectl enqueue`?"),
        (&["__worker"], "did you mean `queuectl worker`?"),
        (&["nonsense"], "`queuectl --help` lists the commands"),
        (&["list", "x"], "use `queuectl man list`"),
    ] {
        let ran = home.run([&["man"], words].concat()).fails(2).prints("");
        let typed = words[words.len() - 1];
        assert_eq!(ran.stderr, format!("error: unknown command `{typed}`\nhint: {hint}\n"));
    }
}

#[test]
fn all_pages_are_written_and_none_for_hidden_verbs() {
    let home = Home::new();
    let folder = home.folder().join("pages/man1");
    let files = home.run(["man", "--json", "--all", "pages/man1"]).ok().json();
    let mut written: Vec<String> = fs::read_dir(&folder)
        .expect("the folder is made")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    written.sort();
    assert_eq!(serde_json::json!(written), files);
    for page in ["queuectl.1", "queuectl-enqueue.1", "queuectl-worker-start.1", "queuectl-man.1"] {
        assert!(written.iter().any(|file| file == page), "{page} is missing: {written:?}");
    }
    assert!(!written.iter().any(|file| file.contains("__")), "{written:?}");
    home.run(["man", "--all", "pages/man1"]).ok().shows("pages written to pages/man1");
    home.file("file", "");
    home.run(["man", "--all", "file"]).fails(1).says("failed to write `file`");
    home.run(["man", "run", "--all", "x"]).fails(2);
}

#[test]
fn on_a_terminal_the_page_is_shown_by_man_or_as_help() {
    let home = Home::new();
    let with_man = |script: &str| {
        let man = home.file("bin/man", format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(man, fs::Permissions::from_mode(0o755)).expect("it is a program");
        let path = format!("{}:/usr/bin:/bin", home.folder().join("bin").display());
        on_terminal(home.call(["man", "show"]).env("PATH", path).into_command(), 80, "")
    };
    let shown = with_man("echo \"man $*\"; cat");
    assert!(shown.screen.starts_with("man -l -\n.TH \"QUEUECTL\\-SHOW\""), "{}", shown.screen);
    assert_eq!(shown.code, Some(0));
    let is_help = |screen: &str| screen.contains("Show one job and its history") && !screen.contains(".TH");
    let shown = with_man("exit 3");
    assert!(is_help(&shown.screen) && shown.code == Some(0), "{}", shown.screen);
    let missing = home.call(["man", "show"]).env("PATH", home.folder()).into_command();
    let shown = on_terminal(missing, 80, "");
    assert!(is_help(&shown.screen) && shown.code == Some(0), "{}", shown.screen);
}

//! Keys whose effect is more than a line of text: the cursor, the output of a job, its editor and its pager.

use std::os::unix::fs::PermissionsExt;

use super::{Top, emulate, is_chosen, with_output};
use crate::cli::harness::pseudo_terminal::Terminal;
use crate::cli::harness::{Home, PROGRAM};

const ESCAPE: &str = "\u{1b}";

#[test]
fn the_cursor_goes_where_the_keys_say() {
    let names: Vec<String> = (10..40).map(|number| format!("job-{number}")).collect();
    let home = Home::with_jobs(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut top = Top::start(&home, (100, 24), &[]);
    top.press("/like:*\r", "30 jobs");
    for (keys, to) in [
        ("g", "job-39"),
        ("j", "job-38"),
        ("\u{1b}[B", "job-37"),
        ("k", "job-38"),
        ("\u{1b}[A", "job-39"),
        ("G", "job-10"),
        ("\u{1b}[H", "job-39"),
        ("\u{1b}[F", "job-10"),
        ("\u{15}", "job-22"),
        ("\u{4}", "job-10"),
        ("g\u{1b}[6~", "job-27"),
        ("\u{1b}[5~", "job-39"),
    ] {
        top.moves(keys, to);
    }
    top.quit();
}

#[test]
fn the_next_problem_is_shown() {
    let home = Home::with_jobs(&["a"]);
    home.run(["queue", "pause", "mail", "-q", "--reason", "smtp down"]).ok();
    home.run(["queue", "pause", "video", "-q", "--reason", "disk full"]).ok();
    let mut top = Top::start(&home, (120, 30), &[]);
    top.wait("(1 of ");
    top.press("!", "(2 of ");
    top.press("!!!!", "of ");
    top.quit();
}

/// Two attempts whose outputs differ in one line.
fn with_two_attempts() -> Home {
    let home = Home::new();
    let script = r#"for i in 1 2 3; do echo "row $i"; done; echo "attempt $QUEUECTL_ATTEMPT ran"; echo oops >&2; exit 3"#;
    home.run(["config", "set", "retry_delay", "0"]).ok();
    home.run(["enqueue", "-q", "--id", "twice", "--max-retries", "1", "-c", script]).ok();
    home.run(["worker", "run", "--until-empty"]).ok();
    home
}

#[test]
fn the_output_of_each_attempt_is_searched_and_compared() {
    let home = with_two_attempts();
    let mut top = Top::start(&home, (100, 30), &[]);
    top.press("/id:1\r", "no job matches");
    top.press("/\u{15}state:dead\r", "twice");
    top.press("l", "attempt 2 ran");
    for (keys, then) in [
        ("[", "attempt 1 ran"),
        ("]", "attempt 2 ran"),
        ("/row\r", "find row"),
        ("n", "no more lines with `row`"),
        ("N", "3 lines below"),
        ("N", "4 lines below"),
        ("n", "3 lines below"),
        ("G", "end"),
        (ESCAPE, "attempt 2 ran"),
        ("d", "-attempt 1 ran"),
    ] {
        let wanted = then.replace("-attempt", "- attempt");
        top.press(keys, &wanted);
    }
    top.wait("+ attempt 2 ran");
    top.press("d", "log · attempt 2 of 2");
    top.press("kk", "2 lines below");
    top.press("f", "end");
    top.quit();
}

#[test]
fn a_retry_by_a_person_starts_the_count_of_tries_anew() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "again", "--max-retries", "0", "-c", "exit 3"]).ok();
    home.run(["worker", "run", "--until-empty"]).ok();
    home.run(["retry", "again"]).ok();
    home.run(["worker", "run", "--until-empty"]).ok();
    let mut top = Top::start(&home, (140, 30), &[]);
    top.press("/state:dead\r", "try 1 of 1");
    assert!(!top.screen().contains("2/1"), "{}", top.screen());
    top.quit();
}

#[test]
fn long_lines_are_wrapped() {
    let home = with_output("seq -s, 1 80; exit 3");
    let mut top = Top::start(&home, (80, 24), &[]);
    top.moves("/state:dead\r", "printer");
    top.press("l", "1,2,3");
    assert!(!top.screen().contains(",79,80"), "{}", top.screen());
    top.press("w", ",79,80");
    top.quit();
}

/// A program that writes what it was given to a file, and ends.
fn tool(home: &Home, name: &str, script: &str) -> String {
    let path = home.file(name, format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it can be executed");
    path.to_str().expect("text").to_owned()
}

#[test]
fn a_job_is_edited_and_its_output_opened_in_a_pager() {
    let home = with_output("echo hello; exit 3");
    let editor = tool(&home, "editor", "sed -i 's/sleep 1/sleep 2/' \"$1\"");
    let received = home.folder().join("received");
    let pager = tool(&home, "pager", &format!("cat > '{}'", received.display()));
    let mut command = home.call(["top"]).interruptible().into_command();
    command.env("EDITOR", editor).env_remove("VISUAL").env("PAGER", pager);
    let terminal = Terminal::with_echo(command, 100, 30);
    let mut top = Top { terminal, columns: 100, rows: 30, from: 0 };
    top.wait("live");
    top.moves("/state:pending\r", "wait");
    top.press("e", "edit ended");
    assert_eq!(home.run(["show", "wait", "--json"]).ok().json()["command"], "sleep 2");
    top.moves("/\u{15}state:dead\r", "printer");
    // The list has `hello`, too: in the command.
    top.press("l", "attempt 1 of 1");
    top.press("|", "the pager ended");
    assert!(std::fs::read_to_string(received).expect("the pager ran").contains("hello"));
    top.quit();
}

#[test]
fn the_pager_is_a_line_for_a_shell_and_its_failure_is_its_own() {
    let home = with_output("echo hello; exit 3");
    let received = home.folder().join("received");
    for (pager, then) in [
        (format!("A=1 cat > '{}' || true", received.display()), "the pager ended"),
        ("exit 7".to_owned(), "the pager failed"),
    ] {
        let mut command = home.call(["top"]).interruptible().into_command();
        command.env("PAGER", pager);
        let terminal = Terminal::with_echo(command, 100, 30);
        let mut top = Top { terminal, columns: 100, rows: 30, from: 0 };
        top.wait("live");
        top.moves("/id:printer\r", "printer");
        top.press("l", "printer · log · attempt 1 of 1");
        top.press("|", then);
        top.quit();
    }
    assert!(std::fs::read_to_string(received).expect("the pager ran").contains("hello"));
}

#[test]
fn an_order_changes_only_the_jobs_that_it_shows() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["enqueue", "-q", "--id", "later", "--delay", "1h", "-c", "true"]).ok();
    let mut top = Top::start(&home, (100, 30), &[]);
    top.press("2", "3 jobs");
    top.press("sss", "all jobs, only scheduled");
    top.wait_until(|screen| is_chosen(screen, "later") && screen.contains("1 job ·"));
    top.press("C", "type 1 and Enter");
    top.press("1\r", "(queuectl cancel --state scheduled)");
    assert_eq!(home.run(["show", "later", "--json"]).ok().json()["state"], "cancelled");
    assert_eq!(home.run(["show", "a", "--json"]).ok().json()["state"], "pending");
    top.press("ss", "all jobs, only with a failed attempt");
    top.wait("0 jobs · last-failed");
    top.press("C", "s chooses another one");
    top.quit();
}

#[test]
fn a_filter_retries_and_removes_all_that_match() {
    let home = with_output("exit 3");
    let state = || home.run(["show", "printer", "--json"]);
    let mut top = Top::start(&home, (100, 30), &[]);
    top.press("3", "dead jobs by cause");
    top.wait("exit code 3");
    top.press("R", "type 1 and Enter");
    top.press("1\r", "retried");
    assert_eq!(state().ok().json()["state"], "pending");
    top.moves("/id:printer\r", "printer");
    top.press("C", "type 1 and Enter");
    top.press("1\r", "cancelled");
    top.press("D", "type 1 and Enter");
    top.press("1\r", "removed");
    state().fails(3);
    top.moves("/\u{15}id:wait\r", "wait");
    top.press("d", "remove job wait? y/n");
    top.press("n", "nothing was changed");
    top.quit();
}

#[test]
fn a_schedule_is_paused_and_a_limit_is_lowered() {
    let home = Home::with_jobs(&["a"]);
    home.run(["schedule", "add", "tick", "-q", "--every", "1h", "--", "true"]).ok();
    home.run(["queue", "set", "default", "-q", "--concurrency", "5"]).ok();
    let mut top = Top::start(&home, (100, 30), &[]);
    top.press("6", "tick");
    top.wait_until(|screen| is_chosen(screen, "tick"));
    top.press("p", "pause schedule tick? y/n");
    top.press("y", "queuectl schedule pause tick");
    top.wait_until(|screen| is_chosen(screen, "paused"));
    top.moves("4", "5 at once");
    top.press("-", "concurrency of queue default: 5 to 4?");
    top.press("y", "4 at once");
    top.quit();
}

#[test]
fn a_line_that_would_never_end_is_refused() {
    let home = with_output("exit 3");
    let mut top = Top::start(&home, (100, 30), &[]);
    for line in [":logs -f printer\r", ":worker run\r", ":top\r"] {
        top.press(line, "would not end by itself");
        top.press("z", "Overview");
    }
    // A command that runs when the user quits ends with it.
    top.press(":run -- sleep 600\r", "running run -- sleep 600; Esc ends it");
    top.quit();
}

#[test]
fn other_keys_work_while_a_line_runs() {
    let home = with_output("exit 3");
    let mut top = Top::start(&home, (100, 30), &[]);
    top.moves("/id:printer\r", "printer");
    top.press(":run -- sleep 600\r", "Esc ends it");
    top.press("w", "job printer is dead");
    top.press("q", "Esc ends it");
    top.press(":list\r", "another line still runs");
    top.press(ESCAPE, "Esc ends it");
    top.press("r", "retry job printer? y/n");
    top.press("y", "queuectl retry printer");
    assert_eq!(home.run(["show", "printer", "--json"]).ok().json()["state"], "pending");
    top.press(ESCAPE, "queuectl run -- sleep 600");
    top.press(ESCAPE, "r retry");
    top.quit();
}

#[test]
fn what_was_on_the_screen_is_there_again() {
    let home = Home::with_jobs(&["a"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "printf 'before\\n'; \"$0\" \"$@\"; printf 'after\\n'"]);
    command.arg(PROGRAM);
    let command = home.call(["top"]).through(command).into_command();
    let mut terminal = Terminal::with_echo(command, 80, 24);
    terminal.wait_until(|output| output.contains("live"));
    terminal.type_in("q");
    let run = terminal.end();
    let screen = emulate(run.screen.replace('\n', "\r\n").as_bytes(), 80, 24);
    assert_eq!(screen.trim_end(), "before\nafter", "{screen}");
}

//! Screens of 80 columns: what matters most stays readable.

use super::harness::Home;
use super::harness::pseudo_terminal::on_terminal;

fn screen(home: &Home, columns: u16, args: &[&str]) -> Vec<String> {
    let call = home.call([&["--color", "never"], args].concat());
    let seen = on_terminal(call.into_command(), columns, "");
    assert_eq!(seen.code, Some(0), "{}", seen.screen);
    seen.screen.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn show_continues_a_long_command_between_its_words() {
    let home = Home::new();
    let mut call = vec!["enqueue", "-q", "--id", "a", "--"];
    call.extend(["convert"; 12]);
    home.run(call).ok();
    let lines = screen(&home, 80, &["show", "a"]);
    assert_eq!(lines[1], format!("  command       {}", ["convert"; 8].join(" ")));
    assert_eq!(lines[2], format!("{:16}{}", "", ["convert"; 4].join(" ")));
    home.run(["show", "a"]).ok().shows(&["convert"; 12].join(" "));
}

#[test]
fn show_prefers_errors_to_workers() {
    let home = Home::new();
    let error = "exit code 1: cannot connect to the database";
    home.dead_job("a", error);
    for (columns, has_workers) in [(80, false), (120, true)] {
        let lines = screen(&home, columns, &["show", "a"]);
        let heading = lines.iter().position(|line| line.starts_with("ATTEMPT")).expect("a heading");
        assert_eq!(lines[heading].contains("WORKER"), has_workers, "{lines:#?}");
        assert!(lines[heading + 1].ends_with(error), "{lines:#?}");
        assert!(!lines[heading + 1].contains(" ago)"), "{lines:#?}");
    }
}

#[test]
fn queue_list_shows_notes_below_the_queue_if_they_do_not_fit() {
    let home = Home::with_jobs(&["a"]);
    let reason = "the provider has an outage until Monday morning";
    home.run(["queue", "pause", "-q", "mail", "--reason", reason]).ok();
    let lines = screen(&home, 80, &["queue", "list"]);
    assert_eq!(words(&lines[0]), ["QUEUE", "RUNNING", "PENDING", "COMPLETED", "DEAD"]);
    assert_eq!(words(&lines[1]), ["default", "0", "1", "0", "0"]);
    assert_eq!(words(&lines[2]), ["mail", "0", "0", "0", "0"]);
    assert!(lines[3].starts_with("    paused ") && lines[3].ends_with(&format!("({reason})")), "{lines:#?}");
    home.run(["queue", "set", "-q", "mail", "--rate", "10/m"]).ok();
    home.run(["cancel", "-q", "a"]).ok();
    let lines = screen(&home, 160, &["queue", "list"]);
    let heading = ["QUEUE", "RUNNING", "RATE", "PENDING", "COMPLETED", "DEAD", "CANCELLED", "NOTES"];
    assert_eq!(words(&lines[0]), heading);
    assert!(lines[2].ends_with(&format!("({reason})")), "{lines:#?}");
}

#[test]
fn schedule_list_shows_times_whole() {
    let home = Home::new();
    let command = ["make"; 20].join(" ");
    home.run(["schedule", "add", "-q", "a", "--at", "2090-01-01T03:00:00Z", "-c", &command]).ok();
    home.run(["schedule", "add", "-q", "b", "--every", "1h", "-c", "true"]).ok();
    home.run(["schedule", "pause", "-q", "b", "--reason", "because the disk of the backup is full"]).ok();
    let lines = screen(&home, 80, &["schedule", "list"]);
    assert_eq!(lines[1].matches("2090-01-01 ").count(), 2, "{lines:#?}");
    assert!(lines[1].contains('…') && lines[1].ends_with("make"), "{lines:#?}");
    assert!(lines[2].contains("  paused  "), "{lines:#?}");
    let lines = screen(&home, 250, &["schedule", "list"]);
    assert!(lines[1].contains(" (in ") && lines[2].contains("is full)"), "{lines:#?}");
}

#[test]
fn config_list_shows_what_was_changed() {
    let home = Home::new();
    home.run(["config", "set", "-q", "max-retries", "5"]).ok();
    let lines = screen(&home, 80, &["config", "list"]);
    assert!(lines[1].contains("  5 (default 3)  "), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.contains("(default ")).count(), 1, "{lines:#?}");
}

#[test]
fn config_list_explains_every_setting_in_full() {
    let home = Home::new();
    home.run(["config", "set", "-q", "retry_delay", "200ms"]).ok();
    let lines = screen(&home, 80, &["config", "list"]);
    assert!(lines.len() > 20 && lines.iter().all(|line| !line.contains('…')), "{lines:#?}");
}

#[test]
fn dlq_list_prefers_errors_to_commands() {
    let home = Home::new();
    let error = "cannot connect to the database at 10.0.0.7:5432";
    home.dead_job("a", &format!("exit code 1: {error}"));
    home.run(["edit", "-q", "a", "--command", &["convert"; 20].join(" ")]).ok();
    for columns in [100, 120] {
        let lines = screen(&home, columns, &["dlq", "list"]);
        assert!(lines[1].ends_with(error) && lines[1].contains("convert"), "{lines:#?}");
    }
}

#[test]
fn graph_shows_the_commands_of_the_jobs() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--", "make", "all"]).ok();
    home.run(["enqueue", "-q", "--depends-on", "1", "-c", &["install"; 20].join(" ")]).ok();
    let lines = screen(&home, 80, &["graph", "1"]);
    assert_eq!(lines[..2], ["1  pending  make all", "needed by"]);
    assert!(lines[2].starts_with("└── 2  pending  install "), "{lines:#?}");
    assert!(lines[2].contains('…') && lines[2].ends_with(" install"), "{lines:#?}");
    assert_eq!(lines[2].chars().count(), 80);
    home.run(["graph", "1"]).ok().shows("  pending\n").shows_no("make");
}

#[test]
fn hints_are_broken_between_words_and_keep_commands_whole() {
    let home = Home::new();
    let lines = screen(&home, 80, &["enqueue", "true"]);
    let hint = [
        "hint: no worker is running; start one with `queuectl worker start`, or let every",
        "      enqueue do it with `queuectl config set autostart on`",
    ];
    assert_eq!(lines[1..], hint);
    let lines = screen(&home, 60, &["status"]);
    let problem = ["! 1 job waits, but no worker is running; start one with", "  `queuectl worker start`"];
    assert_eq!(lines[lines.len() - 2..], problem);
    let json = home.call(["--color", "never", "enqueue", "{command:make}"]);
    let seen = on_terminal(json.into_command(), 80, "");
    assert!(seen.screen.lines().count() > 2, "{}", seen.screen);
    assert!(seen.screen.lines().all(|line| line.chars().count() <= 80), "{}", seen.screen);
}

#[test]
fn people_see_the_numbers_of_the_jobs_that_a_job_waits_for() {
    let home = Home::new();
    let id = home.run(["enqueue", "--", "make"]).ok().stdout.trim().to_owned();
    home.run(["enqueue", "-q", "--id", "mine", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--depends-on", "1,mine", "--", "true"]).ok();
    let lines = screen(&home, 80, &["show", "3"]);
    assert!(lines.contains(&"  depends on    1, mine".to_owned()), "{lines:#?}");
    let lines = screen(&home, 80, &["explain", "3"]);
    assert_eq!(lines[1], "- it waits for 2 other jobs: 1 (pending), mine (pending)");
    home.run(["show", "3"]).ok().shows(&id);
}

#[test]
fn events_of_jobs_are_in_order_and_show_retries_in_local_time() {
    let home = Home::new();
    home.run(["config", "set", "-q", "retry_delay", "1ms"]).ok();
    home.run(["config", "set", "-q", "max_retries", "1"]).ok();
    home.run(["enqueue", "-q", r#"[{"id":"a","command":"exit 1"},{"id":"b","command":"exit 0"}]"#]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let lines = screen(&home, 160, &["events", "--jobs"]);
    let place = |text: &str| lines.iter().position(|line| line.contains(text)).expect("an event");
    assert!(place("job a  exit 1") < place("job b  exit 0"), "{lines:#?}");
    let retry = &lines[place("retry at ")];
    let at = retry.rsplit(' ').next().expect("a time");
    assert!(at.len() == "09:30:00".len() && !at.contains('Z'), "{retry}");
    home.run(["events", "--jobs"]).ok().shows("Z\n");
}

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
    assert!(lines[2].starts_with("└── 2  pending  install ") && lines[2].ends_with('…'), "{lines:#?}");
    assert_eq!(lines[2].chars().count(), 80);
    home.run(["graph", "1"]).ok().shows("  pending\n").shows_no("make");
}

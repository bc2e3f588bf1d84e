//! The journal in its own folder, with times chosen by the test.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::{Arc, Mutex};

use crate::journal::lines::*;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("tempdir"))
    }

    fn journal(&self, who: &str) -> Lines {
        Lines::open(self.0.path(), who, false)
    }

    /// A journal whose files are full after `max_bytes`.
    fn small_journal(&self, who: &str, max_bytes: u64) -> Lines {
        let mut journal = self.journal(who);
        journal.file.max_bytes = max_bytes;
        journal
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.0.path()).expect("the home");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn noon(day: &str) -> Timestamp {
    at(&format!("{day}T12:00:00Z"))
}

fn write_line(journal: &mut Lines, now: Timestamp, text: &str) {
    journal.note(now, format_args!("{text}"));
    journal.flush();
}

#[test]
fn a_line_has_its_time_its_writer_and_its_text() {
    let home = Home::new();
    let mut journal = home.journal("w1");
    journal.note(at("2026-01-31T09:30:00.5Z"), format_args!("start"));
    assert!(home.names().is_empty(), "nothing is written before the flush");
    journal.flush();
    assert_eq!(home.read("worker.log"), "2026-01-31T09:30:00.500Z w1 start\n");
    let mode = home.path("worker.log").metadata().expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn text_with_control_characters_is_escaped() {
    let home = Home::new();
    let mut journal = home.journal("w1");
    write_line(&mut journal, noon("2026-01-31"), "a\nb\u{1b}[2J\u{202e}c");
    assert_eq!(home.read("worker.log"), "2026-01-31T12:00:00.000Z w1 a\\nb\\u{1b}[2J\\u{202e}c\n");
}

#[test]
fn a_long_line_is_truncated() {
    let home = Home::new();
    let mut journal = home.journal("w1");
    write_line(&mut journal, noon("2026-01-31"), &"ä".repeat(100_000));
    let text = home.read("worker.log");
    assert!(text.ends_with("ä…\n"), "{}", text.len());
    assert!((MAX_LINE_BYTES - 1..MAX_LINE_BYTES + 5).contains(&text.len()), "{}", text.len());
}

#[test]
fn a_new_day_starts_a_new_file() {
    let home = Home::new();
    let mut journal = home.journal("w1");
    write_line(&mut journal, at("2026-01-30T23:59:59.999Z"), "late");
    write_line(&mut journal, at("2026-01-31T00:00:00Z"), "early");
    write_line(&mut journal, at("2026-01-31T12:00:00Z"), "noon");
    // A clock that is set back does not start a new file.
    write_line(&mut journal, at("2026-01-29T12:00:00Z"), "back");
    assert_eq!(home.read("worker.log.2026-01-30"), "2026-01-30T23:59:59.999Z w1 late\n");
    assert_eq!(home.read("worker.log").lines().count(), 3);
    assert_eq!(home.names().len(), 2);
}

#[test]
fn a_file_of_an_earlier_day_is_rotated_by_the_next_process() {
    let home = Home::new();
    write_line(&mut home.journal("w1"), noon("2026-01-28"), "old");
    let mut idle = home.journal("w2");
    idle.flush();
    assert_eq!(home.names().len(), 1, "a flush without lines does nothing");
    write_line(&mut idle, noon("2026-01-31"), "new");
    assert!(home.read("worker.log.2026-01-28").ends_with("w1 old\n"));
    assert!(home.read("worker.log").ends_with("w2 new\n"));
}

#[test]
fn a_file_that_is_full_is_rotated_and_numbered() {
    let home = Home::new();
    let mut journal = home.small_journal("w1", 60);
    for text in ["one", "two", "three", "four", "five"] {
        write_line(&mut journal, noon("2026-01-31"), text);
    }
    let in_order =
        ["worker.log.2026-01-31", "worker.log.2026-01-31.1", "worker.log"].map(|name| home.read(name));
    let texts: Vec<&str> = in_order.iter().flat_map(|text| text.lines()).collect();
    assert_eq!(
        texts.iter().map(|line| &line[28..]).collect::<Vec<_>>(),
        ["one", "two", "three", "four", "five"]
    );
    assert_eq!(home.names().len(), 3);
}

#[test]
fn old_files_are_deleted_and_other_files_are_not() {
    let home = Home::new();
    let old = ["worker.log.2025-12-31", "worker.log.2025-12-31.7", "worker.log.2020-02-29"];
    let kept = [
        "worker.log.2026-01-01",
        "worker.log.2026-01-29.3",
        "worker.log.2020-01-01.gz",
        "worker.log.2020-1-1",
        "worker.log.2020-01-01.0",
        "worker.log.2020-01-01.01",
        "worker.log.old",
        "other.log.2020-01-01",
    ];
    for name in old.iter().chain(&kept) {
        fs::write(home.path(name), "").expect("file");
    }
    let mut journal = home.journal("w1");
    write_line(&mut journal, noon("2026-01-30"), "yesterday");
    write_line(&mut journal, noon("2026-01-31"), "today");
    let expected =
        kept.into_iter().chain(["worker.log", "worker.log.2026-01-30"]).map(str::to_owned).collect();
    assert_eq!(home.names(), expected);
}

#[test]
fn only_the_newest_files_are_kept() {
    let home = Home::new();
    let mut journal = home.small_journal("w1", 1);
    for number in 0..70 {
        write_line(&mut journal, noon("2026-01-31"), &format!("line {number}"));
    }
    // The last line is in the current file, and the 64 before it are in rotated files.
    assert_eq!(home.names().len(), 65);
    assert!(home.read("worker.log").ends_with("line 69\n"));
    assert!(home.read("worker.log.2026-01-31.68").ends_with("line 68\n"));
    assert!(home.read("worker.log.2026-01-31.5").ends_with("line 5\n"));
    assert!(!home.names().contains("worker.log.2026-01-31.4"));
}

#[test]
fn concurrent_writers_that_rotate_lose_no_line() {
    const WRITERS: usize = 4;
    const LINES: usize = 300;
    let home = Home::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let home = &home;
            scope.spawn(move || {
                // At most 40 files, so that none is deleted.
                let mut journal = home.small_journal(&format!("w{writer}"), 1_200);
                for line in 0..LINES {
                    let day = if line < LINES / 2 { "2026-01-30" } else { "2026-01-31" };
                    write_line(&mut journal, noon(day), &format!("line {line}"));
                }
            });
        }
    });
    let names = home.names();
    let mut seen = BTreeSet::new();
    for name in &names {
        for line in home.read(name).lines() {
            assert!(seen.insert(line[25..].to_owned()), "{line} appears twice");
        }
    }
    assert_eq!(seen.len(), WRITERS * LINES);
    assert!(names.len() > 10, "{names:?}");
}

#[test]
fn a_writer_switches_to_a_new_file_at_the_path() {
    let home = Home::new();
    let mut journal = home.journal("w1");
    write_line(&mut journal, noon("2026-01-31"), "one");
    fs::rename(home.path("worker.log"), home.path("taken-away")).expect("rename");
    write_line(&mut journal, noon("2026-01-31"), "two");
    assert!(home.read("taken-away").ends_with("one\n"));
    assert!(home.read("worker.log").ends_with("two\n"));
    fs::remove_file(home.path("worker.log")).expect("remove");
    write_line(&mut journal, noon("2026-01-31"), "three");
    assert!(home.read("worker.log").ends_with("three\n"));
}

#[test]
fn a_file_of_another_program_is_appended_to() {
    let home = Home::new();
    fs::write(home.path("worker.log"), "a line without a time\n").expect("file");
    let mut journal = home.journal("w1");
    write_line(&mut journal, noon("2026-01-30"), "one");
    assert_eq!(home.read("worker.log").lines().count(), 2);
    write_line(&mut journal, noon("2026-01-31"), "two");
    assert_eq!(home.read("worker.log.2026-01-30").lines().count(), 2);
}

#[test]
fn lines_are_written_late_after_the_disk_was_full() {
    let home = Home::new();
    symlink("/dev/full", home.path("worker.log")).expect("link");
    let mut journal = home.journal("w1");
    write_line(&mut journal, noon("2026-01-31"), "one");
    write_line(&mut journal, noon("2026-01-31"), "two");
    fs::remove_file(home.path("worker.log")).expect("remove");
    write_line(&mut journal, noon("2026-01-31"), "three");
    let text = home.read("worker.log");
    assert_eq!(text.lines().map(|line| &line[28..]).collect::<Vec<_>>(), ["one", "two", "three"]);
}

#[test]
fn a_deleted_home_is_not_created_again() {
    let parent = Home::new();
    let home = parent.path("home");
    let mut journal = Lines::open(&home, "w1", false);
    write_line(&mut journal, noon("2026-01-31"), "too early");
    fs::create_dir(&home).expect("home");
    write_line(&mut journal, noon("2026-01-31"), "one");
    fs::remove_dir_all(&home).expect("remove");
    write_line(&mut journal, noon("2026-01-31"), "two");
    assert!(!home.exists());
    fs::create_dir(&home).expect("home");
    journal.flush();
    assert!(parent.read("home/worker.log").ends_with(" two\n"));
}

#[test]
fn lines_beyond_the_limit_are_dropped_and_counted() {
    let parent = Home::new();
    let home = parent.path("home");
    let mut journal = Lines::open(&home, "w1", false);
    let text = "x".repeat(1_000);
    for _ in 0..2_000 {
        write_line(&mut journal, noon("2026-01-31"), &text);
    }
    assert!(journal.pending.len() <= MAX_BUFFER_BYTES);
    fs::create_dir(&home).expect("home");
    journal.flush();
    let written = parent.read("home/worker.log");
    let kept = written.lines().count() - 1;
    assert!(written.ends_with(&format!(" w1 … {} lines dropped\n", 2_000 - kept)));
    assert!(written.len() > MAX_BUFFER_BYTES - 2_000);
    write_line(&mut journal, noon("2026-01-31"), "after");
    assert!(parent.read("home/worker.log").ends_with(" w1 after\n"), "the count is written once");
}

#[test]
fn a_rotation_that_fails_keeps_the_file_in_use() {
    let home = Home::new();
    let mut journal = home.journal("w1");
    write_line(&mut journal, noon("2026-01-30"), "one");
    // A non-empty folder cannot be replaced by a file.
    fs::create_dir_all(home.path("worker.log.2026-01-30/x")).expect("folder");
    fs::create_dir_all(home.path(&format!("worker.log.2026-01-30.{}/x", u32::MAX))).expect("folder");
    write_line(&mut journal, noon("2026-01-31"), "two");
    assert_eq!(home.read("worker.log").lines().count(), 2);
}

#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_are_echoed_once_even_if_the_file_cannot_be_written() {
    let home = Home::new();
    let screen = Screen::default();
    let file = JournalFile::new(home.path("not-yet/worker.log"));
    let mut journal =
        Lines::new(file, "w1", Some(Echo::new(Box::new(screen.clone()), false, TimeFormat::Full)));
    write_line(&mut journal, noon("2026-01-31"), "one");
    write_line(&mut journal, noon("2026-01-31"), "two");
    fs::create_dir(home.path("not-yet")).expect("folder");
    write_line(&mut journal, noon("2026-01-31"), "three");
    let shown = String::from_utf8(screen.0.lock().expect("not poisoned").clone()).expect("UTF-8");
    assert_eq!(shown.lines().map(|line| &line[28..]).collect::<Vec<_>>(), ["one", "two", "three"]);
    assert_eq!(home.read("not-yet/worker.log"), shown);
}

#[test]
fn people_read_short_times_and_numbers_and_the_file_has_the_whole_line() {
    let home = Home::new();
    let screen = Screen::default();
    let echo = Echo::new(Box::new(screen.clone()), true, TimeFormat::default());
    let mut journal = Lines::new(JournalFile::new(home.path("worker.log")), "w1", Some(echo));
    let id: JobId = "0123456789abcdefgh".parse().expect("an id");
    journal.name_by_number(&id, 7);
    write_line(&mut journal, noon("2026-01-31"), &format!("start {id} attempt 1: echo {id}"));
    journal.forget_number(&id);
    write_line(&mut journal, noon("2026-01-31"), &format!("worker x dead; it held {id}"));
    let shown = String::from_utf8(screen.0.lock().expect("not poisoned").clone()).expect("UTF-8");
    let texts: Vec<&str> = shown.lines().map(|line| line.split_once(' ').expect("a time").1).collect();
    assert_eq!(texts, [format!("start 7 attempt 1: echo {id}"), format!("worker x dead; it held {id}")]);
    assert!(home.read("worker.log").contains(&format!(" w1 start {id} attempt 1: echo {id}\n")));
}

#[test]
fn the_buffer_shrinks_after_a_burst() {
    let home = Home::new();
    let mut journal = home.journal("w1");
    for _ in 0..1_000 {
        journal.note(noon("2026-01-31"), format_args!("{:>500}", "x"));
    }
    journal.flush();
    assert!(journal.pending.capacity() <= IDLE_BUFFER_BYTES);
}

//! Starts and ends of attempts, read from the journal: the latest ones, and then new ones as they are written.
//!
//! The journal is a file that all workers of a home write. Reading it costs the workers nothing, but it knows only the
//! attempts of this home.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::JOURNAL;
use super::file::JournalFile;
use domain::job::life::StateName;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use sys::fs::owner_only;

/// How much is read at once.
const BLOCK_BYTES: u64 = 256 << 10;
/// How much is read at most to find the latest attempts.
const MAX_READ_BYTES: u64 = 32 << 20;

/// The start or the end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEvent {
    pub at: Timestamp,
    pub worker: String,
    pub job: JobId,
    pub attempt: u32,
    pub change: AttemptChange,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptChange {
    Started {
        command: String,
    },
    /// `state` is that of the job after the attempt; `None` if the attempt no longer counted.
    Ended {
        state: Option<StateName>,
        /// How it ended, how long it took, and what follows.
        result: String,
    },
}

/// Selects events.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttemptFilter<'a> {
    pub job: Option<&'a JobId>,
    pub since: Option<Timestamp>,
}

impl AttemptFilter<'_> {
    fn has(&self, event: &AttemptEvent) -> bool {
        self.job.is_none_or(|job| *job == event.job)
    }
}

/// The journal of a home, read from a position on.
#[derive(Debug)]
pub struct AttemptJournal {
    path: PathBuf,
    file: Option<File>,
    /// The offset after the last whole line that was read.
    at: u64,
}

impl AttemptJournal {
    /// Positioned at the end: [`Self::latest`] reads what is before it, [`Self::poll`] what is written after it.
    pub fn open(home: &Path) -> io::Result<Self> {
        let path = home.join(JOURNAL);
        let file = owner_only::open_regular(&path)?;
        let mut journal = Self { path, file, at: 0 };
        if let Some(file) = &journal.file {
            journal.at = end_of_last_line(file)?;
        }
        Ok(journal)
    }

    /// The latest events before the position, at most `limit`, oldest first; and whether older ones were not searched
    /// although they may match.
    pub fn latest(&self, filter: AttemptFilter<'_>, limit: usize) -> io::Result<(Vec<AttemptEvent>, bool)> {
        let mut search =
            Search { filter, limit, found: Vec::new(), budget: MAX_READ_BYTES, is_over: limit == 0 };
        if let Some(file) = &self.file {
            search.read_backwards(file, self.at)?;
        }
        for path in JournalFile::new(self.path.clone()).rotated_paths()? {
            if search.is_over || search.budget == 0 {
                break;
            }
            if let Some(file) = owner_only::open_regular(&path)? {
                let end = file.metadata()?.len();
                search.read_backwards(&file, end)?;
            }
        }
        search.found.reverse();
        Ok((search.found, !search.is_over && search.budget == 0))
    }

    /// New events, at most one block of lines.
    pub fn poll(&mut self, filter: AttemptFilter<'_>) -> io::Result<Vec<AttemptEvent>> {
        let mut events = Vec::new();
        if let Some(file) = &self.file {
            let mut block = vec![0; usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX)];
            let read = file.read_at(&mut block, self.at)?;
            let lines =
                block[..read].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            self.at += lines as u64;
            events.extend(parse_lines(&block[..lines]).filter(|event| filter.has(event)));
            if lines > 0 || owner_only::is_at(file, &self.path).unwrap_or(true) {
                return Ok(events);
            }
        }
        // It did not exist, or it was rotated and read to its end.
        self.file = owner_only::open_regular(&self.path)?;
        self.at = 0;
        Ok(events)
    }
}

struct Search<'a> {
    filter: AttemptFilter<'a>,
    limit: usize,
    /// The newest first.
    found: Vec<AttemptEvent>,
    budget: u64,
    is_over: bool,
}

impl Search<'_> {
    /// Reads the lines before `end`, the last first, until the search or its budget is over.
    fn read_backwards(&mut self, file: &File, mut end: u64) -> io::Result<()> {
        // The end of a line whose beginning is in the block before.
        let mut rest = Vec::new();
        while end > 0 && self.budget > 0 && !self.is_over {
            let length = BLOCK_BYTES.min(end).min(self.budget);
            self.budget -= length;
            end -= length;
            let mut block = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut block, end)?;
            block.append(&mut rest);
            let first = if end == 0 {
                Some(0)
            } else {
                block.iter().position(|byte| *byte == b'\n').map(|at| at + 1)
            };
            let first = first.unwrap_or(block.len());
            rest = block[..first].to_vec();
            self.add(&block[first..]);
        }
        Ok(())
    }

    fn add(&mut self, lines: &[u8]) {
        let events: Vec<AttemptEvent> = parse_lines(lines).collect();
        for event in events.into_iter().rev() {
            if self.filter.since.is_some_and(|since| event.at < since) {
                self.is_over = true;
                return;
            }
            if self.filter.has(&event) {
                self.found.push(event);
            }
            if self.found.len() == self.limit {
                self.is_over = true;
                return;
            }
        }
    }
}

fn end_of_last_line(file: &File) -> io::Result<u64> {
    let size = file.metadata()?.len();
    let start = size.saturating_sub(BLOCK_BYTES);
    let mut block = vec![0; usize::try_from(size - start).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut block, start)?;
    Ok(block.iter().rposition(|byte| *byte == b'\n').map_or(start, |newline| start + newline as u64 + 1))
}

fn parse_lines(lines: &[u8]) -> impl Iterator<Item = AttemptEvent> {
    lines.split(|byte| *byte == b'\n').filter_map(|line| parse_line(str::from_utf8(line).ok()?))
}

/// Reads a line as [`super::Journal::started`] and [`super::Journal::ended`] write it: `TIME WORKER start JOB attempt N:
/// COMMAND`. Other lines are skipped.
fn parse_line(line: &str) -> Option<AttemptEvent> {
    let mut words = line.splitn(6, ' ');
    let (at, worker, verb) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    let (job, attempt, rest) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    let (number, rest) = rest.split_once(": ").filter(|_| attempt == "attempt")?;
    let change = match verb {
        "start" => AttemptChange::Started { command: rest.to_owned() },
        "end" => AttemptChange::Ended { state: state_after(rest), result: rest.to_owned() },
        _ => return None,
    };
    Some(AttemptEvent { at, worker: worker.to_owned(), job, attempt: number.parse().ok()?, change })
}

/// The state of the job after `exit code 1: no such file (34ms), retry at …`: what follows the duration says it. A
/// message may contain anything, but it is before the duration.
fn state_after(result: &str) -> Option<StateName> {
    let (how, rest) = result.rsplit_once(" (")?;
    let follows = rest.split_once(')')?.1.trim_start_matches(", ");
    let first = follows.split([' ', ':']).next().unwrap_or_default();
    match first {
        "" => StateName::from_name(how.rsplit(' ').next()?).filter(|state| state.is_finished()),
        "retry" => Some(StateName::Failed),
        "pending" => Some(StateName::Pending),
        "not" => None,
        other => StateName::from_name(other),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn line(second: u32, text: &str) -> String {
        format!("2026-01-31T09:{:02}:{:02}.000Z w1 {text}\n", second / 60, second % 60)
    }

    fn ids(events: &[AttemptEvent]) -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event.job, event.attempt)).collect()
    }

    #[test]
    fn the_lines_of_attempts_are_read_and_others_are_skipped() {
        let state = |result: &str| {
            let event =
                parse_line(line(0, &format!("end a attempt 2: {result}")).trim_end()).expect("an event");
            match event.change {
                AttemptChange::Ended { state, result: read } => (state, read == result),
                AttemptChange::Started { .. } => panic!("it ended"),
            }
        };
        for (result, expected) in [
            ("completed (1.2s)", Some(StateName::Completed)),
            ("exit code 1: no (34ms), retry at 2026-01-31T09:30:00.000Z", Some(StateName::Failed)),
            ("exit code 1: (1s), completed (3m20s), dead: retries exhausted", Some(StateName::Dead)),
            ("its worker died (7ms), pending again", Some(StateName::Pending)),
            ("cancelled (59.9s)", Some(StateName::Cancelled)),
            ("exit code 1 (1.0s), cancelled", Some(StateName::Cancelled)),
            ("timed out (1m), not recording: its lease was lost", None),
        ] {
            assert_eq!(state(result), (expected, true), "{result}");
        }
        let event =
            parse_line(line(0, "start a attempt 3: echo end b attempt 1: x").trim_end()).expect("an event");
        assert_eq!((event.job.as_str(), event.attempt, event.worker.as_str()), ("a", 3, "w1"));
        assert_eq!(event.change, AttemptChange::Started { command: "echo end b attempt 1: x".to_owned() });
        for other in
            ["worker started: pid 7, 1 slot", "start a/b attempt 1: x", "start a attempt x: y", "end a", ""]
        {
            assert_eq!(parse_line(line(0, other).trim_end()), None, "{other}");
        }
    }

    #[test]
    fn the_latest_events_are_found_from_the_end_across_rotated_files() {
        let home = tempfile::tempdir().expect("a folder");
        let journal = |name: &str, from: u32, count: u32| {
            let lines: String =
                (from..from + count).map(|at| line(at, &format!("start j{at} attempt 1: x"))).collect();
            fs::write(home.path().join(name), lines).expect("written");
        };
        journal("worker.log.2026-01-30", 0, 10);
        journal("worker.log.2026-01-30.1", 10, 10);
        journal("worker.log", 20, 10);
        let open = AttemptJournal::open(home.path()).expect("it opens");
        let latest = |filter: AttemptFilter<'_>, limit| ids(&open.latest(filter, limit).expect("read").0);
        assert_eq!(latest(AttemptFilter::default(), 2), ["j28 1", "j29 1"]);
        assert_eq!(latest(AttemptFilter::default(), 25).first().map(String::as_str), Some("j5 1"));
        assert_eq!(latest(AttemptFilter::default(), 100).len(), 30);
        assert_eq!(latest(AttemptFilter::default(), 0), [""; 0]);
        let job: JobId = "j12".parse().expect("an id");
        assert_eq!(latest(AttemptFilter { job: Some(&job), since: None }, 5), ["j12 1"]);
        let since = Some("2026-01-31T09:00:28Z".parse().expect("a time"));
        assert_eq!(latest(AttemptFilter { job: None, since }, 5), ["j28 1", "j29 1"]);
    }

    #[test]
    fn new_lines_are_followed_through_a_rotation() {
        let home = tempfile::tempdir().expect("a folder");
        let mut journal = AttemptJournal::open(home.path()).expect("a missing journal is empty");
        let mut poll = || ids(&journal.poll(AttemptFilter::default()).expect("read"));
        assert_eq!(poll(), [""; 0]);
        let path = home.path().join(JOURNAL);
        let append = |text: &str| {
            let mut file = owner_only::open_to_append(&path).expect("it opens");
            file.write_all(text.as_bytes()).expect("written");
        };
        let (first, second) = (line(1, "start a attempt 1: x"), line(2, "end a attempt 1: completed (1.0s)"));
        append(&first);
        append(&second[..10]);
        assert_eq!([poll(), poll()].concat(), ["a 1"]);
        append(&second[10..]);
        assert_eq!(poll(), ["a 1"]);
        append(&line(3, "start b attempt 1: x"));
        fs::rename(&path, home.path().join("worker.log.2026-01-31")).expect("rotated");
        append(&line(4, "start c attempt 1: x"));
        assert_eq!([poll(), poll(), poll()].concat(), ["b 1", "c 1"]);
    }
}

//! The ledger: a file to which only the commands of a trial write, when they start, at intervals, and when they end.
//!
//! ```text
//!   START 81234567 j7 2 a 4711 9f3c… w-01abc    when, job, attempt, host, pid, nonce, worker
//!   TICK  81254567 j7 2 a 4711 9f3c… daemon     … which process is alive
//!   END   81274567 j7 2 a 4711 9f3c… exit:3     … how it is about to end
//! ```
//!
//! Each line is one write to a file opened for appending, so lines of concurrent processes are neither mixed nor reordered.
//! Times are microseconds of a clock that neither jumps nor counts suspended time.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::ProofError;
use super::actor::AttemptRef;
use domain::job::outcome::Outcome;
use domain::values::signal::Signal;
use sys::clock::since_boot;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The time since the machine booted.
    pub at: Duration,
    pub job: String,
    pub attempt: u32,
    /// The host on which it runs.
    pub host: String,
    pub pid: u32,
    /// Chosen at random by the command: no two runs have the same one.
    pub nonce: String,
    pub event: LedgerEvent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerEvent {
    Start { worker: String },
    Tick { who: String },
    End { how: CommandEnd },
}

/// How a command ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    Exit(i32),
    Signal(Signal),
}

impl CommandEnd {
    /// The outcome that queuectl must record.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Exit(0) => Outcome::Success,
            Self::Exit(exit_code) => Outcome::Failure { exit_code },
            Self::Signal(signal) => Outcome::Signal { signal },
        }
    }
}

impl fmt::Display for CommandEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(out, "exit:{code}"),
            Self::Signal(signal) => write!(out, "signal:{}", signal.number()),
        }
    }
}

impl FromStr for CommandEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |number: &str| number.parse().ok();
        let how = match text.split_once(':') {
            Some(("exit", code)) => number(code).map(Self::Exit),
            Some(("signal", signal)) => number(signal).and_then(Signal::from_number).map(Self::Signal),
            Some(_) | None => None,
        };
        how.ok_or_else(|| format!("not a valid ending: `{text}` (use exit:3 or signal:15)"))
    }
}

/// The name in the ticks of the command itself.
pub const COMMAND: &str = "command";

impl Line {
    /// Whether the command itself wrote the line, not one of its escapees.
    pub fn is_by_command(&self) -> bool {
        match &self.event {
            LedgerEvent::Start { .. } | LedgerEvent::End { .. } => true,
            LedgerEvent::Tick { who } => who == COMMAND,
        }
    }
}

/// Writes the lines of one run of a command.
#[derive(Clone, Debug)]
pub struct Writer {
    path: PathBuf,
    who: AttemptRef,
    nonce: String,
}

impl Writer {
    pub fn new(path: &Path, who: &AttemptRef, nonce: &str) -> Self {
        Self { path: path.to_owned(), who: who.clone(), nonce: nonce.to_owned() }
    }

    pub fn write(&self, event: LedgerEvent) -> io::Result<()> {
        let line = Line {
            at: since_boot(),
            job: self.who.job.clone(),
            attempt: self.who.attempt,
            host: self.who.host.clone(),
            pid: std::process::id(),
            nonce: self.nonce.clone(),
            event,
        };
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        // A process killed in the middle of a line must not corrupt the next line.
        file.write_all(format!("\n{line}\n").as_bytes())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, last) = match &self.event {
            LedgerEvent::Start { worker } => ("START", worker.clone()),
            LedgerEvent::Tick { who } => ("TICK", who.clone()),
            LedgerEvent::End { how } => ("END", how.to_string()),
        };
        let Self { at, job, attempt, host, pid, nonce, event: _ } = self;
        write!(out, "{word} {} {job} {attempt} {host} {pid} {nonce} {last}", at.as_micros())
    }
}

/// Reads the lines written so far.
pub fn read(path: &Path) -> Result<Vec<Line>, ProofError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|source| ProofError::CannotRead { path: path.to_owned(), source })?,
    };
    // The last line may be incomplete, and so may any line whose writer was killed.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    Ok(whole.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let [word, at, job, attempt, host, pid, nonce, last] = words[..] else {
        return None;
    };
    let event = match word {
        "START" => LedgerEvent::Start { worker: last.to_owned() },
        "TICK" => LedgerEvent::Tick { who: last.to_owned() },
        "END" => LedgerEvent::End { how: last.parse().ok()? },
        _ => return None,
    };
    Some(Line {
        at: Duration::from_micros(at.parse().ok()?),
        job: job.to_owned(),
        attempt: attempt.parse().ok()?,
        host: host.to_owned(),
        pid: pid.parse().ok()?,
        nonce: nonce.to_owned(),
        event,
    })
}

/// How many hexadecimal digits a nonce has.
pub const NONCE_LENGTH: usize = 16;

/// A random nonce.
pub fn nonce() -> String {
    format!("{:0NONCE_LENGTH$x}", fastrand::u64(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(job: &str, attempt: u32) -> AttemptRef {
        AttemptRef { job: job.to_owned(), attempt, worker: "w-1".to_owned(), host: "a".to_owned() }
    }

    #[test]
    fn lines_that_were_written_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        assert_eq!(read(&path).expect("a missing file is empty"), []);
        let writer = Writer::new(&path, &who("a:b", 3), &nonce());
        let term = Signal::from_number(15).expect("a signal");
        let events = [
            LedgerEvent::Start { worker: "w-1".to_owned() },
            LedgerEvent::Tick { who: "daemon".to_owned() },
            LedgerEvent::End { how: CommandEnd::Exit(3) },
            LedgerEvent::End { how: CommandEnd::Signal(term) },
        ];
        for event in events.clone() {
            writer.write(event).expect("a line");
        }
        let lines = read(&path).expect("a ledger");
        assert_eq!(lines.iter().map(|line| line.event.clone()).collect::<Vec<_>>(), events);
        assert!(lines.iter().all(|line| line.job == "a:b"
            && line.attempt == 3
            && line.host == "a"
            && line.nonce.len() == 16));
        assert!(lines.is_sorted_by_key(|line| line.at));
    }

    #[test]
    fn an_incomplete_line_does_not_corrupt_other_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        fs::write(&path, "\nSTART 1 a 1 h 7 n w\n\nEND 2 a 1").expect("written");
        assert_eq!(read(&path).expect("a ledger").len(), 1);
        Writer::new(&path, &who("b", 1), "n")
            .write(LedgerEvent::End { how: CommandEnd::Exit(0) })
            .expect("a line");
        let lines = read(&path).expect("a ledger");
        assert_eq!(lines.iter().map(|line| line.job.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }
}

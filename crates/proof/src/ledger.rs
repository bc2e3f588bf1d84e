//! The file to which every command of a trial writes when it starts, lives and ends. Nobody else writes to it.
//!
//! ```text
//!   START 81234567 j7 2 4711 9f3c… w-01abc      when, job, attempt, pid, nonce, worker
//!   TICK  81254567 j7 2 4711 9f3c… daemon       … who says that it lives
//!   END   81274567 j7 2 4711 9f3c… exit:3       … how it is about to end
//! ```
//!
//! Each line is one write to a file that is only appended to, so lines of many processes neither mix nor change places.
//! Times are microseconds of a clock that neither jumps nor counts sleep.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::ProofError;
use domain::job::outcome::Outcome;
use domain::values::signal::Signal;
use sys::clock::since_boot;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The time since the machine booted.
    pub at: Duration,
    pub job: String,
    pub attempt: u32,
    pub pid: u32,
    /// Made up by the command: no two runs have the same.
    pub nonce: String,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Start { worker: String },
    Tick { who: String },
    End { how: How },
}

/// How a command ends by its own doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Exit(i32),
    Signal(Signal),
}

impl How {
    /// What must be recorded of it.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Exit(0) => Outcome::Success,
            Self::Exit(exit_code) => Outcome::Failure { exit_code },
            Self::Signal(signal) => Outcome::Signal { signal },
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(out, "exit:{code}"),
            Self::Signal(signal) => write!(out, "signal:{}", signal.number()),
        }
    }
}

impl FromStr for How {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |number: &str| number.parse().ok();
        let how = match text.split_once(':') {
            Some(("exit", code)) => number(code).map(Self::Exit),
            Some(("signal", signal)) => number(signal).and_then(Signal::from_number).map(Self::Signal),
            Some(_) | None => None,
        };
        how.ok_or_else(|| format!("`{text}` is no way to end; write exit:3 or signal:15"))
    }
}

/// The name under which a command itself shows that it lives.
pub const COMMAND: &str = "command";

impl Line {
    /// Whether the command itself says so, and not something that it left behind.
    pub fn is_by_command(&self) -> bool {
        match &self.what {
            What::Start { .. } | What::End { .. } => true,
            What::Tick { who } => who == COMMAND,
        }
    }
}

/// One run of a command, which speaks of itself in every line.
#[derive(Clone, Debug)]
pub struct Writer {
    path: PathBuf,
    job: String,
    attempt: u32,
    nonce: String,
}

impl Writer {
    pub fn new(path: &Path, job: &str, attempt: u32, nonce: &str) -> Self {
        Self { path: path.to_owned(), job: job.to_owned(), attempt, nonce: nonce.to_owned() }
    }

    pub fn write(&self, what: What) -> io::Result<()> {
        let line = Line {
            at: since_boot(),
            job: self.job.clone(),
            attempt: self.attempt,
            pid: std::process::id(),
            nonce: self.nonce.clone(),
            what,
        };
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        // Whoever is killed in the middle of a line does not spoil the next.
        file.write_all(format!("\n{line}\n").as_bytes())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, last) = match &self.what {
            What::Start { worker } => ("START", worker.clone()),
            What::Tick { who } => ("TICK", who.clone()),
            What::End { how } => ("END", how.to_string()),
        };
        let Self { at, job, attempt, pid, nonce, what: _ } = self;
        write!(out, "{word} {} {job} {attempt} {pid} {nonce} {last}", at.as_micros())
    }
}

/// What the commands have written so far.
pub fn read(path: &Path) -> Result<Vec<Line>, ProofError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|source| ProofError::CannotRead { path: path.to_owned(), source })?,
    };
    // The last line may be in the making, and so may be one whose writer was killed.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    Ok(whole.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let [word, at, job, attempt, pid, nonce, last] = words[..] else {
        return None;
    };
    let what = match word {
        "START" => What::Start { worker: last.to_owned() },
        "TICK" => What::Tick { who: last.to_owned() },
        "END" => What::End { how: last.parse().ok()? },
        _ => return None,
    };
    Some(Line {
        at: Duration::from_micros(at.parse().ok()?),
        job: job.to_owned(),
        attempt: attempt.parse().ok()?,
        pid: pid.parse().ok()?,
        nonce: nonce.to_owned(),
        what,
    })
}

/// Makes up a nonce.
pub fn nonce() -> String {
    format!("{:016x}", fastrand::u64(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        assert_eq!(read(&path).expect("nothing is fine"), []);
        let writer = Writer::new(&path, "a:b", 3, &nonce());
        let term = Signal::from_number(15).expect("a signal");
        let said = [
            What::Start { worker: "w-1".to_owned() },
            What::Tick { who: "daemon".to_owned() },
            What::End { how: How::Exit(3) },
            What::End { how: How::Signal(term) },
        ];
        for what in said.clone() {
            writer.write(what).expect("a line");
        }
        let lines = read(&path).expect("a ledger");
        assert_eq!(lines.iter().map(|line| line.what.clone()).collect::<Vec<_>>(), said);
        assert!(lines.iter().all(|line| line.job == "a:b" && line.attempt == 3 && line.nonce.len() == 16));
        assert!(lines.is_sorted_by_key(|line| line.at));
    }

    #[test]
    fn a_line_that_was_cut_off_spoils_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        fs::write(&path, "\nSTART 1 a 1 7 n w\n\nEND 2 a 1").expect("written");
        assert_eq!(read(&path).expect("a ledger").len(), 1);
        Writer::new(&path, "b", 1, "n").write(What::End { how: How::Exit(0) }).expect("a line");
        let lines = read(&path).expect("a ledger");
        assert_eq!(lines.iter().map(|line| line.job.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }
}

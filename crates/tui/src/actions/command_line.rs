//! The lines of the palette: queuectl's own command line, run by the same program.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The verbs that change nothing.
const READING: [&str; 13] = [
    "status", "list", "show", "explain", "logs", "upcoming", "graph", "events", "history", "metrics",
    "doctor", "help", "version",
];
/// Verbs of verbs that change nothing.
const READING_BELOW: [(&str, &[&str]); 7] = [
    ("batch", &["list", "show"]),
    ("schedule", &["list", "show"]),
    ("queue", &["list"]),
    ("worker", &["list"]),
    ("hook", &["list", "show"]),
    ("config", &["list", "get"]),
    ("dlq", &["list"]),
];
/// Flags with which a command continues until the user ends it.
const FOLLOWING: [&str; 4] = ["-f", "--follow", "-w", "--watch"];
/// Verbs that take the whole terminal, or stay in the foreground.
const STAYING: [&[&str]; 4] = [&["top"], &["dashboard"], &["worker", "run"], &["wait"]];
/// A longer output is cut.
const MAX_OUTPUT_BYTES: u64 = 256 << 10;

/// Whether a line changes nothing.
pub(crate) fn is_reading(words: &[String]) -> bool {
    let Some(verb) = words.first() else {
        return false;
    };
    let below = READING_BELOW.iter().find(|(name, _)| name == verb);
    READING.contains(&verb.as_str())
        || below.zip(words.get(1)).is_some_and(|((_, reading), second)| reading.contains(&second.as_str()))
}

/// The words of a line, as a shell would split them; `None` if a quotation mark is not closed. A leading `queuectl` is left
/// out.
pub(crate) fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().push(characters.next()?),
            (mark, Some(open)) if mark == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (space, None) if space.is_whitespace() => words.extend(word.take()),
            (other, _) => word.get_or_insert_default().push(other),
        }
    }
    if quote.is_some() {
        return None;
    }
    words.extend(word);
    if words.first().is_some_and(|first| first == "queuectl") {
        words.remove(0);
    }
    Some(words)
}

/// Whether a line would not end by itself, so that its output would never be shown.
pub(crate) fn is_endless(words: &[String]) -> bool {
    let before_command = words.split(|word| word == "--").next().unwrap_or_default();
    let stays = |verb: &&[&str]| words.len() >= verb.len() && words.iter().zip(*verb).all(|(a, b)| a == b);
    let takes_file = words.first().is_some_and(|verb| ["enqueue", "add", "run"].contains(&verb.as_str()));
    STAYING.iter().any(stays)
        || !takes_file && before_command.iter().any(|word| FOLLOWING.contains(&word.as_str()))
}

/// Runs a line, and returns what it printed. Asks it to end each time that `stop` can be read.
pub(super) fn run(program: &[String], words: &[String], stop: &OwnedFd) -> Result<Vec<String>, String> {
    let failed = |error: io::Error| format!("queuectl cannot be started ({error})");
    let mut command = Command::new("/proc/self/exe");
    command.args(program).args(words).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (text, status) = std::thread::scope(|scope| {
        let errors = scope.spawn(move || errors.map(read_all).unwrap_or_default());
        let output = scope.spawn(move || output.map(read_all).unwrap_or_default());
        end_on(stop, &child);
        let mut text = output.join().unwrap_or_default();
        text.push_str(&errors.join().unwrap_or_default());
        (text, child.wait())
    });
    let status = status.map_err(failed)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !status.success() {
        lines.push(format!("({status})"));
    }
    Ok(lines)
}

/// Waits until the child has ended, and asks it to end each time that `stop` can be read: a command that tidies up first may
/// need a second request.
fn end_on(stop: &OwnedFd, child: &Child) {
    let Ok(process) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
        return;
    };
    loop {
        let mut watched = [PollFd::new(&process, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if !watched[0].revents().is_empty() {
            return;
        }
        if !watched[1].revents().is_empty() {
            let _ = rustix::io::read(stop, &mut [0; 8]);
            // An error means that it has ended.
            let _ = pidfd_send_signal(&process, Signal::TERM);
        }
    }
}

/// The beginning of what a program prints; the rest is read as well, so that it can end.
fn read_all(mut output: impl Read) -> String {
    let mut bytes = Vec::new();
    // An output that breaks off is shown as far as it came.
    let _ = output.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    let _ = io::copy(&mut output, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        split_words(line).expect("a line")
    }

    #[test]
    fn a_line_is_split_as_by_a_shell() {
        assert_eq!(
            words("queuectl enqueue -- echo 'a b' \"c\\\"d\" e\\ f"),
            ["enqueue", "--", "echo", "a b", "c\"d", "e f"]
        );
        assert_eq!(words("  "), Vec::<String>::new());
        assert_eq!(split_words("echo 'a"), None);
    }

    #[test]
    fn only_known_verbs_are_reading() {
        for (line, reading) in [
            ("list --state dead", true),
            ("queue list", true),
            ("queue pause a", false),
            ("retry 1", false),
            ("", false),
        ] {
            assert_eq!(is_reading(&words(line)), reading, "{line}");
        }
    }

    #[test]
    fn lines_that_never_end_are_found() {
        for (line, endless) in [
            ("logs -f 3", true),
            ("events --follow", true),
            ("status -w", true),
            ("worker run", true),
            ("worker list", false),
            ("logs 3", false),
            ("enqueue -f jobs.jsonl", false),
            ("enqueue -- tail -f log", false),
            ("list", false),
            ("", false),
        ] {
            assert_eq!(is_endless(&words(line)), endless, "{line}");
        }
    }
}

//! The error line: short, without control characters, and starting with the outcome of the attempt.

use domain::job::outcome::Outcome;
use domain::job::outcome::{MAX_ERROR_BYTES, error_line};
use domain::text::hostile::is_hostile;
use domain::values::signal::Signal;

pub const TOKENS: &[&str] = &[
    "\u{1b}",
    "\u{1b}[",
    "\u{1b}[1;31m",
    "\u{1b}[0m",
    "\u{1b}]0;",
    "\u{7}",
    "\u{1b}\\",
    "\u{1b}(B",
    "\u{9b}",
    "\u{202e}",
    "\u{200b}",
    "\u{feff}",
    "\r",
    "\n",
    "\t",
    "\0",
    "ä",
    "漢",
    "…",
    "error: ",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for outcome in outcomes(data.first().copied().unwrap_or(0)) {
        let Some(line) = error_line(outcome, Some(&text)) else {
            assert!(matches!(outcome, Outcome::Success | Outcome::Released));
            continue;
        };
        assert!(line.len() <= MAX_ERROR_BYTES, "{} bytes", line.len());
        assert!(!line.contains(is_hostile), "{line:?}");
        assert_eq!(line, line.trim());
        let rest = line.strip_prefix(&outcome.to_string()).expect("the line begins with the outcome");
        assert!(rest.is_empty() || rest.starts_with(": "), "{line:?}");
        let is_plain = !text.contains(|c: char| is_hostile(c)) && !text.trim().is_empty();
        let whole = format!("{outcome}: {}", text.trim());
        assert!(!is_plain || whole.len() > MAX_ERROR_BYTES || line == whole, "{line:?} is not {text:?}");
    }
}

fn outcomes(number: u8) -> [Outcome; 8] {
    let signal = Signal::from_number(i32::from(number % 64) + 1).unwrap_or(Signal::KILL);
    [
        Outcome::Success,
        Outcome::Failure { exit_code: number.into() },
        Outcome::Signal { signal },
        Outcome::Timeout,
        Outcome::SpawnError,
        Outcome::Lost,
        Outcome::Cancelled,
        Outcome::Released,
    ]
}

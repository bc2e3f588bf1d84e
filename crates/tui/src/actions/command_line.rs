//! The lines of the palette: queuectl's own command line, run by the same program.

use std::io::Read;
use std::process::{Command, Stdio};

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

/// Runs a line, and returns what it printed.
pub(super) fn run(program: &[String], words: &[String]) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("queuectl cannot be started ({error})");
    let mut command = Command::new("/proc/self/exe");
    command.args(program).args(words).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let errors = child.stderr.take();
    let reading = std::thread::spawn(move || errors.map(read_all).unwrap_or_default());
    let mut text = child.stdout.take().map(read_all).unwrap_or_default();
    text.push_str(&reading.join().unwrap_or_default());
    let status = child.wait().map_err(failed)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !status.success() {
        lines.push(format!("({status})"));
    }
    Ok(lines)
}

/// The beginning of what a program prints; the rest is read as well, so that it can end.
fn read_all(mut output: impl Read) -> String {
    let mut bytes = Vec::new();
    // An output that breaks off is shown as far as it came.
    let _ = output.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    let _ = std::io::copy(&mut output, &mut std::io::sink());
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
}

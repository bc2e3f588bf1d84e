//! The one-line error of an attempt: how it ended, and the last line that it wrote to stderr.

use super::Outcome;
use crate::job::limits::ExceededLimit;
use crate::text::hostile::is_hostile;

/// The maximum length of an error line.
pub const MAX_ERROR_BYTES: usize = 512;

const ESC: char = '\u{1b}';
const BEL: char = '\u{7}';

/// The error of an attempt. `None` after success and for an attempt that was released.
pub fn error_line(outcome: Outcome, last_error_line: Option<&str>) -> Option<String> {
    match outcome {
        Outcome::Success | Outcome::Released => return None,
        Outcome::Failure { .. }
        | Outcome::Signal { .. }
        | Outcome::Timeout
        | Outcome::SpawnError
        | Outcome::Lost
        | Outcome::Cancelled => {}
    }
    Some(line(outcome.to_string(), last_error_line))
}

/// The error of an attempt that was killed because it exceeded a limit.
pub fn exceeded_limit_line(
    outcome: Outcome,
    exceeded: ExceededLimit,
    last_error_line: Option<&str>,
) -> Option<String> {
    let how = match outcome {
        Outcome::Success | Outcome::Released => return None,
        Outcome::Signal { .. } => "killed".to_owned(),
        Outcome::Failure { .. }
        | Outcome::Timeout
        | Outcome::SpawnError
        | Outcome::Lost
        | Outcome::Cancelled => outcome.to_string(),
    };
    Some(line(format!("{how}: {exceeded}"), last_error_line))
}

/// Whether an error line was written by [`exceeded_limit_line`].
pub fn reports_exceeded_limit(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(_, what)| {
        ExceededLimit::MESSAGE_PREFIXES.iter().any(|prefix| what.starts_with(prefix))
    })
}

fn line(how: String, last_error_line: Option<&str>) -> String {
    let stderr = visible_text(last_error_line.unwrap_or_default());
    truncate(if stderr.is_empty() { how } else { format!("{how}: {stderr}") })
}

/// The text that a terminal would have shown: escape sequences and invisible characters are removed.
fn visible_text(raw: &str) -> String {
    let mut plain = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, sequence)) = rest.split_once(ESC) {
        plain.push_str(before);
        rest = &sequence[sequence_length(sequence)..];
    }
    plain.push_str(rest);
    let visible = plain.chars().filter_map(|character| match character {
        control if control.is_control() => Some(' '),
        hostile if is_hostile(hostile) => None,
        other => Some(other),
    });
    visible.collect::<String>().trim().to_owned()
}

/// The length of the rest of an escape sequence, after its ESC.
fn sequence_length(sequence: &str) -> usize {
    let is_parameter = |byte: u8| (0x30..=0x3F).contains(&byte);
    let is_intermediate = |byte: u8| (0x20..=0x2F).contains(&byte);
    let bytes = sequence.as_bytes();
    match bytes.first() {
        // An OSC string, such as a window title, up to its terminator.
        Some(b']') => sequence
            .find(BEL)
            .map(|end| end + 1)
            .or_else(|| sequence.find("\u{1b}\\").map(|end| end + 2))
            .unwrap_or(1),
        Some(b'[') => {
            let parameters = bytes[1..].iter().take_while(|byte| is_parameter(**byte)).count();
            end_of_sequence(bytes, 1 + parameters, is_intermediate)
        }
        Some(_) => end_of_sequence(bytes, 0, is_intermediate),
        None => 0,
    }
}

/// The offset after the final byte, if there is one.
fn end_of_sequence(bytes: &[u8], from: usize, is_intermediate: impl Fn(u8) -> bool) -> usize {
    let at = from + bytes[from..].iter().take_while(|byte| is_intermediate(**byte)).count();
    let is_final = bytes.get(at).is_some_and(|byte| (0x30..=0x7E).contains(byte));
    if is_final { at + 1 } else { at }
}

fn truncate(mut line: String) -> String {
    const ELLIPSIS: &str = "…";
    if line.len() > MAX_ERROR_BYTES {
        let room = MAX_ERROR_BYTES - ELLIPSIS.len();
        line.truncate((0..=room).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0));
        line.push_str(ELLIPSIS);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::signal::Signal;
    use proptest::prelude::*;

    const FAILURE: Outcome = Outcome::Failure { exit_code: 2 };

    fn failure_with_stderr(line: &str) -> String {
        error_line(FAILURE, Some(line)).expect("a failure has an error line")
    }

    #[test]
    fn an_error_line_has_the_outcome_and_the_last_line_of_stderr() {
        let killed = Outcome::Signal { signal: Signal::from_number(9).expect("SIGKILL") };
        for (outcome, last, expected) in [
            (FAILURE, Some("no luck"), Some("exit code 2: no luck")),
            (FAILURE, None, Some("exit code 2")),
            (FAILURE, Some("  "), Some("exit code 2")),
            (killed, Some("ouch"), Some("killed by SIGKILL: ouch")),
            (Outcome::Timeout, Some("still at it"), Some("timed out: still at it")),
            (Outcome::SpawnError, Some("no folder `/x`"), Some("could not be started: no folder `/x`")),
            (Outcome::Cancelled, None, Some("cancelled")),
            (Outcome::Lost, None, Some("its worker died")),
            (Outcome::Success, Some("a warning"), None),
            (Outcome::Released, Some("half done"), None),
        ] {
            assert_eq!(error_line(outcome, last).as_deref(), expected);
        }
    }

    #[test]
    fn an_exceeded_limit_comes_before_the_last_line_of_stderr() {
        let killed = Outcome::Signal { signal: Signal::KILL };
        let memory = ExceededLimit::Memory(512 << 20);
        for (outcome, exceeded, last, expected) in [
            (killed, memory, None, Some("killed: used more than its memory limit of 512M")),
            (killed, memory, Some("hm"), Some("killed: used more than its memory limit of 512M: hm")),
            (
                killed,
                ExceededLimit::Pids(100),
                None,
                Some("killed: had more processes and threads than its limit of 100"),
            ),
            (FAILURE, memory, None, Some("exit code 2: used more than its memory limit of 512M")),
            (Outcome::Success, memory, None, None),
        ] {
            assert_eq!(exceeded_limit_line(outcome, exceeded, last).as_deref(), expected);
            assert!(expected.is_none_or(reports_exceeded_limit), "{expected:?}");
        }
        for other in ["killed by SIGKILL", "exit code 2: no luck", "used more than its memory limit of 512M"]
        {
            assert!(!reports_exceeded_limit(other), "{other}");
        }
    }

    #[test]
    fn escape_sequences_and_control_characters_are_removed() {
        for (line, expected) in [
            ("\u{1b}[1;31merror\u{1b}[0m: no", "exit code 2: error: no"),
            ("\u{1b}]0;title\u{7}text", "exit code 2: text"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "exit code 2: link"),
            ("\u{1b}]never ends", "exit code 2: never ends"),
            ("\u{1b}(Bplain", "exit code 2: plain"),
            ("tab\there\u{0}", "exit code 2: tab here"),
            ("c1\u{9b}31m", "exit code 2: c1 31m"),
            ("\u{202e}gpj.exe\u{200b}", "exit code 2: gpj.exe"),
            ("\u{1b}", "exit code 2"),
            ("\u{1b}[31ä", "exit code 2: ä"),
        ] {
            assert_eq!(failure_with_stderr(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_long_line_is_truncated_at_a_character_boundary() {
        let line = failure_with_stderr(&"ä".repeat(600));
        assert!(line.len() <= MAX_ERROR_BYTES && line.len() > MAX_ERROR_BYTES - 4, "{}", line.len());
        assert!(line.starts_with("exit code 2: ää") && line.ends_with("ä…"), "{line}");
        let fits = "x".repeat(MAX_ERROR_BYTES - "exit code 2: ".len());
        assert_eq!(failure_with_stderr(&fits).len(), MAX_ERROR_BYTES);
        assert!(!failure_with_stderr(&fits).ends_with('…'));
    }

    proptest! {
        #[test]
        fn any_stderr_gives_a_short_line_without_hostile_characters(last in any::<String>()) {
            let line = failure_with_stderr(&last);
            prop_assert!(line.len() <= MAX_ERROR_BYTES);
            prop_assert!(!line.contains(is_hostile), "{:?}", line);
        }

        #[test]
        fn any_mix_of_escapes_gives_a_line_without_hostile_characters(
            parts in prop::collection::vec("[\u{1b}\\[\\]0-9;m\u{7}\\\\ä ]{0,6}", 0..8)
        ) {
            prop_assert!(!failure_with_stderr(&parts.concat()).contains(is_hostile));
        }
    }
}

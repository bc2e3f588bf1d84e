//! Groups dead jobs by the cause of their death: the reason, the exit code or signal, and the message without the parts
//! that differ from job to job.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Serialize, Serializer};

use super::LatestAttempt;
use super::life::Life;
use crate::values::signal::Signal;

/// Why a job died, in the words that it shares with others that died alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub exit_code: Option<i32>,
    pub signal: Option<Signal>,
    /// The error line; the exit code stays, and everything that differs between jobs is masked.
    pub message: String,
}

impl Cause {
    /// The cause of a dead job; `None` for every other job.
    pub fn of(life: &Life, latest: &LatestAttempt) -> Option<Self> {
        let reason = life.state.dead_reason()?.name();
        let error = latest.error.as_deref().unwrap_or_default();
        Some(Self::new(reason.to_owned(), latest.exit_code, latest.signal, error))
    }

    pub fn new(reason: String, exit_code: Option<i32>, signal: Option<Signal>, error: &str) -> Self {
        let code = exit_code.map(|code| format!("exit code {code}"));
        let how = code.or_else(|| signal.map(|signal| format!("killed by {signal}"))).unwrap_or_default();
        let message = error.strip_prefix(&how).map_or_else(|| mask(error), |rest| how + &mask(rest));
        Self { reason, exit_code, signal, message }
    }

    pub fn id(&self) -> CauseId {
        let [code, signal] = [self.exit_code, self.signal.map(Signal::number)]
            .map(|number| number.map_or_else(String::new, |number| number.to_string()));
        CauseId(fnv1a([self.reason.as_str(), &code, &signal, &self.message].join("\0").as_bytes()))
    }
}

/// Names a cause. It is the same on every machine and in every version, because people write it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CauseId(u64);

/// How many digits an id has.
const DIGITS: usize = 16;
/// How many digits people see.
const SHOWN_DIGITS: usize = 8;

impl CauseId {
    fn digits(self) -> String {
        format!("{:016x}", self.0)
    }

    /// Whether it begins like this.
    pub fn begins_with(self, typed: &str) -> bool {
        !typed.is_empty() && self.digits().starts_with(&typed.to_ascii_lowercase())
    }

    /// The ids that begin like this; `None` if none can.
    pub fn beginning_with(typed: &str) -> Option<RangeInclusive<Self>> {
        let is_hex = typed.bytes().all(|byte| byte.is_ascii_hexdigit());
        if typed.is_empty() || typed.len() > DIGITS || !is_hex {
            return None;
        }
        let bound = |fill: &str| {
            let digits = typed.to_owned() + &fill.repeat(DIGITS - typed.len());
            u64::from_str_radix(&digits, 16).ok().map(Self)
        };
        Some(bound("0")?..=bound("f")?)
    }

    /// The same bits as a signed number, as databases have it.
    pub fn to_stored(self) -> i64 {
        self.0.cast_signed()
    }

    pub fn from_stored(stored: i64) -> Self {
        Self(stored.cast_unsigned())
    }
}

impl fmt::Display for CauseId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.digits()[..SHOWN_DIGITS])
    }
}

impl Serialize for CauseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Stands for what differs between jobs.
const MASK: char = '…';

/// Masks numbers, addresses, UUIDs, long hexadecimal words and paths.
fn mask(text: &str) -> String {
    let mut masked = Masked(String::with_capacity(text.len()));
    let mut rest = text;
    let mut is_inside = false;
    while let Some(first) = rest.chars().next() {
        let path = if is_inside { 0 } else { path_length(rest) };
        let uuid = if is_inside { 0 } else { uuid_length(rest) };
        let word = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let length = if path.max(uuid) > 0 {
            masked.push_mask();
            path.max(uuid)
        } else if word > 0 {
            masked.push_word(&rest[..word]);
            word
        } else {
            masked.0.push(first);
            first.len_utf8()
        };
        is_inside = rest[..length].chars().next_back().is_some_and(is_path_character);
        rest = &rest[length..];
    }
    masked.0
}

struct Masked(String);

/// Between two masked parts, these are masked too: `10.0.0.7:5432`, `2026-11-17`, `3/4`.
const JOINTS: [char; 5] = ['.', ':', ',', '-', '/'];
const MIN_HEX_WORD_LEN: usize = 6;
/// A word of so many hexadecimal digits is masked even if all of them are letters.
const MIN_HEX_LETTERS_LEN: usize = 16;

impl Masked {
    fn push_mask(&mut self) {
        let joined = self.0.strip_suffix(JOINTS).filter(|before| before.ends_with(MASK));
        if let Some(before) = joined {
            self.0.truncate(before.len());
        } else if !self.0.ends_with(MASK) {
            self.0.push(MASK);
        }
    }

    fn push_word(&mut self, word: &str) {
        let is_hex = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        let is_address = word.strip_prefix("0x").or(word.strip_prefix("0X")).is_some_and(is_hex);
        let least = if has_digit { MIN_HEX_WORD_LEN } else { MIN_HEX_LETTERS_LEN };
        if is_address || is_hex(word) && word.len() >= least {
            return self.push_mask();
        }
        for character in word.chars() {
            if character.is_ascii_digit() {
                self.push_mask();
            } else {
                self.0.push(character);
            }
        }
    }
}

fn is_path_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '/' | '.' | '_' | '-' | '~' | '+' | '@' | '%')
}

/// The length of the path that the text begins with; 0 if it does not. `I/O` and `and/or` are no paths.
fn path_length(text: &str) -> usize {
    let end = text.find(|character| !is_path_character(character)).unwrap_or(text.len());
    let path = text[..end].trim_end_matches(['.', '-']);
    let Some((before, last)) = path.rsplit_once('/') else {
        return 0;
    };
    let is_rooted = ["/", "~", "./", "../"].iter().any(|root| path.starts_with(root));
    let is_deep = before.contains('/');
    let has_name = path.contains(char::is_alphanumeric);
    if has_name && (is_rooted || is_deep || last.contains('.')) { path.len() } else { 0 }
}

/// The length of the UUID that the text begins with; 0 if it does not.
fn uuid_length(text: &str) -> usize {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    const LENGTH: usize = 36;
    let end = text.find(|character: char| !character.is_ascii_alphanumeric() && character != '-');
    let word = &text[..end.unwrap_or(text.len())];
    let is_group = |(group, length): (&str, usize)| {
        group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_uuid = word.len() == LENGTH && word.split('-').zip(GROUPS).all(is_group);
    if is_uuid { LENGTH } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_differs_from_job_to_job_is_masked() {
        for (error, masked) in [
            ("connection refused", "connection refused"),
            ("no route to 10.0.0.7:5432", "no route to …"),
            ("commit 3f2a9c1 missing", "commit … missing"),
            ("worker7 said no", "worker… said no"),
            ("segfault at 0x7ffe12ab, ip 0x55D0c3f1", "segfault at …, ip …"),
            ("at 0x7f", "at …"),
            ("no user 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed!", "no user …!"),
            ("key deadbeefdeadbeef", "key …"),
            ("dead beef", "dead beef"),
            ("2026-11-17T15:24:09.583Z down", "…T…Z down"),
            ("cannot open '/var/lib/x y'", "cannot open '… y'"),
            ("/tmp/a1/b.txt: No such file or directory", "…: No such file or directory"),
            ("src/main.rs:12:5: error", "…: error"),
            ("~/x and ./run and ../up.", "… and … and …."),
            ("https://example.com/a/7 gave 503", "https:… gave …"),
            ("I/O error, read/write and/or N/A", "I/O error, read/write and/or N/A"),
            ("3 / 4 of 5/6", "… / … of …"),
            ("[Makefile:2: all] Error 2", "[Makefile:…: all] Error …"),
            ("took 3.5s, 漢字7", "took …s, 漢字…"),
            ("", ""),
        ] {
            assert_eq!(mask(error), masked, "{error}");
        }
    }

    fn id(reason: &str, exit_code: Option<i32>, signal: Option<Signal>, error: &str) -> String {
        Cause::new(reason.to_owned(), exit_code, signal, error).id().to_string()
    }

    #[test]
    fn the_exit_code_stays_readable() {
        for (exit_code, signal, error, message) in [
            (Some(137), None, "exit code 137: no user 17", "exit code 137: no user …"),
            (Some(2), None, "exit code 2", "exit code 2"),
            (None, Some(Signal::KILL), "killed by SIGKILL: at 7", "killed by SIGKILL: at …"),
            (None, Some(Signal::KILL), "killed: above its limit of 512M", "killed: above its limit of …M"),
            (None, None, "timed out: 7 left", "timed out: … left"),
        ] {
            let cause = Cause::new("retries_exhausted".to_owned(), exit_code, signal, error);
            assert_eq!(cause.message, message);
        }
    }

    #[test]
    fn causes_differ_by_reason_exit_code_signal_and_message() {
        let known = id("retries_exhausted", Some(1), None, "exit code 1: no user 4");
        assert_eq!(known, "4d67763a", "people have written it down");
        assert_eq!(known, id("retries_exhausted", Some(1), None, "exit code 1: no user 17"));
        for other in [
            id("not_retried", Some(1), None, "exit code 1: no user 4"),
            id("retries_exhausted", Some(2), None, "exit code 2: no user 4"),
            id("retries_exhausted", None, Some(Signal::KILL), "exit code 1: no user 4"),
            id("retries_exhausted", Some(1), None, "exit code 1: no group 4"),
        ] {
            assert_ne!(known, other);
        }
    }

    #[test]
    fn an_id_is_found_by_its_beginning() {
        let cause = Cause::new("retries_exhausted".to_owned(), Some(1), None, "exit code 1").id();
        let shown = cause.to_string();
        assert!(cause.begins_with(&shown) && cause.begins_with(&shown[..4].to_uppercase()));
        assert!(!cause.begins_with("") && !cause.begins_with("x") && !cause.begins_with(&(shown + "x")));
    }

    #[test]
    fn a_range_has_the_ids_that_begin_alike() {
        let ids =
            [0, 1, 0x4d67_763a_0000_0000, 0x4d67_763a_ffff_ffff, 0x7fff_ffff_ffff_ffff, 1 << 63, u64::MAX];
        for typed in ["0", "4", "4D67", "4d67763a", "7", "8", "f", "ffffffffffffffff"] {
            let range = CauseId::beginning_with(typed).expect("a beginning");
            let stored = range.start().to_stored()..=range.end().to_stored();
            for id in ids.map(CauseId) {
                assert_eq!(range.contains(&id), id.begins_with(typed), "{typed} {id}");
                assert_eq!(stored.contains(&id.to_stored()), id.begins_with(typed), "{typed} {id}");
                assert_eq!(CauseId::from_stored(id.to_stored()), id);
            }
        }
        for typed in ["", "x", "-1", "+1", "fffffffffffffffff"] {
            assert_eq!(CauseId::beginning_with(typed), None, "{typed}");
        }
    }

    proptest! {
        #[test]
        fn no_digit_survives(error in any::<String>()) {
            prop_assert!(!mask(&error).contains(|character: char| character.is_ascii_digit()));
        }

        #[test]
        fn numbers_and_addresses_make_no_difference(one in any::<u64>(), other in any::<u64>()) {
            let line = |number: u64| mask(&format!("user {number} of {number}.{number}, at {number:#x}: /p/{number:x}"));
            prop_assert_eq!(line(one), line(other));
        }
    }
}

//! Sizes: a number and one of a few units; an accepted size survives a round trip.

use domain::values::size::{SizeError, format_size, parse_size};

use super::message;

pub const TOKENS: &[&str] = &[
    "K",
    "M",
    "G",
    "T",
    "B",
    "KiB",
    "MiB",
    "GiB",
    "KB",
    "MB",
    "GB",
    "i",
    "iB",
    " ",
    "-",
    "+",
    ".",
    "0",
    "1024",
    "9223372036854775807",
    "9223372036854775808",
    "8589934592G",
    "18446744073709551616",
];

/// The units in lower case, with their powers of two.
const UNITS: [(&str, u32); 14] = [
    ("", 0),
    ("b", 0),
    ("k", 10),
    ("ki", 10),
    ("kb", 10),
    ("kib", 10),
    ("m", 20),
    ("mi", 20),
    ("mb", 20),
    ("mib", 20),
    ("g", 30),
    ("gi", 30),
    ("gb", 30),
    ("gib", 30),
];

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = parse_size(&text);
    match (&read, expected(&text)) {
        (Ok(bytes), Some(expected)) => {
            assert_eq!(u128::from(*bytes), expected);
            assert!(i64::try_from(*bytes).is_ok(), "{bytes} does not fit into the store");
            assert_eq!(parse_size(&format_size(*bytes)), Ok(*bytes));
        }
        (Err(SizeError::TooLarge(_)), expected) => {
            assert!(expected.is_none_or(|bytes| i64::try_from(bytes).is_err()), "{text:?} is not too large");
        }
        (Err(SizeError::Malformed(_)), None) => {}
        (Ok(_) | Err(_), expected) => panic!("{text:?} is {expected:?}, not {read:?}"),
    }
    if let Err(error) = read {
        message::check(&error, text.as_bytes());
    }
}

/// The number of bytes, parsed in another way. `None` if the text is not a size, or too large for 128 bits.
fn expected(text: &str) -> Option<u128> {
    let lower = text.trim().to_ascii_lowercase();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    UNITS.into_iter().find_map(|(unit, power)| {
        let number = lower.strip_suffix(unit)?.trim_end();
        if is_number(number) { number.parse::<u128>().ok()?.checked_mul(1 << power) } else { None }
    })
}

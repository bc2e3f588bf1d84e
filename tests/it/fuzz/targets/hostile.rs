//! Text for people and JSON for programs: the output contains no terminal control characters, and JSON loses nothing.

use std::fmt::Write as _;

use domain::text::hostile::{Escaping, printable, printable_lines};
use ops::escape::write_json;
use serde_json::{Value, json};

pub const TOKENS: &[&str] = &[
    "\u{1b}[31m",
    "\u{1b}]0;x\u{7}",
    "\r",
    "\n",
    "\t",
    "\0",
    "\u{7f}",
    "\u{85}",
    "\u{9b}",
    "\u{61c}",
    "\u{200b}",
    "\u{200f}",
    "\u{202a}",
    "\u{202e}",
    "\u{2028}",
    "\u{2029}",
    "\u{2060}",
    "\u{2066}",
    "\u{2069}",
    "\u{feff}",
    "\\u{1b}",
    "\\",
    "\"",
    "ä",
    "漢",
    "🦀",
];

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let shown = printable(&text);
    assert!(shown.chars().all(is_harmless), "{shown:?}");
    assert_eq!(printable(&shown), shown, "harmless text is unchanged");
    assert_eq!(text.chars().all(is_harmless), shown == text, "{text:?}");
    let lines = printable_lines(&text);
    assert!(lines.chars().all(|c| is_harmless(c) || matches!(c, '\n' | '\t')), "{lines:?}");
    let layout = |text: &str| text.chars().filter(|c| matches!(c, '\n' | '\t')).collect::<String>();
    assert_eq!(layout(&lines), layout(&text), "newlines and tabs are kept");
    check_writer(&text, &shown);
    check_json(&text);
}

/// Text written in pieces gives the same result as text written at once.
fn check_writer(text: &str, shown: &str) {
    let mut written = String::new();
    for character in text.chars() {
        write!(Escaping(&mut written), "{character}").expect("writing to a string does not fail");
    }
    assert_eq!(written, shown);
}

fn check_json(text: &str) {
    let value = json!({ text: [text, { "key": text }] });
    for pretty in [false, true] {
        let mut bytes = Vec::new();
        write_json(&mut bytes, &value, pretty).expect("writing to memory does not fail");
        let written = String::from_utf8(bytes).expect("JSON is text");
        assert!(written.chars().all(|c| is_harmless(c) || (pretty && c == '\n')), "{written:?}");
        assert_eq!(serde_json::from_str::<Value>(&written).expect("the output is JSON"), value);
    }
}

/// Written independently of the code under test, from the Unicode tables: no control characters, no directional marks
/// or overrides, no zero-width characters.
fn is_harmless(character: char) -> bool {
    !matches!(u32::from(character),
        0..=0x1f | 0x7f..=0x9f | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff)
}

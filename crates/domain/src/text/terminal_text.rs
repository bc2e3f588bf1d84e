//! The output of a job as a terminal may see it: text, newlines, tabs and colours. Everything else that could control
//! the terminal is escaped. Of the attributes of text, only known ones are passed on, and none that hides text. Text in
//! the colour of its background stays possible: which colours look the same depends on the terminal.

use std::borrow::Cow;

use super::hostile::{printable, printable_lines};

/// The longest list of parameters of a colour: two colours of 24 bits and some attributes fit.
const MAX_COLOR_PARAMETERS: usize = 48;
/// How much of the colours that are on is remembered.
const MAX_REMEMBERED: usize = 96;
const ESCAPE: char = '\u{1b}';
const RESET: &str = "\u{1b}[0m";

/// Makes the output of one stream safe, piece by piece.
#[derive(Debug)]
pub struct TerminalText {
    /// Whether colours are shown; otherwise they are left out.
    shows_colors: bool,
    /// The last bytes, if the next ones may complete them.
    held_back: Vec<u8>,
    /// The colours that are on: the sequences since the last reset.
    on: String,
}

impl TerminalText {
    pub fn new(shows_colors: bool) -> Self {
        Self { shows_colors, held_back: Vec::new(), on: String::new() }
    }

    /// The safe form of the next bytes. The start of a character, of a line ending or of a colour at the end is held
    /// back.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.held_back);
        all.extend_from_slice(bytes);
        let whole = all.len() - incomplete_suffix_len(&all);
        self.held_back = all.split_off(whole);
        self.show(&all)
    }

    /// The safe form of what was held back.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held_back);
        let shown = self.show(&rest);
        self.on.clear();
        shown
    }

    /// The safe form of these bytes. Colours that the piece before left on are set again, and those that are on at the
    /// end are reset: other text may follow.
    pub fn show(&mut self, bytes: &[u8]) -> String {
        if bytes.is_empty() {
            return String::new();
        }
        let mut shown = self.on.clone();
        for chunk in bytes.utf8_chunks() {
            let text = chunk.valid();
            let text =
                if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { Cow::Borrowed(text) };
            self.show_text(&text, &mut shown);
            shown.extend(chunk.invalid().iter().flat_map(|byte| byte.escape_ascii().map(char::from)));
        }
        if !self.on.is_empty() {
            shown.push_str(RESET);
        }
        shown
    }

    fn show_text(&mut self, text: &str, shown: &mut String) {
        let mut rest = text;
        while let Some(at) = rest.find(ESCAPE) {
            shown.push_str(&printable_lines(&rest[..at]));
            let length = if let Some(length) = color_len(&rest[at..]) {
                self.set_color(&rest[at..at + length], shown);
                length
            } else {
                shown.push_str(&printable(&rest[at..=at]));
                ESCAPE.len_utf8()
            };
            rest = &rest[at + length..];
        }
        shown.push_str(&printable_lines(rest));
    }

    fn set_color(&mut self, sequence: &str, shown: &mut String) {
        let typed = sequence.trim_start_matches([ESCAPE, '[']).trim_end_matches('m');
        let Some(parameters) = known_parameters(typed).filter(|_| self.shows_colors) else {
            return;
        };
        let parameters = parameters.as_str();
        let sequence = &format!("\u{1b}[{parameters}m");
        shown.push_str(sequence);
        let starts_over =
            parameters.split(';').next().is_none_or(|first| first.bytes().all(|digit| digit == b'0'));
        if starts_over || self.on.len() + sequence.len() > MAX_REMEMBERED {
            self.on.clear();
        }
        if !parameters.bytes().all(|byte| matches!(byte, b'0' | b';')) {
            self.on.push_str(sequence);
        }
    }
}

/// The parameters that set colours or known attributes; `None` if there are no such parameters. The attribute that hides
/// text (8) is not one of them.
fn known_parameters(typed: &str) -> Option<String> {
    let mut known = Vec::new();
    let mut rest = typed.split(';');
    while let Some(parameter) = rest.next() {
        match (parameter.split_once(':'), number(parameter)) {
            (Some((main, form)), _) => known.extend(is_known_form(main, form).then(|| parameter.to_owned())),
            (None, Some(38 | 48)) => known.extend(long_color(parameter, &mut rest)),
            (None, Some(0..=7 | 9 | 21..=37 | 39..=47 | 49 | 90..=107)) => known.push(parameter.to_owned()),
            (None, Some(_) | None) => {}
        }
    }
    (!known.is_empty()).then(|| known.join(";"))
}

/// An absent number means 0.
fn number(parameter: &str) -> Option<u32> {
    if parameter.is_empty() { Some(0) } else { parameter.parse().ok() }
}

/// `38:5:1`, `48:2::1:2:3`, and the underlines `4:0` to `4:5`.
fn is_known_form(main: &str, form: &str) -> bool {
    let kind = form.split(':').next().and_then(number);
    match number(main) {
        Some(38 | 48) => matches!(kind, Some(2 | 5)),
        Some(4) => form.len() == 1 && matches!(kind, Some(0..=5)),
        Some(_) | None => false,
    }
}

/// `38;5;1` or `48;2;1;2;3`; `None` if it is incomplete.
fn long_color<'t>(main: &str, rest: &mut impl Iterator<Item = &'t str>) -> Option<String> {
    let kind = rest.next()?;
    let components = match number(kind) {
        Some(2) => 3,
        Some(5) => 1,
        Some(_) | None => return None,
    };
    let values: Vec<&str> = rest.take(components).filter(|value| !value.contains(':')).collect();
    (values.len() == components).then(|| [&[main, kind], &values[..]].concat().join(";"))
}

/// The length of the colour that the text begins with: `ESC [`, numbers, `m`.
fn color_len(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.bytes().take_while(|byte| is_parameter(*byte)).count();
    let is_color = length <= MAX_COLOR_PARAMETERS && parameters.as_bytes().get(length) == Some(&b'm');
    is_color.then_some(2 + length + 1)
}

fn is_parameter(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b';' | b':')
}

/// How many bytes at the end may be completed by the bytes that follow: part of a line ending, a colour or a character.
fn incomplete_suffix_len(bytes: &[u8]) -> usize {
    if bytes.ends_with(b"\r") {
        return 1;
    }
    let parameters = bytes.iter().rev().take_while(|byte| is_parameter(**byte)).count();
    let before = &bytes[..bytes.len() - parameters];
    if parameters <= MAX_COLOR_PARAMETERS && before.ends_with(b"\x1b[") {
        return parameters + 2;
    }
    if bytes.ends_with(b"\x1b") {
        return 1;
    }
    incomplete_character_len(bytes)
}

/// How many bytes at the end may be the start of a character.
pub fn incomplete_character_len(bytes: &[u8]) -> usize {
    const LONGEST_CHARACTER: usize = 4;
    for length in 1..LONGEST_CHARACTER.min(bytes.len() + 1) {
        let last = &bytes[bytes.len() - length..];
        match std::str::from_utf8(last) {
            Ok(_) => return 0,
            Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => return length,
            Err(_) => {}
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::text::hostile::is_hostile;
    use proptest::collection::vec;
    use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use proptest::strategy::Strategy;

    fn shown(bytes: &[u8]) -> String {
        TerminalText::new(true).show(bytes)
    }

    #[test]
    fn control_characters_are_escaped() {
        for (bytes, expected) in [
            (&b"plain\ttext\n"[..], "plain\ttext\n"),
            (b"dos\r\nline\r\n", "dos\nline\n"),
            (b"10%\r20%", "10%\\r20%"),
            (b"\xff\x00\xc3", "\\xff\\u{0}\\xc3"),
            ("\u{202e}ä\u{9b}".as_bytes(), "\\u{202e}ä\\u{9b}"),
            (b"\x1b[2J\x1b]0;title\x07\x1b[31", "\\u{1b}[2J\\u{1b}]0;title\\u{7}\\u{1b}[31"),
            (b"\x1b[31;1Hx\x1b[?25lx\x1b[1 mx", "\\u{1b}[31;1Hx\\u{1b}[?25lx\\u{1b}[1 mx"),
        ] {
            assert_eq!(shown(bytes), expected);
        }
        let long = format!("\u{1b}[{}m", "1".repeat(MAX_COLOR_PARAMETERS + 1));
        assert!(shown(long.as_bytes()).starts_with("\\u{1b}["));
    }

    #[test]
    fn colors_are_kept_and_reset_where_they_are_left_on() {
        for (bytes, expected) in [
            ("\u{1b}[31mred\u{1b}[0m.", "\u{1b}[31mred\u{1b}[0m."),
            ("\u{1b}[31mred\u{1b}[m.", "\u{1b}[31mred\u{1b}[m."),
            ("\u{1b}[31mred", "\u{1b}[31mred\u{1b}[0m"),
            ("\u{1b}[38:2::1:2:3;1mx", "\u{1b}[38:2::1:2:3;1mx\u{1b}[0m"),
            ("\u{1b}[0;32mx", "\u{1b}[0;32mx\u{1b}[0m"),
        ] {
            assert_eq!(shown(bytes.as_bytes()), expected);
        }
        assert_eq!(TerminalText::new(false).show(b"\x1b[31mred\x1b[0m\x1b[2J"), "red\\u{1b}[2J");
    }

    #[test]
    fn only_known_attributes_are_passed_on_and_none_that_hides_text() {
        for (typed, known) in [
            ("8", None),
            ("08", None),
            ("1;8", Some("1")),
            ("8;31", Some("31")),
            ("", Some("")),
            ("0;32", Some("0;32")),
            ("38;5;8", Some("38;5;8")),
            ("48;2;8;8;8;4", Some("48;2;8;8;8;4")),
            ("38;5;8;8", Some("38;5;8")),
            ("38;5", None),
            ("38;8;1", Some("1")),
            ("38:2::1:2:3;1", Some("38:2::1:2:3;1")),
            ("4:3", Some("4:3")),
            ("8:1", None),
            ("10;50;108;99999999999", None),
            ("107;29;9", Some("107;29;9")),
        ] {
            assert_eq!(known_parameters(typed).as_deref(), known, "{typed}");
        }
        assert_eq!(shown(b"a\x1b[8mb\x1b[1;8mc"), "ab\u{1b}[1mc\u{1b}[0m");
    }

    #[test]
    fn a_color_lasts_until_it_is_reset_across_pieces() {
        let mut text = TerminalText::new(true);
        assert_eq!(text.push(b"a\x1b[3"), "a");
        assert_eq!(text.push(b"1mb\n"), "\u{1b}[31mb\n\u{1b}[0m");
        assert_eq!(text.push(b"c"), "\u{1b}[31mc\u{1b}[0m");
        assert_eq!(text.push(b"\x1b[0md"), "\u{1b}[31m\u{1b}[0md");
        assert_eq!(text.push(b"e\x1b"), "e");
        assert_eq!(text.finish(), "\\u{1b}");
    }

    #[test]
    fn what_may_continue_is_held_back() {
        for (bytes, expected) in [
            (&b""[..], 0),
            (b"a", 0),
            ("ä".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"\xe2\x82", 2),
            (b"x\xf0\x9f\x98", 3),
            (b"\xff", 0),
            (b"\x80\x80", 0),
            (b"\xc3\xff", 0),
            (b"\xf0\x9f\x98\x80", 0),
        ] {
            assert_eq!(incomplete_character_len(bytes), expected, "{bytes:?}");
            assert_eq!(incomplete_suffix_len(bytes), expected, "{bytes:?}");
        }
        for (bytes, expected) in [
            (&b"a\r"[..], 1),
            (b"a\x1b", 1),
            (b"a\x1b[", 2),
            (b"a\x1b[1;3", 5),
            (b"a\x1b[1m", 0),
            (b"a12", 0),
        ] {
            assert_eq!(incomplete_suffix_len(bytes), expected, "{bytes:?}");
        }
    }

    /// The text without its colours, and whether one of them is on at the end.
    fn without_colors(mut text: &str) -> (String, bool) {
        let (mut plain, mut is_on) = (String::new(), false);
        while let Some(at) = text.find(ESCAPE) {
            plain.push_str(&text[..at]);
            let length = color_len(&text[at..]).expect("only colours have an escape character");
            is_on = !text[at + 2..at + length - 1].bytes().all(|byte| matches!(byte, b'0' | b';'));
            text = &text[at + length..];
        }
        (plain + text, is_on)
    }

    fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let piece = prop_oneof![
            vec(any::<u8>(), 0..40),
            Just(b"\x1b[31m".to_vec()),
            Just(b"\x1b[".to_vec()),
            Just(b"0m".to_vec()),
            "\u{1b}\\[[0-9;:]{0,60}[mHJ]".prop_map(String::into_bytes),
            "\\PC{0,10}".prop_map(String::into_bytes),
        ];
        vec(piece, 0..12)
    }

    proptest! {
        #[test]
        fn only_text_lines_tabs_and_colors_reach_a_terminal(pieces in pieces()) {
            let (mut colored, mut plain) = (TerminalText::new(true), TerminalText::new(false));
            let mut shown: Vec<(String, String)> =
                pieces.iter().map(|piece| (colored.push(piece), plain.push(piece))).collect();
            shown.push((colored.finish(), plain.finish()));
            for (with_colors, without) in shown {
                let (text, is_on) = without_colors(&with_colors);
                prop_assert!(!is_on, "{with_colors:?} leaves a colour on");
                prop_assert!(!text.contains(|c| is_hostile(c) && c != '\n' && c != '\t'), "{text:?}");
                prop_assert_eq!(text, without);
            }
        }
    }
}

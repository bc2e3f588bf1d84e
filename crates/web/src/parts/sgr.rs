//! Output with colours as text and classes: the colours that a terminal would show, and every other escape visible or,
//! if it only moves the cursor, dropped. Nothing that a command prints becomes markup.

use maud::{Markup, html};

use domain::text::hostile::printable;

/// More of a line than this is not shown.
const MAX_CHARS: usize = 4_000;

/// The look of text, which lasts until the next escape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a terminal combines them freely")]
pub(crate) struct Look {
    /// One of the sixteen colours; those of larger palettes become the nearest.
    front: Option<u8>,
    back: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// A part of a line with one look.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    look: Look,
    text: String,
}

/// A line; `look` is that of the line before, and afterwards that of the next one.
pub(crate) fn line(bytes: &[u8], look: &mut Look) -> Markup {
    let text = String::from_utf8_lossy(bytes);
    let text = last_state(&text);
    let (text, left) = match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => (&text[..at], text.len() - at),
        None => (text, 0),
    };
    let runs = runs(text, look);
    html! {
        @for run in &runs {
            @match run.look.classes() {
                Some(classes) => span class=(classes) { (run.text) },
                None => (run.text),
            }
        }
        @if left > 0 { span .cut { " … " (left) " more bytes" } }
    }
}

/// The look after a line that is not shown.
pub(crate) fn follow(bytes: &[u8], look: &mut Look) {
    let _ = runs(last_state(&String::from_utf8_lossy(bytes)), look);
}

/// What a terminal shows of a line that was overwritten.
fn last_state(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit_once('\r').map_or(line, |(_, last)| last)
}

fn runs(text: &str, look: &mut Look) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut add = |look: Look, text: &str| {
        if text.is_empty() {
            return;
        }
        let text = printable_with_tabs(text);
        match runs.last_mut() {
            Some(last) if last.look == look => last.text.push_str(&text),
            _ => runs.push(Run { look, text }),
        }
    };
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        add(*look, &rest[..at]);
        let escape = &rest[at + 1..];
        rest = match sequence(escape) {
            Some((parameters, b'm', after)) => {
                look.change(parameters);
                after
            }
            // The cursor and what it erases have no meaning here.
            Some((_, b'A'..=b'H' | b'J' | b'K' | b'h' | b'l' | b's' | b'u', after)) => after,
            Some(_) | None => {
                add(*look, "␛");
                escape
            }
        };
    }
    add(*look, rest);
    runs
}

fn printable_with_tabs(text: &str) -> String {
    text.split('\t').map(|part| printable(part).into_owned()).collect::<Vec<_>>().join("\t")
}

/// The parameters of `[…m`, its last byte, and what follows.
fn sequence(escape: &str) -> Option<(&str, u8, &str)> {
    let body = escape.strip_prefix('[')?;
    let end = body.bytes().position(|byte| (0x40..=0x7e).contains(&byte))?;
    let (parameters, last) = (&body[..end], body.as_bytes()[end]);
    let is_plain = parameters.bytes().all(|byte| (0x20..=0x3f).contains(&byte));
    is_plain.then(|| (parameters, last, &body[end + 1..]))
}

impl Look {
    fn change(&mut self, parameters: &str) {
        let mut codes = parameters.split([';', ':']).map(|code| code.parse::<u16>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.reverse = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.reverse = false,
                30..=37 => self.front = Some(low(code - 30)),
                38 => self.front = palette(&mut codes).or(self.front),
                39 => self.front = None,
                40..=47 => self.back = Some(low(code - 40)),
                48 => self.back = palette(&mut codes).or(self.back),
                49 => self.back = None,
                90..=97 => self.front = Some(low(code - 90 + 8)),
                100..=107 => self.back = Some(low(code - 100 + 8)),
                _ => {}
            }
        }
    }

    fn classes(self) -> Option<String> {
        let mut classes: Vec<String> = Vec::new();
        classes.extend(self.front.map(|colour| format!("f{colour}")));
        classes.extend(self.back.map(|colour| format!("b{colour}")));
        let flags = [
            (self.bold, "bold"),
            (self.dim, "dim"),
            (self.italic, "ital"),
            (self.underline, "undl"),
            (self.reverse, "rev"),
        ];
        classes.extend(flags.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name.to_owned()));
        (!classes.is_empty()).then(|| classes.join(" "))
    }
}

fn low(code: u16) -> u8 {
    u8::try_from(code).unwrap_or(0)
}

/// A colour of the 256, or of all, as one of sixteen.
fn palette(codes: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match codes.next()? {
        5 => Some(match codes.next()? {
            code @ 0..=15 => low(code),
            code @ 16..=231 => {
                let level = |part: u16| if part == 0 { 0 } else { part * 40 + 55 };
                let cube = code - 16;
                nearest(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
            }
            code => {
                let grey = (code.min(255) - 232) * 10 + 8;
                nearest(grey, grey, grey)
            }
        }),
        2 => Some(nearest(codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}

/// The bits of a colour by its strongest parts, and whether it is bright.
fn nearest(red: u16, green: u16, blue: u16) -> u8 {
    let most = red.max(green).max(blue);
    if most < 48 {
        return 0;
    }
    let is_on = |part: u16| u8::from(part * 3 > most * 2);
    let colour = is_on(red) | is_on(green) << 1 | is_on(blue) << 2;
    match (colour, most) {
        (7, ..=127) => 8,
        (colour, ..=191) => colour,
        (colour, _) => colour + 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8]) -> String {
        line(text, &mut Look::default()).into_string()
    }

    #[test]
    fn colours_become_classes_and_text_stays_text() {
        for (printed, html) in [
            ("plain <b>&", "plain &lt;b&gt;&amp;"),
            ("\u{1b}[31mred\u{1b}[0m x", "<span class=\"f1\">red</span> x"),
            ("\u{1b}[1;92mok\u{1b}[m", "<span class=\"f10 bold\">ok</span>"),
            ("\u{1b}[38;5;196mx", "<span class=\"f9\">x</span>"),
            ("\u{1b}[38;2;0;0;255mx", "<span class=\"f12\">x</span>"),
            ("\u{1b}[2K\u{1b}[1Gdone", "done"),
            ("10%\r50%\r100%\r", "100%"),
            ("a\tb", "a\tb"),
        ] {
            assert_eq!(shown(printed.as_bytes()), html, "{printed:?}");
        }
    }

    #[test]
    fn other_escapes_and_hostile_characters_are_visible() {
        let link = shown(b"\x1b]8;;https://evil.example\x07click\x1b]8;;\x07");
        assert!(link.contains("␛]8;;https://evil.example\\u{7}click") && !link.contains("<a"), "{link}");
        assert_eq!(shown("\u{202e}exe\u{2028}".as_bytes()), "\\u{202e}exe\\u{2028}");
        assert_eq!(shown(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        assert_eq!(shown("\u{1b}[".as_bytes()), "␛[");
        let long = shown("x".repeat(1 << 20).as_bytes());
        assert!(long.len() < 2 * MAX_CHARS && long.contains("more bytes"));
    }

    #[test]
    fn a_look_lasts_over_the_end_of_a_line() {
        let mut look = Look::default();
        line(b"\x1b[33mbegin", &mut look);
        assert_eq!(line(b"end", &mut look).into_string(), "<span class=\"f3\">end</span>");
    }
}

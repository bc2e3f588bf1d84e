//! Output with colours as text and classes: the colours that a terminal would show, and every other escape visible or,
//! if it only moves the cursor, dropped. Nothing that a command prints becomes markup.

use maud::{Markup, html};

use domain::text::hostile::printable;

/// More of a line than this is not shown.
const MAX_CHARS: usize = 4_000;

/// A colour that a theme has, so that it can be read. Those of larger palettes become the nearest hue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    /// One of the sixteen.
    Named(u8),
    /// A twelfth of the circle of hues, strong or pale.
    Hue { hue: u8, is_pale: bool },
}

impl Colour {
    fn classes(self, named: char, strong: &str, pale: &str, hues: char) -> String {
        match self {
            Self::Named(number) => format!("{named}{number}"),
            Self::Hue { hue, is_pale } => format!("{} {hues}{hue}", if is_pale { pale } else { strong }),
        }
    }
}

/// The look of text, which lasts until the next escape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a terminal combines them freely")]
pub(crate) struct Look {
    front: Option<Colour>,
    back: Option<Colour>,
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
                30..=37 => self.front = Some(named(code - 30)),
                38 => self.front = palette(&mut codes).or(self.front),
                39 => self.front = None,
                40..=47 => self.back = Some(named(code - 40)),
                48 => self.back = palette(&mut codes).or(self.back),
                49 => self.back = None,
                90..=97 => self.front = Some(named(code - 90 + 8)),
                100..=107 => self.back = Some(named(code - 100 + 8)),
                _ => {}
            }
        }
    }

    fn classes(self) -> Option<String> {
        let mut classes: Vec<String> = Vec::new();
        classes.extend(self.front.map(|colour| colour.classes('f', "fh", "fp", 'h')));
        classes.extend(self.back.map(|colour| colour.classes('b', "bh", "bh", 'k')));
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

fn named(code: u16) -> Colour {
    Colour::Named(u8::try_from(code).unwrap_or(0))
}

/// A colour of the 256, or of all.
fn palette(codes: &mut impl Iterator<Item = u16>) -> Option<Colour> {
    match codes.next()? {
        5 => Some(match codes.next()? {
            code @ 0..=15 => named(code),
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

/// The hue of a colour in twelfths of the circle: 0 is red, 4 green, 8 blue. What has hardly any is one of the greys.
fn nearest(red: u16, green: u16, blue: u16) -> Colour {
    let [red, green, blue] = [red, green, blue].map(|part| i32::from(part.min(255)));
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let spread = most - least;
    if most < 48 || spread * 6 < most {
        return named(match most {
            ..=47 => 0,
            48..=127 => 8,
            128..=191 => 7,
            _ => 15,
        });
    }
    // In sixtieths of a twelfth, from the strongest part to its neighbours.
    let towards = |from: i32, to: i32| (from - to) * 120 / spread;
    let hue = if most == red {
        towards(green, blue)
    } else if most == green {
        240 + towards(blue, red)
    } else {
        480 + towards(red, green)
    };
    let hue = u8::try_from((hue + 30).rem_euclid(720) / 60).unwrap_or(0);
    Colour::Hue { hue, is_pale: spread * 2 < most }
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
            ("\u{1b}[38;5;196mx", "<span class=\"fh h0\">x</span>"),
            ("\u{1b}[38;5;11mx", "<span class=\"f11\">x</span>"),
            ("\u{1b}[38;5;244mx", "<span class=\"f7\">x</span>"),
            ("\u{1b}[38;2;0;0;255mx", "<span class=\"fh h8\">x</span>"),
            ("\u{1b}[38:2:255:140:0mx", "<span class=\"fh h1\">x</span>"),
            ("\u{1b}[38;2;180;200;180;48;2;250;0;100mx", "<span class=\"f15 bh k11\">x</span>"),
            ("\u{1b}[38;2;150;220;150mx", "<span class=\"fp h4\">x</span>"),
            ("\u{1b}[38;2;999;0;70000mx", "<span class=\"fh h0\">x</span>"),
            ("\u{1b}[2K\u{1b}[1Gdone", "done"),
            ("10%\r50%\r100%\r", "100%"),
            ("a\tb", "a\tb"),
        ] {
            assert_eq!(shown(printed.as_bytes()), html, "{printed:?}");
        }
    }

    #[test]
    fn every_colour_of_a_large_palette_has_a_class_of_the_style() {
        let style = include_str!("../../assets/queuectl.css");
        let mut hues = std::collections::BTreeSet::new();
        for code in 16..=255 {
            for kind in [38, 48] {
                let shown = shown(format!("\u{1b}[{kind};5;{code}mx").as_bytes());
                let classes = shown.split('"').nth(1).expect("a class").to_owned();
                for class in classes.split(' ').filter(|class| !class.starts_with('b') || *class == "bh") {
                    assert!(
                        style.contains(&format!(".{class} "))
                            || style.contains(&format!(".{class},"))
                            || style.contains(&format!(".{class}{{")),
                        "{class} of {code}"
                    );
                    hues.insert(class.to_owned());
                }
            }
        }
        assert!(
            (0..12).all(|hue| hues.contains(&format!("h{hue}")) && hues.contains(&format!("k{hue}"))),
            "{hues:?}"
        );
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

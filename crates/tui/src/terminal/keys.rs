//! What the user pressed, from the bytes that a terminal sends.

/// A key, or an act of the mouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Key(Key),
    Mouse(Mouse),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// With the letter in lower case.
    Ctrl(char),
    Enter,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

/// Columns and rows count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mouse {
    Click { x: u16, y: u16 },
    WheelUp,
    WheelDown,
}

/// Everything in these bytes. A lone escape character is the key; what is no known sequence is left out. The bytes of
/// one key arrive in one read.
pub(crate) fn parse(bytes: &[u8]) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let (input, taken) = match first {
            0x1b => parse_escape(rest),
            b'\r' | b'\n' => (Some(Input::Key(Key::Enter)), 1),
            b'\t' => (Some(Input::Key(Key::Tab)), 1),
            0x08 | 0x7f => (Some(Input::Key(Key::Backspace)), 1),
            0x01..=0x1a => (Some(Input::Key(Key::Ctrl(char::from(first - 1 + b'a')))), 1),
            0x00 | 0x1c..=0x1f => (None, 1),
            0x20..=0xff => parse_character(rest),
        };
        inputs.extend(input);
        rest = &rest[taken..];
    }
    inputs
}

fn parse_character(bytes: &[u8]) -> (Option<Input>, usize) {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match text.chars().next() {
        Some(character) => (Some(Input::Key(Key::Char(character))), character.len_utf8()),
        None => (None, 1),
    }
}

/// `ESC [ … letter`, `ESC O letter`, or the key itself. A letter after the key means the key with Alt, which has no
/// meaning here: the key itself counts.
fn parse_escape(bytes: &[u8]) -> (Option<Input>, usize) {
    match bytes.get(1) {
        Some(b'[') => {
            let body = &bytes[2..];
            let Some(end) = body.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
                return (None, bytes.len());
            };
            (control_sequence(&body[..end], body[end]), end + 3)
        }
        Some(b'O') => (bytes.get(2).and_then(|last| cursor_key(*last)).map(Input::Key), bytes.len().min(3)),
        Some(_) | None => (Some(Input::Key(Key::Escape)), 1),
    }
}

fn control_sequence(parameters: &[u8], last: u8) -> Option<Input> {
    let text = std::str::from_utf8(parameters).ok()?;
    match (text.strip_prefix('<'), last) {
        (Some(mouse), b'M') => parse_mouse(mouse).map(Input::Mouse),
        (Some(_), _) => None,
        (None, b'~') => {
            let number = text.split(';').next()?;
            Some(Input::Key(match number {
                "1" | "7" => Key::Home,
                "4" | "8" => Key::End,
                "3" => Key::Delete,
                "5" => Key::PageUp,
                "6" => Key::PageDown,
                _ => return None,
            }))
        }
        (None, b'Z') => Some(Input::Key(Key::BackTab)),
        (None, last) => cursor_key(last).map(Input::Key),
    }
}

fn cursor_key(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

/// `button;column;row`, with columns and rows from 1.
fn parse_mouse(text: &str) -> Option<Mouse> {
    let mut numbers = text.split(';').map(str::parse::<u16>);
    let (button, x, y) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    match button {
        0 => Some(Mouse::Click { x: x.checked_sub(1)?, y: y.checked_sub(1)? }),
        64 => Some(Mouse::WheelUp),
        65 => Some(Mouse::WheelDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let key = |input| match input {
            Input::Key(key) => Some(key),
            Input::Mouse(_) => None,
        };
        parse(bytes).into_iter().filter_map(key).collect()
    }

    #[test]
    fn keys_and_their_sequences_are_read() {
        assert_eq!(keys(b"jG"), [Key::Char('j'), Key::Char('G')]);
        assert_eq!(keys("ä漢".as_bytes()), [Key::Char('ä'), Key::Char('漢')]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1b[A\x1b[6~\x1bOB\x1b[1;5H"), [Key::Up, Key::PageDown, Key::Down, Key::Home]);
        assert_eq!(
            keys(b"\x04\x15\r\t\x1b[Z\x7f"),
            [Key::Ctrl('d'), Key::Ctrl('u'), Key::Enter, Key::Tab, Key::BackTab, Key::Backspace]
        );
    }

    #[test]
    fn unknown_sequences_are_left_out() {
        for bytes in
            [&b"\x1b[99x"[..], b"\x1b[", b"\x1b[<0;1;1m", b"\x1b[<0;0;0M", b"\x1b[<:;1;1M", b"\xff", b"\0"]
        {
            assert_eq!(parse(bytes), [], "{bytes:?}");
        }
    }

    #[test]
    fn clicks_and_the_wheel_are_read() {
        assert_eq!(parse(b"\x1b[<0;12;3M"), [Input::Mouse(Mouse::Click { x: 11, y: 2 })]);
        assert_eq!(
            parse(b"\x1b[<64;1;1M\x1b[<65;1;1M"),
            [Input::Mouse(Mouse::WheelUp), Input::Mouse(Mouse::WheelDown)]
        );
    }
}

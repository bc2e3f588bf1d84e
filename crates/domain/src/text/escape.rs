//! JSON output whose strings cannot control a terminal.

use std::io::{self, Write};

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer as _};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use super::hostile::is_hostile;

/// Writes JSON: indented if `pretty`, otherwise compact.
pub fn write_json(out: &mut dyn Write, value: &impl Serialize, pretty: bool) -> io::Result<()> {
    if pretty {
        value.serialize(&mut Serializer::with_formatter(out, Escaping(PrettyFormatter::new())))?;
    } else {
        value.serialize(&mut Serializer::with_formatter(out, Escaping(CompactFormatter)))?;
    }
    Ok(())
}

/// Writes an array element by element, without holding all elements in memory.
pub fn write_json_array<T: Serialize, E: From<io::Error>>(
    out: &mut dyn Write,
    elements: impl Iterator<Item = Result<T, E>>,
    pretty: bool,
) -> Result<(), E> {
    if pretty {
        write_elements(&mut Serializer::with_formatter(out, Escaping(PrettyFormatter::new())), elements)
    } else {
        write_elements(&mut Serializer::with_formatter(out, Escaping(CompactFormatter)), elements)
    }
}

fn write_elements<W: Write, F: Formatter, T: Serialize, E: From<io::Error>>(
    serializer: &mut Serializer<W, F>,
    elements: impl Iterator<Item = Result<T, E>>,
) -> Result<(), E> {
    let failed = |error: serde_json::Error| E::from(error.into());
    let mut array = serializer.serialize_seq(None).map_err(failed)?;
    for element in elements {
        array.serialize_element(&element?).map_err(failed)?;
    }
    array.end().map_err(failed)
}

/// Enough for most answers.
const JSON_CAPACITY: usize = 1 << 10;

/// Compact JSON, on one line.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<String> {
    // Most of it is pieces of a few bytes, so the vector is no `dyn Write`.
    let mut text = Vec::with_capacity(JSON_CAPACITY);
    value.serialize(&mut Serializer::with_formatter(&mut text, Escaping(CompactFormatter)))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// Escapes hostile characters in strings and delegates the layout to another formatter.
struct Escaping<F>(F);

impl<F: Formatter> Formatter for Escaping<F> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        // Nearly all text, without looking at each character.
        if fragment.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return out.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(is_hostile) {
            out.write_all(&rest.as_bytes()[..at])?;
            let hostile_len = rest[at..].chars().next().map_or(1, |character| {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
                character.len_utf8()
            });
            rest = &rest[at + hostile_len..];
        }
        out.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

//! A command with placeholders, filled in from each line of a file or each argument.
//!
//! The command is either words or a line for the shell. In words, placeholders are filled in before the words are quoted for
//! the shell; in a line, each value is quoted by itself (see `shell_line`). So a value cannot become more than a part of one
//! word, whatever it contains.

mod placeholder;
mod shell_line;

use self::placeholder::{Form, Slot, View, form_at};
use crate::text::nearest::suggestion;
use crate::text::shell::quote_words;

/// The placeholders for lines, as they are named in errors.
pub const PLACEHOLDERS: &str = "{}, {.}, {/}, {//}, {/.} and {#}";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    command: Command,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Command {
    Words(Vec<Vec<Piece>>),
    /// For the shell; every value is quoted.
    Line(Vec<Piece>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Slot(Slot),
}

impl Piece {
    fn fill(&self, number: u64, fields: &[&str]) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Slot(slot) => slot.fill(number, fields),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("unknown column `{typed}`; {suggestion}")]
    UnknownColumn { typed: String, suggestion: String },
    #[error("`{{}}` does not name a column; write {{1}}, or {{name}} for a name in the header")]
    NoName,
    #[error("unmatched brace in `{word}`; write {{{{ or }}}} for a literal brace")]
    LoneBrace { word: String },
    #[error("the command does not use any column; write {{1}}, or {{name}} for a name in the header")]
    NoColumn,
    #[error(
        "unknown placeholder `{form}`; the known ones are {PLACEHOLDERS}, and `{{{form}}}` is a literal `{form}`"
    )]
    UnknownPlaceholder { form: String },
    #[error("`{form}` cannot be filled in safely here: {why}")]
    Unquotable { form: String, why: &'static str },
    #[error("the command line needs a {{}} where the value belongs: {why}")]
    NoPlace { why: &'static str },
    #[error("the unique key `{key}` is the same for every item, so only the first would be enqueued")]
    SameKey { key: String },
}

/// A unique key with placeholders: each item has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    pieces: Vec<Piece>,
}

impl KeyTemplate {
    /// As [`Template::for_lines`].
    pub fn for_lines(key: &str) -> Result<Self, TemplateError> {
        Self::new(key, cut_at_lines(key)?)
    }

    /// As [`Template::for_columns`].
    pub fn for_columns(key: &str, columns: &[&str]) -> Result<Self, TemplateError> {
        Self::new(key, cut_at_columns(key, columns)?)
    }

    fn new(key: &str, pieces: Vec<Piece>) -> Result<Self, TemplateError> {
        if has_slot(pieces.iter()) {
            Ok(Self { pieces })
        } else {
            Err(TemplateError::SameKey { key: key.to_owned() })
        }
    }

    /// The key for these fields; `number` counts the lines from 1.
    pub fn fill(&self, number: u64, fields: &[&str]) -> String {
        self.pieces.iter().map(|piece| piece.fill(number, fields)).collect()
    }
}

impl Template {
    /// Words with [`PLACEHOLDERS`]. Other braces are literal, unless they look like a placeholder. Without a placeholder,
    /// the line becomes the last word.
    pub fn for_lines(words: &[String]) -> Result<Self, TemplateError> {
        let mut words: Vec<Vec<Piece>> =
            words.iter().map(|word| cut_at_lines(word)).collect::<Result<_, _>>()?;
        if !has_slot(words.iter().flatten()) {
            words.push(vec![Piece::Slot(Slot::LINE)]);
        }
        Ok(Self { command: Command::Words(words) })
    }

    /// As [`Self::for_lines`], for a line that the shell interprets.
    pub fn for_shell_line(line: &str) -> Result<Self, TemplateError> {
        Ok(Self { command: Command::Line(shell_line::cut(line)?) })
    }

    /// `{2}` and `{name}` are columns, `{#}` is the number of the row; `{{` and `}}` are literal braces.
    pub fn for_columns(words: &[String], columns: &[&str]) -> Result<Self, TemplateError> {
        let words: Vec<Vec<Piece>> =
            words.iter().map(|word| cut_at_columns(word, columns)).collect::<Result<_, _>>()?;
        let is_field = |piece: &Piece| matches!(piece, Piece::Slot(Slot::Field { .. }));
        if words.iter().flatten().any(is_field) {
            return Ok(Self { command: Command::Words(words) });
        }
        Err(TemplateError::NoColumn)
    }

    /// The command line for these fields; `number` counts the lines from 1.
    pub fn fill(&self, number: u64, fields: &[&str]) -> String {
        let fill = |piece: &Piece| piece.fill(number, fields);
        match &self.command {
            Command::Words(words) => {
                let words: Vec<String> = words.iter().map(|word| word.iter().map(fill).collect()).collect();
                quote_words(&words)
            }
            Command::Line(pieces) => {
                let quoted = |piece: &Piece| match piece {
                    Piece::Text(text) => text.clone(),
                    Piece::Slot(_) => quote_words(&[fill(piece)]),
                };
                pieces.iter().map(quoted).collect()
            }
        }
    }
}

fn has_slot<'p>(mut pieces: impl Iterator<Item = &'p Piece>) -> bool {
    pieces.any(|piece| matches!(piece, Piece::Slot(_)))
}

fn cut_at_lines(word: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[take_form(rest, &mut text, &mut pieces)?..];
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

/// Takes the form at the start of `rest`, which is a brace, and returns its length. `text` is the text before it.
fn take_form(rest: &str, text: &mut String, pieces: &mut Vec<Piece>) -> Result<usize, TemplateError> {
    match form_at(rest, text.chars().next_back()) {
        Form::Text => {
            text.push('{');
            Ok(1)
        }
        Form::Literal { form, len } => {
            text.push_str(form);
            Ok(len)
        }
        Form::Slot { slot, len } => {
            pieces.push(Piece::Text(std::mem::take(text)));
            pieces.push(Piece::Slot(slot));
            Ok(len)
        }
        Form::Unknown { form } => Err(TemplateError::UnknownPlaceholder { form: form.to_owned() }),
    }
}

fn cut_at_columns(word: &str, columns: &[&str]) -> Result<Vec<Piece>, TemplateError> {
    let unmatched = || TemplateError::LoneBrace { word: word.to_owned() };
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        let brace = &rest[at..=at];
        pieces.push(Piece::Text(rest[..at].to_owned()));
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            pieces.push(Piece::Text(brace.to_owned()));
            rest = after;
        } else {
            let (name, after) = rest.split_once('}').filter(|_| brace == "{").ok_or_else(unmatched)?;
            pieces.push(Piece::Slot(find_column(name, columns)?));
            rest = after;
        }
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

/// Finds a column by its name, or by its number, counted from 1.
fn find_column(typed: &str, columns: &[&str]) -> Result<Slot, TemplateError> {
    if typed.is_empty() {
        return Err(TemplateError::NoName);
    }
    if let Some(at) = columns.iter().position(|name| *name == typed) {
        return Ok(Slot::Field { at, view: View::Whole });
    }
    if typed == "#" {
        return Ok(Slot::Number);
    }
    match typed.parse::<usize>() {
        Ok(number) if (1..=columns.len()).contains(&number) => {
            Ok(Slot::Field { at: number - 1, view: View::Whole })
        }
        Ok(_) | Err(_) => Err(TemplateError::UnknownColumn {
            typed: typed.to_owned(),
            suggestion: suggestion(typed, "columns", columns),
        }),
    }
}

#[cfg(test)]
mod tests;

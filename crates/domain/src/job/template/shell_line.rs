//! Placeholders in a line for the shell.
//!
//! Each value is quoted for the shell. Inside quotes the quotes are closed before the value and opened again after it:
//! `"to {}"` becomes `"to "'a b'""`, which is still one word. This scanner knows quotes, comments and simple expansions.
//! Where the shell would read a value in another way (here-documents, backquotes, substitutions inside double quotes,
//! arithmetic), it refuses every placeholder that follows: a value must never be executed.

use super::placeholder::{Form, Slot, form_at};
use super::{Piece, TemplateError, has_slot, take_form};

const PASS_AS_ARGUMENT: &str = "pass the value as an argument instead: sh -c '… \"$1\" …' sh {}";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

struct Scanner<'l> {
    rest: &'l str,
    quote: Quote,
    text: String,
    pieces: Vec<Piece>,
    /// From here on values would not be safe.
    is_tangled: bool,
    in_comment: bool,
}

/// The pieces of the line. Without a placeholder, the value is added as its last word.
pub(super) fn cut(line: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut scanner = Scanner {
        rest: line,
        quote: Quote::None,
        text: String::new(),
        pieces: Vec::new(),
        is_tangled: false,
        in_comment: false,
    };
    while let Some(next) = scanner.rest.chars().next() {
        scanner.step(next)?;
    }
    scanner.finish()
}

impl Scanner<'_> {
    fn step(&mut self, next: char) -> Result<(), TemplateError> {
        if next == '{' {
            return self.brace();
        }
        if self.in_comment {
            self.in_comment = next != '\n';
            self.take(next.len_utf8());
            return Ok(());
        }
        let len = match (self.quote, next) {
            (Quote::Single, '\'') | (Quote::Double, '"') => self.enter(Quote::None),
            (Quote::None, '\'') => self.enter(Quote::Single),
            (Quote::None, '"') => self.enter(Quote::Double),
            (Quote::None | Quote::Double, '\\') => self.escaped(),
            (Quote::None | Quote::Double, '`') => self.tangle(1),
            (Quote::None | Quote::Double, '$') => self.expansion(),
            (Quote::None, '<') if self.rest.starts_with("<<") => self.tangle(2),
            (Quote::None, '(') if self.rest.starts_with("((") => self.tangle(2),
            (Quote::None, '#') if self.is_at_word_start() => {
                self.in_comment = true;
                1
            }
            (Quote::None | Quote::Single | Quote::Double, _) => next.len_utf8(),
        };
        self.take(len);
        Ok(())
    }

    fn take(&mut self, len: usize) {
        let (taken, rest) = self.rest.split_at(len);
        self.text.push_str(taken);
        self.rest = rest;
    }

    fn enter(&mut self, quote: Quote) -> usize {
        self.quote = quote;
        1
    }

    fn tangle(&mut self, len: usize) -> usize {
        self.is_tangled = true;
        len
    }

    /// A backslash and the character after it. A last one would escape what is added to the line.
    fn escaped(&mut self) -> usize {
        match self.rest[1..].chars().next() {
            Some(next) => 1 + next.len_utf8(),
            None => self.tangle(1),
        }
    }

    /// `$x`, `${x%y}` and, outside quotes, `$(…)`, whose content is scanned like the rest.
    fn expansion(&mut self) -> usize {
        let after = &self.rest[1..];
        match after.chars().next() {
            Some('{') => match after.find('}') {
                // `${}` is no expansion: the braces are a placeholder.
                Some(1) => 1,
                Some(end) if !after[1..end].contains(['\'', '"', '$', '`', '{', '\\']) => end + 2,
                Some(_) | None => self.tangle(1),
            },
            Some('(') if self.quote == Quote::None && !after.starts_with("((") => 2,
            Some('(') => self.tangle(1),
            Some('\'') if self.quote == Quote::None => self.tangle(2),
            Some(_) | None => 1,
        }
    }

    fn is_at_word_start(&self) -> bool {
        let before = self.text.chars().next_back().or(self.pieces.last().map(|_| 'x'));
        before.is_none_or(|before| before.is_whitespace() || ";&|()".contains(before))
    }

    fn brace(&mut self) -> Result<(), TemplateError> {
        if let Form::Slot { slot, len } = form_at(self.rest, self.text.chars().next_back()) {
            let why = if self.in_comment { "it is in a comment" } else { PASS_AS_ARGUMENT };
            if self.is_tangled || self.in_comment {
                return Err(TemplateError::Unquotable { form: self.rest[..len].to_owned(), why });
            }
            let quote = match self.quote {
                Quote::None => "",
                Quote::Single => "'",
                Quote::Double => "\"",
            };
            self.text.push_str(quote);
            self.pieces.push(Piece::Text(std::mem::replace(&mut self.text, quote.to_owned())));
            self.pieces.push(Piece::Slot(slot));
            self.rest = &self.rest[len..];
            return Ok(());
        }
        let len = take_form(self.rest, &mut self.text, &mut self.pieces)?;
        self.rest = &self.rest[len..];
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Piece>, TemplateError> {
        let has_slot = has_slot(self.pieces.iter());
        let why = match self.quote {
            Quote::Single | Quote::Double => Some("a quote is not closed"),
            Quote::None if has_slot => None,
            Quote::None if self.in_comment => Some("it ends with a comment"),
            Quote::None if self.is_tangled => Some("it cannot be added at the end safely"),
            Quote::None => None,
        };
        if let Some(why) = why {
            return Err(TemplateError::NoPlace { why });
        }
        if has_slot {
            self.pieces.push(Piece::Text(self.text));
        } else {
            self.text.push(' ');
            self.pieces.extend([Piece::Text(self.text), Piece::Slot(Slot::LINE)]);
        }
        Ok(self.pieces)
    }
}

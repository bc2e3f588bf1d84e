//! A command with placeholders, filled in from each line of a file.
//!
//! Placeholders are filled in word by word before the words are quoted for the shell, so that the content of a line cannot
//! become more than a part of one word.

use crate::text::nearest::suggestion;
use crate::text::shell::quote_words;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    words: Vec<Vec<Piece>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The field at this index.
    Field(usize),
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
}

impl Template {
    /// `{}` is the line and `{{}}` is a literal `{}`; everything else is literal. Without a placeholder, the line becomes the
    /// last word.
    pub fn for_lines(words: &[String]) -> Self {
        let mut words: Vec<Vec<Piece>> = words.iter().map(|word| cut_at_lines(word)).collect();
        let has_placeholder = words.iter().flatten().any(|piece| matches!(piece, Piece::Field(_)));
        if !has_placeholder {
            words.push(vec![Piece::Field(0)]);
        }
        Self { words }
    }

    /// `{2}` and `{name}` are columns; `{{` and `}}` are literal braces.
    pub fn for_columns(words: &[String], columns: &[&str]) -> Result<Self, TemplateError> {
        let words: Vec<Vec<Piece>> =
            words.iter().map(|word| cut_at_columns(word, columns)).collect::<Result<_, _>>()?;
        if words.iter().flatten().any(|piece| matches!(piece, Piece::Field(_))) {
            return Ok(Self { words });
        }
        Err(TemplateError::NoColumn)
    }

    /// The command line for these fields.
    pub fn fill(&self, fields: &[&str]) -> String {
        let fill = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Field(at) => fields.get(*at).copied().unwrap_or_default().to_owned(),
        };
        let words: Vec<String> = self.words.iter().map(|word| word.iter().map(fill).collect()).collect();
        quote_words(&words)
    }
}

fn cut_at_lines(word: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find("{}") {
        let is_literal = rest[..at].ends_with('{') && rest[at + 2..].starts_with('}');
        if is_literal {
            pieces.push(Piece::Text(format!("{}{{}}", &rest[..at - 1])));
            rest = &rest[at + 3..];
        } else {
            pieces.push(Piece::Text(rest[..at].to_owned()));
            pieces.push(Piece::Field(0));
            rest = &rest[at + 2..];
        }
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces
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
            pieces.push(Piece::Field(find_column(name, columns)?));
            rest = after;
        }
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

/// Finds a column by its name, or by its number, counted from 1.
fn find_column(typed: &str, columns: &[&str]) -> Result<usize, TemplateError> {
    if typed.is_empty() {
        return Err(TemplateError::NoName);
    }
    if let Some(at) = columns.iter().position(|name| *name == typed) {
        return Ok(at);
    }
    match typed.parse::<usize>() {
        Ok(number) if (1..=columns.len()).contains(&number) => Ok(number - 1),
        Ok(_) | Err(_) => Err(TemplateError::UnknownColumn {
            typed: typed.to_owned(),
            suggestion: suggestion(typed, "columns", columns),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_line_becomes_part_of_one_word() {
        for (command, line, filled) in [
            ("convert {} out/{}.jpg", "a b", "convert 'a b' 'out/a b.jpg'"),
            ("echo", "x; rm -rf /", "echo 'x; rm -rf /'"),
            ("echo {}", "it's", r"echo 'it'\''s'"),
            ("echo {}", "$(reboot)", "echo '$(reboot)'"),
            ("{} --version", "a=b", "'a=b' --version"),
            ("echo {{}} {}", "x", "echo '{}' x"),
            ("awk {print} {1} }{", "x", "awk '{print}' '{1}' '}{' x"),
            ("echo {}{}", "ab", "echo abab"),
            ("echo {}", "{}", "echo '{}'"),
            ("echo -- {}", "-n", "echo -- -n"),
        ] {
            assert_eq!(Template::for_lines(&words(command)).fill(&[line]), filled, "{command} with {line}");
        }
    }

    #[test]
    fn columns_are_named_by_header_or_by_number() {
        let columns = ["name", "address of", "3"];
        let fields = ["Ann", "1 Long St", "x"];
        for (command, filled) in [
            ("mail {name} {2}", "mail Ann '1 Long St'"),
            ("mail {1}@{3}", "mail Ann@x"),
            ("echo {{name}} {name}", "echo '{name}' Ann"),
        ] {
            let template = Template::for_columns(&words(command), &columns).expect(command);
            assert_eq!(template.fill(&fields), filled, "{command}");
        }
        let spaced = Template::for_columns(&["{address of}".to_owned()], &columns).expect("a column");
        assert_eq!(spaced.fill(&fields), "'1 Long St'");
    }

    #[test]
    fn an_invalid_placeholder_is_refused() {
        for (command, message) in [
            ("mail {nmae}", "did you mean `name`?"),
            ("mail {address}", "the columns are name, 3"),
            ("mail {4}", "unknown column `4`"),
            ("mail {0}", "unknown column `0`"),
            ("mail {}", "does not name a column"),
            ("mail {name", "unmatched brace"),
            ("mail name}", "unmatched brace"),
            ("mail name", "does not use any column"),
        ] {
            let error = Template::for_columns(&words(command), &["name", "3"]).expect_err(command);
            assert!(error.to_string().contains(message), "{command}: {error}");
        }
    }
}

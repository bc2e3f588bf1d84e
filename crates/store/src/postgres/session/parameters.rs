//! The parameters of a statement: SQLite's `?1` and `:name` become `$1` here.

use std::borrow::Cow;

/// A statement in PostgreSQL's syntax.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) sql: String,
    /// The names of the parameters in the order of their numbers, with the colon; empty for positional ones.
    pub(super) names: Vec<String>,
}

pub(super) fn numbered(sql: &str) -> Numbered {
    let mut result = Numbered { sql: String::with_capacity(sql.len()), names: Vec::new() };
    let mut rest = sql;
    while let Some(at) = rest.find(['\'', '"', '?', ':', '-']) {
        let (before, found) = rest.split_at(at);
        result.sql.push_str(before);
        let (token, replacement) = next_token(found, &mut result.names);
        result.sql.push_str(&replacement);
        rest = &found[token.len()..];
    }
    result.sql.push_str(rest);
    result
}

/// The token at the beginning of the text, and what stands for it.
fn next_token<'t>(text: &'t str, names: &mut Vec<String>) -> (&'t str, Cow<'t, str>) {
    let token = &text[..token_length(text)];
    match token.as_bytes() {
        [b'?', _, ..] => (token, format!("${}", &token[1..]).into()),
        [b':', first, ..] if *first != b':' => {
            let known = names.iter().position(|name| name == token);
            let number = known.unwrap_or_else(|| {
                names.push(token.to_owned());
                names.len() - 1
            });
            (token, format!("${}", number + 1).into())
        }
        _ => (token, token.into()),
    }
}

fn token_length(text: &str) -> usize {
    let run = |is_part: fn(char) -> bool| {
        text[1..].find(|c: char| !is_part(c)).map_or(text.len(), |length| length + 1)
    };
    match text.as_bytes() {
        // A doubled quote inside is the end of one literal and the beginning of the next, which comes to the same.
        [quote @ (b'\'' | b'"'), ..] => {
            text[1..].find(char::from(*quote)).map_or(text.len(), |length| length + 2)
        }
        [b'-', b'-', ..] => text.find('\n').unwrap_or(text.len()),
        [b':', b':', ..] => 2,
        [b':', ..] => run(|c| c.is_ascii_alphanumeric() || c == '_'),
        [b'?', ..] => run(|c| c.is_ascii_digit()),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_and_everything_else_is_kept() {
        for (sql, expected, names) in [
            ("select 1", "select 1", &[][..]),
            ("a = ?1 and b = ?12", "a = $1 and b = $12", &[]),
            ("a = :b or :b is null and c = :d_2", "a = $1 or $1 is null and c = $2", &[":b", ":d_2"]),
            ("':a' || x || 'it''s :b' || :c", "':a' || x || 'it''s :b' || $1", &[":c"]),
            ("x::json -> 'a' ? 1", "x::json -> 'a' ? 1", &[]),
            ("-- don't :mind\n:x", "-- don't :mind\n$1", &[":x"]),
            ("\"odd ?1\" - ?1", "\"odd ?1\" - $1", &[]),
            ("1 - 2", "1 - 2", &[]),
        ] {
            let names = names.iter().map(ToString::to_string).collect();
            assert_eq!(numbered(sql), Numbered { sql: expected.to_owned(), names }, "{sql}");
        }
    }
}

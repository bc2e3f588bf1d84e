//! The query of a request.

use std::fmt::{Display, Write};
use std::str::FromStr;

use axum::http::StatusCode;

use crate::problem::Problem;
use domain::text::nearest::nearest;

/// The longest query.
pub(crate) const MAX_QUERY_BYTES: usize = 8 << 10;

/// A parameter that a route takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    /// Its JSON schema.
    pub(crate) schema: &'static str,
    pub(crate) about: &'static str,
}

pub(crate) const TEXT: &str = r#"{"type":"string"}"#;
pub(crate) const NUMBER: &str = r#"{"type":"integer","minimum":0}"#;
pub(crate) const INTEGER: &str = r#"{"type":"integer"}"#;
pub(crate) const TIME: &str = r#"{"type":"string","format":"date-time"}"#;

impl Param {
    pub(crate) const fn new(name: &'static str, schema: &'static str, about: &'static str) -> Self {
        Self { name, schema, about }
    }
}

/// The decoded parameters, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Refuses parameters that the route does not take: a mistyped filter must not select every job.
    pub(crate) fn parse(text: &str, known: &[&[Param]]) -> Result<Self, Problem> {
        if text.len() > MAX_QUERY_BYTES {
            let detail = format!("the query is longer than {MAX_QUERY_BYTES} bytes");
            return Err(Problem::new(StatusCode::URI_TOO_LONG, "query_too_long", detail));
        }
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode(name, true), decode(value, true)) else {
                return Err(Problem::new(
                    StatusCode::BAD_REQUEST,
                    "malformed",
                    "the query is not valid UTF-8",
                ));
            };
            let names = || known.iter().flat_map(|group| group.iter()).map(|param| param.name);
            if !names().any(|known| known == name) {
                return Err(unknown(&name, names()));
            }
            if pairs.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Problem::invalid(format!("the parameter `{name}` is given twice")));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// The value of a parameter, unless it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn read<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let read = |value: &str| {
            value.parse().map_err(|error| Problem::invalid(format!("invalid {name} `{value}` ({error})")))
        };
        self.get(name).map(read).transpose()
    }

    /// A number of at most `max`.
    pub(crate) fn bounded(&self, name: &str, default: usize, max: usize) -> Result<usize, Problem> {
        let value = self.read(name)?.unwrap_or(default);
        if !(1..=max).contains(&value) {
            return Err(Problem::invalid(format!("`{name}` must be from 1 to {max}")));
        }
        Ok(value)
    }

    /// The parameters that have a value.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        pairs.filter(|(_, value)| !value.is_empty())
    }

    /// The same query with one parameter changed, encoded.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let kept = self.0.iter().filter(|(known, _)| known != name);
        let pairs = kept.map(|(name, value)| (name.as_str(), value.as_str())).chain([(name, value)]);
        pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Problem {
    let known: Vec<&str> = known.collect();
    let problem = Problem::invalid(format!("unknown parameter `{name}`"));
    match nearest(name, known.iter().copied()) {
        Some(nearest) => problem.with_hint(format!("did you mean `{nearest}`?")),
        None if known.is_empty() => problem.with_hint("this resource takes no parameters"),
        None => problem.with_hint(format!("the parameters are {}", known.join(", "))),
    }
}

/// `None` if it is not UTF-8, or if an escape is incomplete.
pub(crate) fn decode(text: &str, plus_is_blank: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit =
                    |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                (digit(rest.next()?)? << 4) | digit(rest.next()?)?
            }
            b'+' if plus_is_blank => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Encodes everything but the unreserved characters.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&[Param]] = &[&[Param::new("queue", TEXT, ""), Param::new("limit", NUMBER, "")]];

    #[test]
    fn a_query_is_decoded_and_encoded_again() {
        let query = Query::parse("queue=a%20b%2Bc+d&limit=5", KNOWN).expect("valid");
        assert_eq!(query.get("queue"), Some("a b+c d"));
        assert_eq!(query.bounded("limit", 1, 10).expect("a number"), 5);
        assert_eq!(query.with("limit", "é&"), "queue=a%20b%2Bc%20d&limit=%C3%A9%26");
    }

    #[test]
    fn what_a_route_does_not_take_is_refused() {
        for (query, status) in [
            ("queu=a", StatusCode::UNPROCESSABLE_ENTITY),
            ("limit=1&limit=2", StatusCode::UNPROCESSABLE_ENTITY),
            ("queue=%ff", StatusCode::BAD_REQUEST),
            ("queue=%f", StatusCode::BAD_REQUEST),
            (&format!("queue={}", "a".repeat(MAX_QUERY_BYTES)), StatusCode::URI_TOO_LONG),
        ] {
            assert_eq!(Query::parse(query, KNOWN).expect_err(query).status, status, "{query}");
        }
        for outside in ["limit=11", "limit=0"] {
            let query = Query::parse(outside, KNOWN).expect("valid");
            assert!(query.bounded("limit", 1, 10).is_err() && query.read::<u8>("queue").is_ok(), "{outside}");
        }
    }
}

//! The path below which a proxy serves the dashboard.

use std::fmt;
use std::str::FromStr;

/// Empty, or a path that begins with a slash and does not end with one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a base path begins with / and consists of letters, digits and ._~-/")]
pub struct BasePathError;

impl BasePath {
    /// The path as clients see it.
    pub(crate) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// The path after the name of a host.
    pub(crate) fn join_after(&self, host: &str) -> String {
        format!("{host}{}", self.0)
    }

    /// The path without the base.
    pub(crate) fn strip<'a>(&self, path: &'a str) -> &'a str {
        path.strip_prefix(&self.0).unwrap_or(path)
    }

    /// For a cookie: `/` or the path itself.
    pub(crate) fn or_root(&self) -> &str {
        if self.0.is_empty() { "/" } else { &self.0 }
    }
}

impl FromStr for BasePath {
    type Err = BasePathError;

    fn from_str(text: &str) -> Result<Self, BasePathError> {
        let path = text.trim_end_matches('/');
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-/".contains(&byte);
        let is_fine = path.is_empty() || path.starts_with('/');
        if !is_fine || !path.bytes().all(is_allowed) || path.contains("//") || path.contains("/.") {
            return Err(BasePathError);
        }
        Ok(Self(path.to_owned()))
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_is_a_plain_path() {
        for (typed, path) in [("", ""), ("/", ""), ("/q", "/q"), ("/a/b-c/", "/a/b-c")] {
            assert_eq!(
                typed.parse::<BasePath>().map(|path| path.to_string()).as_deref(),
                Ok(path),
                "{typed}"
            );
        }
        for bad in ["q", "/a b", "/a//b", "/../a", "/{x}", "/a?b", "https://x"] {
            assert!(bad.parse::<BasePath>().is_err(), "{bad}");
        }
    }
}

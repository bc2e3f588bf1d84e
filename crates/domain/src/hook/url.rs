//! The URL that a hook posts to.

use std::str::FromStr;

/// An http or https URL without a password, because URLs are displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookUrl(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    #[error("the URL has no host")]
    NoHost,
    #[error(
        "the URL must not contain a user or a password because it is displayed; sign with a secret instead"
    )]
    Password,
    #[error("the URL must contain only visible ASCII characters; encode others as %XX")]
    Character,
    #[error("the URL is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
}

const MAX_URL_BYTES: usize = 2_048;

impl HookUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HookUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.len() > MAX_URL_BYTES {
            return Err(UrlError::TooLong);
        }
        let lower = text.to_ascii_lowercase();
        let scheme = ["http://", "https://"].into_iter().find(|scheme| lower.starts_with(scheme));
        let rest = &text[scheme.ok_or(UrlError::Scheme)?.len()..];
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Character);
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(UrlError::Password);
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err(UrlError::NoHost);
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_without_credentials_or_invisible_characters_are_accepted() {
        for (text, error) in [
            ("https://example.org/hooks?a=b@c", None),
            ("http://127.0.0.1:8080", None),
            ("HTTP://[::1]:80/x", None),
            ("ftp://example.org", Some(UrlError::Scheme)),
            ("example.org", Some(UrlError::Scheme)),
            ("https://", Some(UrlError::NoHost)),
            ("https:///x", Some(UrlError::NoHost)),
            ("http://:80", Some(UrlError::NoHost)),
            ("https://ada:pw@example.org/", Some(UrlError::Password)),
            ("https://example.org/a b", Some(UrlError::Character)),
            ("https://exämple.org/", Some(UrlError::Character)),
            ("https://example.org/\u{1b}", Some(UrlError::Character)),
        ] {
            assert_eq!(text.parse::<HookUrl>().err(), error, "{text:?}");
        }
        let long = format!("http://example.org/{}", "x".repeat(2_048));
        assert_eq!(long.parse::<HookUrl>(), Err(UrlError::TooLong));
    }
}

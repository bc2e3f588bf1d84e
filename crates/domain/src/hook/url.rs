//! The URL that a hook posts to.

use std::str::FromStr;

use super::HookError;

/// An http or https URL without a password, because URLs are displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookUrl(String);

pub(super) const MAX_URL_BYTES: usize = 2_048;

impl HookUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HookUrl {
    type Err = HookError;

    fn from_str(text: &str) -> Result<Self, HookError> {
        if text.len() > MAX_URL_BYTES {
            return Err(HookError::LongUrl);
        }
        let lower = text.to_ascii_lowercase();
        let scheme = ["http://", "https://"].into_iter().find(|scheme| lower.starts_with(scheme));
        let rest = &text[scheme.ok_or(HookError::UrlScheme)?.len()..];
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HookError::UrlCharacter);
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(HookError::UrlPassword);
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err(HookError::NoUrlHost);
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
            ("ftp://example.org", Some(HookError::UrlScheme)),
            ("example.org", Some(HookError::UrlScheme)),
            ("https://", Some(HookError::NoUrlHost)),
            ("https:///x", Some(HookError::NoUrlHost)),
            ("http://:80", Some(HookError::NoUrlHost)),
            ("https://ada:pw@example.org/", Some(HookError::UrlPassword)),
            ("https://example.org/a b", Some(HookError::UrlCharacter)),
            ("https://exämple.org/", Some(HookError::UrlCharacter)),
            ("https://example.org/\u{1b}", Some(HookError::UrlCharacter)),
        ] {
            assert_eq!(text.parse::<HookUrl>().err(), error, "{text:?}");
        }
        let long = format!("http://example.org/{}", "x".repeat(2_048));
        assert_eq!(long.parse::<HookUrl>(), Err(HookError::LongUrl));
    }
}

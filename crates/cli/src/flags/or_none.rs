//! Values that `none` removes.

use std::str::FromStr;

use store::Update;

pub(crate) fn or_none<T: FromStr>(text: &str) -> Result<Update<T>, T::Err> {
    or_none_with(text, str::parse)
}

pub(crate) fn or_none_with<T, E>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Update<T>, E> {
    if text == "none" { Ok(Update::Clear) } else { parse(text).map(Update::Set) }
}

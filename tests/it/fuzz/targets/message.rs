//! Properties of every error message.

use std::error::Error;

/// A quoted input may be escaped, and some messages list the valid values.
const MAX_PER_BYTE: usize = 10;
const MAX_BYTES: usize = 1_024;

/// The message is not empty, and not much longer than the input.
#[track_caller]
pub fn check(error: &dyn Error, input: &[u8]) {
    let message = error.to_string();
    assert!(!message.trim().is_empty(), "{error:?} has an empty message");
    assert!(
        message.len() <= MAX_BYTES + MAX_PER_BYTE * input.len(),
        "the message of {} bytes is too long: {error:?}",
        message.len()
    );
    if let Some(source) = error.source() {
        check(source, input);
    }
}

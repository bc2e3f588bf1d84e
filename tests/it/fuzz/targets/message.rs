//! What holds for every message of an error.

use std::error::Error;

/// What is quoted may be escaped, and some messages list what there is.
const MAX_PER_BYTE: usize = 10;
const MAX_BYTES: usize = 1_024;

/// It says something, and not much more than was typed.
#[track_caller]
pub fn check(error: &dyn Error, typed: &[u8]) {
    let message = error.to_string();
    assert!(!message.trim().is_empty(), "{error:?} says nothing");
    assert!(
        message.len() <= MAX_BYTES + MAX_PER_BYTE * typed.len(),
        "{} bytes are too many for {error:?}",
        message.len()
    );
    if let Some(source) = error.source() {
        check(source, typed);
    }
}

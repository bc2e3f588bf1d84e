//! Text: quoting for the shell, escaping for terminals, patterns, and the nearest known name.

pub mod escape;
pub mod hostile;
pub mod nearest;
pub mod pattern;
pub mod shell;

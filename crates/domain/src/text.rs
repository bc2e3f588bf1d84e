//! Text: quoting for the shell, escaping for terminals, numbers and bars for people, patterns, and the nearest known name.

pub mod counts;
pub mod escape;
pub mod hostile;
pub mod nearest;
pub mod pattern;
pub mod shell;
pub mod sparkline;
pub mod terminal_text;

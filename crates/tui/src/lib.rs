//! The full-screen view of a queue behind `queuectl top`, over the same use cases as every other interface.
//!
//! One thread reads the store (`data`), one carries out what the user orders (`actions`), another one the line of the
//! palette, and one draws: it waits for keys, signals and messages of the others (`event_loop`), changes the state (`state`), and draws it (`views`). State and views
//! do no IO.

mod actions;
mod ansi;
mod data;
mod event_loop;
mod layout;
mod options;
mod state;
mod tab;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod views;

pub use event_loop::run;
pub use options::{TopError, TopOptions};
pub use theme::Colors;

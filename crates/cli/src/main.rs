//! The command line: one verb per file. Arguments are parsed into what was typed, then resolved into what it means.
//!
//! Nothing is decided here: verbs call [`ops`] and show what comes back.

mod ask;
mod context;
mod editor;
mod failure;
mod flags;
mod loan;
mod render;
mod root;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    root::main()
}

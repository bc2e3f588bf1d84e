//! The command line: one verb per file. Each verb parses its arguments, then resolves them into a request.
//!
//! Nothing is decided here: verbs call [`ops`] and print the result.

mod ask;
mod context;
mod editor;
mod failure;
mod flags;
mod loan;
mod parse;
mod render;
mod root;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    root::main()
}

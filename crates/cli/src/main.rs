//! The command line: one verb per file. Each verb parses its arguments, then resolves them into a request.
//!
//! Nothing is decided here: verbs call [`ops`] and print the result.

mod confirm;
mod context;
mod editor;
mod failure;
mod flags;
mod parse;
mod render;
mod root;
mod slot_loan;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    root::main()
}

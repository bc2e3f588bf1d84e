//! The command line: one verb per file. Each verb parses its arguments, then resolves them into a request.
//!
//! Nothing is decided here: verbs call [`ops`] and print the result.

#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

mod completion;
mod confirm;
mod context;
mod editor;
mod failure;
mod flags;
mod help;
mod parse;
mod render;
mod root;
mod slot_loan;
mod verbs;

sys::program!(root::main);

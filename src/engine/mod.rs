//! Workers: how a claimed job becomes a running command, and what is written down about it.

#![cfg_attr(not(test), expect(dead_code, reason = "the worker that uses these is still to come"))]

pub mod capture;
mod command;
mod cookie;
mod journal;
mod last_line;
mod log_file;
mod program;
mod variables;

//! Workers: how a claimed job becomes a running command, and what is written down about it.

#![cfg_attr(not(test), expect(dead_code, reason = "the worker that uses these is still to come"))]

mod command;
mod cookie;
mod journal;
mod program;
mod variables;

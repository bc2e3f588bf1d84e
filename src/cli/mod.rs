//! The command line: one verb per file. Arguments are parsed into what was typed, then resolved into what it means.
//!
//! Nothing is decided here: verbs call [`crate::ops`] and show what comes back.

mod ask;
mod batch;
mod bulk;
mod caller;
mod cancel;
mod changed;
mod completions;
mod config;
mod context;
mod dlq;
mod doctor;
mod enqueue;
mod failure;
mod frame;
mod graph;
mod hook;
mod init;
mod job_flags;
mod lines;
mod list;
mod logs;
mod output;
mod progress;
mod queue;
mod remove;
mod retry;
mod root;
mod run;
mod schedule;
mod screen;
mod selection;
mod selftest;
mod shape;
mod show;
mod status;
mod table;
mod text;
mod wait;
mod watch;
mod worker;

pub use root::main;

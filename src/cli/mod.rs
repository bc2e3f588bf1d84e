//! The command line: one verb per file. Arguments are parsed into what was typed, then resolved into what it means.
//!
//! Nothing is decided here: verbs call [`crate::ops`] and show what comes back.

mod ask;
mod backup;
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
mod edit;
mod edit_flags;
mod editor;
mod enqueue;
mod events;
mod explain;
mod export;
mod failure;
mod fixed_flags;
mod frame;
mod graph;
mod hook;
mod import;
mod init;
mod job_flags;
mod lines;
mod list;
mod logs;
mod named;
mod output;
mod overview;
mod progress;
mod prune;
mod queue;
mod remove;
mod restore;
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

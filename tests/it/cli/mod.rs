//! The command line, run as a person or a script runs it: one file per verb, then what must not break it.

pub(crate) mod background;
mod cancel;
mod completions;
mod config;
mod crash;
mod crowd;
mod dlq;
mod doctor;
mod enqueue;
mod enqueue_lines;
mod faults;
pub(crate) mod harness;
mod help;
mod init;
mod list;
mod location;
mod logs;
mod logs_follow;
pub(crate) mod pseudo_terminal;
mod queue;
mod remove;
mod retry;
mod run;
mod run_on_terminal;
mod schedule;
#[cfg(debug_assertions)] // Released builds have no fail-points.
mod seams;
mod selection;
mod selftest;
mod show;
mod status;
mod terminal;
mod test_worker;
mod wait;
mod watch;
mod worker_list;
mod working_home;

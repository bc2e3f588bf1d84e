//! The command line, run as a user or a script runs it: one file per verb, then the faults.

pub(crate) mod faults;
mod foreign_home;
pub(crate) mod harness;
mod help;
pub(crate) mod inspect;
pub(crate) mod jobs;
mod location;
pub(crate) mod manage;
mod ownership;
pub(crate) mod postgres;
mod screens;
mod terminal;
pub(crate) mod upkeep;
pub(crate) mod workers;

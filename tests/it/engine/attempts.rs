//! Attempts with real commands: how they start and end, what they print, use and leave behind.

pub(crate) mod capture;
pub(crate) mod commands;
pub(crate) mod environment;
pub(crate) mod inheritance;
pub(crate) mod limits;
pub(crate) mod orphans;
pub(crate) mod other_user;
pub(crate) mod output;
pub(crate) mod resource_shortage;
pub(crate) mod retries;
mod traces;

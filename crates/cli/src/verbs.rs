//! One verb per file, in the groups that `queuectl --help` shows.

pub(crate) mod inspect;
pub(crate) mod jobs;
pub(crate) mod manage;
pub(crate) mod upkeep;
pub(crate) mod workers;

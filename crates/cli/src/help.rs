//! Help in two levels: `-h` is one screen, `--help` is complete. And man pages, from the same description of the verbs.

pub(crate) mod man;
pub(crate) mod request;
pub(crate) mod short;

//! Flags that several verbs share, and what they resolve to.

pub(crate) mod caller;
pub(crate) mod each;
pub(crate) mod edit;
pub(crate) mod fixed;
pub(crate) mod handle;
pub(crate) mod job;
pub(crate) mod or_none;
pub(crate) mod selection;
pub(crate) mod start_time;
pub(crate) mod whole_number;

//! Values that every part uses: times, durations, sizes, names, signals. Parsed at the edge, trusted inside.

pub mod clock;
pub mod concurrency;
pub mod day;
pub mod human_time;
pub(crate) mod local_time;
pub mod name;
pub mod named_enum;
pub mod signal;
pub mod size;
pub mod span;
pub mod timestamp;

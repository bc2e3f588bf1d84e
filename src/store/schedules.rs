//! Schedules: jobs that are enqueued when their time comes, again and again.

pub trait Schedules {}

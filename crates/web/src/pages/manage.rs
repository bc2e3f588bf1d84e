//! The pages that are about the queue as a whole: who is notified, who did what, what is set, and enqueuing a job.

pub(super) mod enqueue;
pub(super) mod events;
pub(super) mod hooks;
pub(super) mod settings;

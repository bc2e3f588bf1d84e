//! What people do with the dashboard, in a real browser: one file per page.

mod batches;
mod dead;
mod enqueue;
mod events;
mod hooks;
mod queues;
mod schedules;
mod settings;
mod workers;

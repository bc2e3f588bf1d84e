//! One table per file, with every statement that only concerns that table. The tables of a job itself are in `jobs`.

pub(crate) mod batches;
pub(crate) mod counters;
pub(crate) mod deliveries;
pub(crate) mod duties;
pub(crate) mod events;
pub(crate) mod hooks;
pub(crate) mod minutes;
pub(crate) mod moving;
pub(crate) mod outbox;
pub(crate) mod queues;
pub(crate) mod rates;
pub(crate) mod retry_rules;
pub(crate) mod runs;
pub(crate) mod schedules;
pub(crate) mod settings;
pub(crate) mod stops;
pub(crate) mod workers;

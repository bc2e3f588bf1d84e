//! Workers and supervisors: start, stop, signals, orders, and which queues they serve.

pub(crate) mod crowd;
#[cfg(debug_assertions)] // Only a debug build simulates a network.
pub(crate) mod cut_off;
pub(crate) mod deleted_home;
pub(crate) mod journal;
pub(crate) mod orders;
pub(crate) mod pause;
#[cfg(debug_assertions)] // No library can step in if the program is linked statically.
pub(crate) mod promptness;
pub(crate) mod queue_limits;
pub(crate) mod queues;
#[cfg(debug_assertions)]
pub(crate) mod shipped_output;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod terminal;
pub(crate) mod two_homes;
pub(crate) mod until_empty;

//! Workers of this store: which are alive, how they are notified, how they are stopped.

pub mod live;
pub mod local;
pub mod stop;

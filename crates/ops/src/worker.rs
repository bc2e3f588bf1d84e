//! Workers of this store: which are alive, how they are notified, how they are stopped, and how they run as a
//! service.

pub mod live;
pub mod local;
pub mod service;
pub mod stop;

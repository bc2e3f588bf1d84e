//! The PostgreSQL store: where its server is, and how a process reaches it.
//!
//! [`Address`] is text only and always compiled, and so are the errors. Code that talks to a server needs the feature
//! `postgres`.

pub mod address;
#[cfg(feature = "postgres")]
pub mod connect;
pub mod connect_error;

pub use address::{Address, AddressError};
#[cfg(feature = "postgres")]
pub use connect::{ConnectOptions, Connected, Target, connect};
pub use connect_error::{ConnectError, ConnectProblem};

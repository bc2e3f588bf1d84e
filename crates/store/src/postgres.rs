//! The store on a server: a schema in a PostgreSQL database, for workers on many machines.
//!
//! - `address`, `connect`, `connect_error`: where the server is, and how a process reaches it. [`Address`] is text only and
//!   always compiled, and so are the errors. Code that talks to a server needs the feature `postgres`.
//! - `session`: a connection, its statements and errors, and the schema. `link`: a session that is opened again when it
//!   was lost.
//! - `report` asks a server about itself; `grant` has the rights of roles.
//! - `store` implements [`crate::Store`]; `crate::rows` has the verbs. `wake`: how workers are woken.
//!
//! **The gate.** A verb of `crate::rows` is written for one writer. It first locks the gate, a table without rows, so it is
//! alone; time is read after that. It asks for a tenth of a second and lets others pass in between, so that a process which
//! hangs between two statements does not stop everybody until the server ends its session.
//!
//! **Answers can be lost.** If the connection breaks after a commit was sent, its outcome is unknown, and the error says so.
//! In every other case the transaction was rolled back.

pub mod address;
#[cfg(feature = "postgres")]
pub mod connect;
pub mod connect_error;
#[cfg(feature = "postgres")]
mod end_sessions;
#[cfg(feature = "postgres")]
mod floors;
pub mod grant;
pub mod identifier;
#[cfg(feature = "postgres")]
mod lane;
#[cfg(feature = "postgres")]
mod link;
#[cfg(feature = "postgres")]
pub mod report;
#[cfg(feature = "postgres")]
pub mod scratch;
#[cfg(feature = "postgres")]
mod session;
#[cfg(feature = "postgres")]
mod store;
#[cfg(feature = "postgres")]
mod wake;

pub use address::{Address, AddressError};
#[cfg(feature = "postgres")]
pub use connect::{ConnectOptions, Connected, Target, connect};
pub use connect_error::{ConnectError, ConnectProblem};
#[cfg(feature = "postgres")]
pub use end_sessions::{Sessions, end_sessions};
#[cfg(feature = "postgres")]
pub use report::probe;
#[cfg(feature = "postgres")]
pub use session::migrate::{SCHEMA_VERSION, newest_gate, newest_version};
#[cfg(feature = "postgres")]
pub use store::PostgresStore;

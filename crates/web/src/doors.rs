//! The doors: what a request must show before it is handled.
//!
//! In this order: an allowed host (`host.rs`), no foreign origin (`origin.rs`), on loopback a client of the same user
//! (`peer.rs`), then a token or a session (`caller.rs`, `tokens.rs`, `session.rs`) whose scope covers the route
//! (`scope.rs`), and room within the limits (`limits.rs`). Every answer leaves with the headers of `headers.rs`.

pub(crate) mod caller;
pub(crate) mod headers;
pub(crate) mod host;
pub(crate) mod limits;
pub(crate) mod login;
pub(crate) mod origin;
pub(crate) mod peer;
pub(crate) mod scope;
pub(crate) mod secret;
pub(crate) mod session;
mod socket_owner;
pub mod tokens;

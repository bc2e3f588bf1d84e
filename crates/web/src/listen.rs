//! Listening for connections, and serving them within limits.

pub(crate) mod address;
pub(crate) mod connection;
pub(crate) mod crowd;
pub(crate) mod sockets;
pub(crate) mod tls;

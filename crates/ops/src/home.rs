//! The home folder: where it is, whose it is, and how one is created.

pub mod ignore;
pub mod init;
pub mod location;
pub mod open;
pub mod ownership;
#[cfg(debug_assertions)]
mod simulated_network;

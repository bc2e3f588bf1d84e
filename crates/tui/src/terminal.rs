//! The terminal that `top` draws on: its screen, its keys and its mouse.

mod backend;
mod keys;
mod session;

pub(crate) use self::keys::{Input, Key, Mouse, parse};
pub(crate) use self::session::Session;

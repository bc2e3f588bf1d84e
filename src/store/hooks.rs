//! Hooks: who is told when something happens, and what they are still to be told.

pub trait Hooks {}

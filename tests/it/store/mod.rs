//! The conformance suite: what every [`queuectl::store::Store`] must do.
//!
//! The tests know only `dyn Store` and a clock that they turn themselves.

mod fixture;

//! The parts of the engine that others can see.

mod capture;

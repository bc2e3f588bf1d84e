//! What JSON is taken, and what is said of the rest.

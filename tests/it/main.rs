//! Everything that is tested from outside: the store through its trait, the program through its command line, the
//! source through its imports.

mod store;
mod tidy;

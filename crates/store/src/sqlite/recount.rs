//! What the store knows twice: counters, lines, links, keys and tags all follow from the jobs. `find` compares them with
//! the jobs, in one view and without a write; `mend` makes them anew where they differ, in short transactions.

mod find;
mod mend;

pub(super) use find::find;
pub(super) use mend::mend;

//! A request as its handler sees it, and the answer.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod conditional;
pub(crate) mod filter;
pub(crate) mod pieces;
pub(crate) mod query;

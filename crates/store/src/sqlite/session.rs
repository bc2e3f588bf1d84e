//! A connection and its transactions: opening and checking the files, the gate that writers pass in turn, migrations,
//! checkpoints, and statements.

pub(crate) mod checkpoint;
pub(crate) mod error;
pub(crate) mod examine;
pub(crate) mod file_state;
pub(crate) mod gate;
pub(crate) mod migrate;
pub(crate) mod open;
pub(crate) mod read_only;
pub(super) mod statement;

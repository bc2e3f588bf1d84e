//! Results as people see them: lines, tables, plots, and the measured part of a document.

pub(crate) mod document;
pub(crate) mod figure;
pub(crate) mod machine;
pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod table;

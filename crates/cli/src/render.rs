//! What people see: tables, columns, progress, screens.

pub(crate) mod fit;
pub(crate) mod frame;
pub(crate) mod output;
pub(crate) mod overview;
pub(crate) mod progress;
pub(crate) mod report_change;
pub(crate) mod report_name;
pub(crate) mod screen;
pub(crate) mod shape;
pub(crate) mod table;
pub(crate) mod text;

//! Output for people: tables, columns, progress, screens.

pub(crate) mod column_widths;
pub(crate) mod facts;
pub(crate) mod frame;
pub(crate) mod help_groups;
pub(crate) mod list_format;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod report_change;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;

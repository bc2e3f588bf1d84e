//! Parts of pages, each rendered in one place. All text passes through `maud`, which escapes it.

pub(crate) mod bar;
pub(crate) mod button;
pub(crate) mod chart;
pub(crate) mod cli;
pub(crate) mod diff;
pub(crate) mod form;
pub(crate) mod graph;
pub(crate) mod job_fields;
pub(crate) mod job_row;
pub(crate) mod log_lines;
pub(crate) mod number;
pub(crate) mod sgr;
pub(crate) mod sparkline;
pub(crate) mod state;
pub(crate) mod time;
pub(crate) mod timeline;

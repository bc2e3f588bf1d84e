//! What `top` needs to know, and how it can fail.

use std::io;

use jiff::tz::TimeZone;

use crate::theme::Colors;
use ops::home::location::Location;

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct TopOptions {
    pub location: Location,
    /// The queue, in the header.
    pub title: String,
    pub is_read_only: bool,
    pub is_ascii: bool,
    pub has_mouse: bool,
    pub is_utc: bool,
    pub colors: Colors,
    pub local_zone: TimeZone,
    /// Who the events name.
    pub by: String,
    /// The flags that lead another process of this program to the same queue.
    pub program_flags: Vec<String>,
    /// What can follow the words of a command line, the last of which is incomplete.
    pub complete: fn(&[String]) -> Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TopError {
    #[error("this process runs in the background of its terminal")]
    Background,
    #[error("failed to use the terminal")]
    Terminal(#[from] io::Error),
}

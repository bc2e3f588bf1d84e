//! How the output of an attempt is shown.

use domain::log::Stream;

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct LogView {
    /// The latest unless chosen.
    pub(crate) attempt: Option<u32>,
    pub(crate) is_diff: bool,
    /// The end stays in view.
    pub(crate) follows: bool,
    /// How many lines from the end are out of view.
    pub(crate) above_end: usize,
    pub(crate) only: Option<Stream>,
    pub(crate) has_times: bool,
    pub(crate) wraps: bool,
    /// What to look for, in lower case.
    pub(crate) find: Option<String>,
}

impl Default for LogView {
    fn default() -> Self {
        Self {
            attempt: None,
            is_diff: false,
            follows: true,
            above_end: 0,
            only: None,
            has_times: false,
            wraps: false,
            find: None,
        }
    }
}

impl LogView {
    /// Moves the view towards the beginning, or with a negative number towards the end, of this many lines.
    pub(crate) fn scroll(&mut self, up: isize, lines: usize) {
        self.above_end = self.above_end.saturating_add_signed(up).min(lines.saturating_sub(1));
        self.follows = self.above_end == 0 && up < 0;
    }
}

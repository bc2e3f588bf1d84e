//! Recent problems, for `status`.

use super::Hook;
use domain::values::timestamp::Timestamp;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentProblems {
    /// How many of the newest dead jobs died recently, counted up to [`MAX_DEATHS_COUNTED`].
    pub deaths: u64,
    /// Schedules whose last occurrence was missed or is overdue, and when that was.
    pub missed: Vec<(String, Timestamp)>,
    /// Schedules whose last occurrence was skipped because too many runs are unfinished, and when that was.
    pub full: Vec<(String, Timestamp)>,
    /// All hooks.
    pub hooks: Vec<Hook>,
    pub last_stop: Option<LastStop>,
}

/// The newest stop order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastStop {
    pub at: Timestamp,
    pub by: String,
    /// The home whose workers it addresses; `None` for all.
    pub home_id: Option<String>,
}

/// Deaths are counted up to this number, so that the answer comes at once.
pub const MAX_DEATHS_COUNTED: u64 = 200;

//! What went wrong of late, for those who ask how things stand.

use super::Hook;
use domain::values::timestamp::Timestamp;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// How many of the newest dead jobs died of late, counted up to [`MAX_DEATHS_COUNTED`].
    pub deaths: u64,
    /// Schedules whose last occurrence was missed, or is overdue, and when that was.
    pub missed: Vec<(String, Timestamp)>,
    /// Schedules whose last occurrence was left out because too many runs are unfinished, and when that was.
    pub full: Vec<(String, Timestamp)>,
    /// All hooks.
    pub hooks: Vec<Hook>,
    pub last_stop: Option<LastStop>,
}

/// The newest order to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastStop {
    pub at: Timestamp,
    pub by: String,
    /// The home whose workers it is for; `None`: all.
    pub home_id: Option<String>,
}

/// Where more jobs died than this, nobody counts them: whoever asks wants an answer at once.
pub const MAX_DEATHS_COUNTED: u64 = 200;

//! The keys of rows. Each table has a type of its own, so that no key can be taken for that of another table.

use super::value::{FromValue, ToValue, Value};
use crate::Result;

macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $key(pub(crate) i64);

        impl ToValue for $key {
            fn to_value(&self) -> Value<'_> {
                Value::Integer(self.0)
            }
        }

        impl<'r> FromValue<'r> for $key {
            fn from_value(value: Value<'r>) -> Result<Self> {
                i64::from_value(value).map(Self)
            }
        }
    )*};
}

keys! {
    /// The number of a job, in the order of enqueuing. Callers see it as [`domain::job::Job::number`].
    JobSeq,
    WorkerSeq,
    QueueKey,
    BatchKey,
    EnvironmentKey,
    ScheduleKey,
    HookKey,
}

impl JobSeq {
    pub(crate) const BEFORE_FIRST: Self = Self(0);
    /// After every job.
    pub(crate) const LAST: Self = Self(i64::MAX);

    /// The job with this number.
    pub(crate) fn of_number(number: u64) -> Self {
        Self(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub(crate) fn number(self) -> u64 {
        self.0.unsigned_abs()
    }

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub(crate) fn previous(self) -> Self {
        Self(self.0 - 1)
    }
}

//! The few places where databases need different words for the same statement.

use super::tx::Tx;

/// The SQL that a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "built without PostgreSQL"))]
    Postgres,
}

impl Dialect {
    pub(crate) fn pick<T>(self, sqlite: T, postgres: T) -> T {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }
}

/// A statement in the words of each database: see [`wording`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wording {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl Wording {
    pub(crate) fn of(self, tx: &Tx<'_>) -> &'static str {
        tx.dialect().pick(self.sqlite, self.postgres)
    }
}

/// Puts a statement together from parts that are the same for every database, and pairs for SQLite and PostgreSQL:
/// `wording!("select seq from jobs j where ", ("j.command glob ?1" | "j.command like ?1"))`.
macro_rules! wording {
    ($($part:tt),* $(,)?) => {
        $crate::rows::dialect::Wording {
            sqlite: concat!($($crate::rows::dialect::wording!(@sqlite $part)),*),
            postgres: concat!($($crate::rows::dialect::wording!(@postgres $part)),*),
        }
    };
    (@sqlite ($sqlite:literal | $postgres:literal)) => { $sqlite };
    (@postgres ($sqlite:literal | $postgres:literal)) => { $postgres };
    (@$dialect:ident $part:literal) => { $part };
}

pub(crate) use wording;

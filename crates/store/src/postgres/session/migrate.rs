//! The schema of a queue: creating it, finding out its version, and bringing an older one up to date.
//!
//! An empty schema becomes a queue when a process opens it. An older one is migrated only on request, because the workers
//! of a whole fleet may use it. All missing migrations run in one transaction under a lock.
//!
//! Writers lock the gate of the version that they know. A migration after which earlier versions of queuectl must not write
//! renames the gate: they find none, and report that the store is too new.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::error::Failure;
use super::settings::search_path;
use super::{DEADLINE, Session, quoted};
use crate::postgres::identifier::literal;
use crate::{Result, StoreError};

/// The statements that lead from each version to the next. Append-only once a version has been released.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../../../../migrations/postgres/0001_schema.sql"),
    include_str!("../../../../../migrations/postgres/0002_hosts.sql"),
    include_str!("../../../../../migrations/postgres/0003_minutes.sql"),
];

/// The schema version that this program reads and writes.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// The number of the gate that this program passes, and the table that it locks.
const GATE_NUMBER: i64 = 1;
pub(in crate::postgres) const GATE: &str = "gate_1";

/// How long a migration may take.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(3_600);

/// What a schema says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) enum Found {
    /// There is no queue.
    Nothing,
    Queue {
        version: i64,
        gate: i64,
    },
}

/// Whether a schema may be changed by a process that opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) enum Permission {
    /// It must be a queue of this version.
    Nothing,
    /// An empty schema may become a queue.
    Create,
    /// An older queue may be migrated, too.
    Migrate,
}

impl Session {
    /// Checks that this program can use the queue, and changes the schema as far as permitted.
    pub(in crate::postgres) fn prepare_schema(&self, permission: Permission) -> Result<()> {
        let found = self.found()?;
        let may_change = match found {
            Found::Nothing => permission != Permission::Nothing,
            Found::Queue { version, .. } => version < SCHEMA_VERSION && permission == Permission::Migrate,
        };
        if !may_change {
            check(found, &self.schema)?;
            // It could not be created either: the caller is going to write.
            let needs_writes = permission != Permission::Nothing && self.is_read_only.get();
            return if needs_writes { Err(StoreError::NotPrimary) } else { Ok(()) };
        }
        self.set_deadline(MIGRATION_DEADLINE);
        let migrated = self.migrate(permission);
        self.set_deadline(DEADLINE);
        if migrated.is_err() {
            self.roll_back();
        }
        migrated
    }

    pub(in crate::postgres) fn found(&self) -> Result<Found> {
        let meta = format!(
            "select concat_ws(' ', version, gate, current_setting('transaction_read_only'), current_setting('search_path'))
             from {}.meta",
            quoted(&self.schema)
        );
        match self.batch(&meta) {
            Ok(Some(row)) => {
                let (found, is_read_only, search_path) = parse(&row)?;
                self.is_read_only.set(is_read_only);
                self.expect_settings(search_path);
                Ok(found)
            }
            Ok(None) => Err(StoreError::Malformed { what: "meta", detail: "it is empty".to_owned() }),
            Err(failure) if is_missing(&failure) => {
                self.expect_settings(&self.batch("show search_path")?.unwrap_or_default());
                Ok(Found::Nothing)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// A pooler may ignore the settings of a session: then every transaction has to begin with them.
    fn expect_settings(&self, found: &str) {
        if !self.is_pooled() && found != search_path(&self.schema) {
            self.notice_pooler();
        }
    }

    /// Another process may migrate at the same time: the second one finds it done.
    fn migrate(&self, permission: Permission) -> Result<()> {
        let schema = quoted(&self.schema);
        self.batch(&format!(
            "begin; {} set local lock_timeout = 0; set local statement_timeout = 0;
             select pg_advisory_xact_lock(hashtextextended('queuectl ' || {}, 0));
             create schema if not exists {schema}",
            self.local_settings(),
            literal(&self.schema),
        ))?;
        let has_queue = self.batch(&format!(
            "select coalesce((select 'queue' from pg_tables where schemaname = {name} and tablename = 'meta'),
                             (select 'other' from pg_class c join pg_namespace n on n.oid = c.relnamespace
                              where n.nspname = {name} limit 1))",
            name = literal(&self.schema),
        ))?;
        let from = match has_queue.as_deref() {
            Some("queue") => match self.found()? {
                Found::Queue { version, gate }
                    if version >= SCHEMA_VERSION || permission != Permission::Migrate =>
                {
                    self.roll_back();
                    return check(Found::Queue { version, gate }, &self.schema);
                }
                Found::Queue { version, .. } => version,
                Found::Nothing => 0,
            },
            Some(_) => {
                let problem = "is a schema with tables of another program: name another with `schema=NAME` in the address";
                return Err(StoreError::NotAStore { path: (&self.schema).into(), problem });
            }
            None => 0,
        };
        self.apply(usize::try_from(from).unwrap_or(0))?;
        self.commit().map_err(Failure::of_commit)
    }

    fn apply(&self, from: usize) -> Result<(), Failure> {
        for migration in MIGRATIONS.iter().skip(from) {
            self.batch(migration)?;
        }
        self.batch(&format!(
            "insert into meta (version, gate) values ({SCHEMA_VERSION}, {GATE_NUMBER})
             on conflict (one) do update set version = excluded.version, gate = excluded.gate"
        ))?;
        Ok(())
    }
}

fn check(found: Found, schema: &str) -> Result<()> {
    match found {
        Found::Nothing => {
            Err(StoreError::NotAStore { path: schema.into(), problem: "is not a schema with a queue" })
        }
        Found::Queue { version, gate } if gate > GATE_NUMBER => {
            Err(StoreError::TooNew { found: version, known: SCHEMA_VERSION })
        }
        Found::Queue { version, .. } if version < SCHEMA_VERSION => {
            Err(StoreError::TooOld { found: version, needed: SCHEMA_VERSION })
        }
        Found::Queue { .. } => Ok(()),
    }
}

/// What the schema says, whether the session only reads, and its search path.
fn parse(row: &str) -> Result<(Found, bool, &str)> {
    let words: Vec<&str> = row.splitn(4, ' ').collect();
    let parsed = match words[..] {
        [version, gate, is_read_only, search_path] => version
            .parse()
            .ok()
            .zip(gate.parse().ok())
            .map(|(version, gate)| (Found::Queue { version, gate }, is_read_only == "on", search_path)),
        _ => None,
    };
    parsed.ok_or_else(|| StoreError::Malformed { what: "meta", detail: row.to_owned() })
}

/// Without its schema a table is missing, too.
pub(in crate::postgres) fn is_missing(failure: &Failure) -> bool {
    failure.code() == Some(&SqlState::UNDEFINED_TABLE)
}

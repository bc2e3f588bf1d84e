//! The schema of a queue: creating it, finding out its version, and bringing an older one up to date.
//!
//! An empty schema becomes a queue when a process opens it. An older one is migrated only on request, because the workers
//! of a whole fleet may use it. All missing migrations run in one transaction under a lock.
//!
//! Writers lock the gate of the version that they know. A migration after which earlier versions of queuectl must not write
//! renames the gate: they find none, and report that the store is too new.
//!
//! A schema of an earlier version can be read. Beside each migration, a file has views under which the version before looks
//! like the one after it. A transaction that reads creates those that it needs, and is rolled back. They hide the tables,
//! so a later migration that changes one of these tables again repeats its view with all later columns.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::error::Failure;
use super::settings::search_path;
use super::{DEADLINE, Session, quoted};
use crate::postgres::identifier::literal;
use crate::rows::jobs::causes::recount::assign_all;
use crate::upkeep::added_migrations::added_migrations;
use crate::{OUTDATED, Result, StoreError};

/// The step from one version to the next.
struct Migration {
    statements: &'static str,
    /// Lets a reader of the next version read this one.
    views: &'static str,
}

/// Append-only once a version has been released.
const MIGRATIONS: [Migration; 4] = [
    Migration { statements: include_str!("../../../migrations/postgres/0001_schema.sql"), views: "" },
    Migration {
        statements: include_str!("../../../migrations/postgres/0002_hosts.sql"),
        views: include_str!("../../../migrations/postgres/0002_hosts.before.sql"),
    },
    Migration {
        statements: include_str!("../../../migrations/postgres/0003_minutes.sql"),
        views: include_str!("../../../migrations/postgres/0003_minutes.before.sql"),
    },
    Migration {
        statements: include_str!("../../../migrations/postgres/0004_causes.sql"),
        views: include_str!("../../../migrations/postgres/0004_causes.before.sql"),
    },
];

/// The version in which dead jobs got their causes: those that a store has when it is migrated get theirs then.
const CAUSES_VERSION: usize = 4;

/// The schema version that this program reads and writes.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// [`SCHEMA_VERSION`], or what a test has made of it.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub fn newest_version() -> i64 {
    SCHEMA_VERSION + added_migrations().len() as i64
}

/// The number of the gate that this program passes.
const GATE_NUMBER: i64 = 1;

/// `GATE_NUMBER`, or what a test has made of it.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub fn newest_gate() -> i64 {
    let renames = |migration: &&String| migration.contains("rename to gate_");
    GATE_NUMBER + added_migrations().iter().filter(renames).count() as i64
}

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
    /// It must be a queue; one of an earlier version can be read.
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
            Found::Queue { version, .. } => version < newest_version() && permission == Permission::Migrate,
        };
        if !may_change {
            self.adopt(found, permission)?;
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

    /// Checks a queue that stays as it is, and remembers its version.
    fn adopt(&self, found: Found, permission: Permission) -> Result<()> {
        match found {
            Found::Nothing => {
                let problem = "is not a schema with a queue";
                Err(StoreError::NotAStore { path: (&self.schema).into(), problem })
            }
            Found::Queue { version, gate } if gate > newest_gate() => {
                Err(StoreError::TooNew { found: version, known: newest_version() })
            }
            Found::Queue { version, gate } => {
                self.version.set(version);
                self.gate.set(gate);
                if permission == Permission::Nothing { Ok(()) } else { self.refuse_older() }
            }
        }
    }

    /// Whether the schema has an earlier version than this program.
    fn is_older(&self) -> bool {
        self.version.get() < newest_version()
    }

    pub(in crate::postgres) fn refuse_older(&self) -> Result<()> {
        let (found, needed) = (self.version.get(), newest_version());
        if self.is_older() { Err(StoreError::TooOld { found, needed }) } else { Ok(()) }
    }

    /// Another process may have migrated a schema that was of an earlier version.
    pub(in crate::postgres) fn recheck_version(&self) -> Result<()> {
        if self.is_older() { self.adopt(self.found()?, Permission::Nothing) } else { Ok(()) }
    }

    /// The table that writers lock.
    pub(super) fn gate(&self) -> String {
        format!("gate_{}", self.gate.get())
    }

    /// Begins a transaction in which a schema of an earlier version looks like one of this version; empty otherwise.
    pub(super) fn views(&self) -> String {
        if !self.is_older() {
            return String::new();
        }
        let from = usize::try_from(self.version.get()).unwrap_or(0);
        let views: String = MIGRATIONS.iter().skip(from).map(|migration| migration.views).collect();
        let path = quoted(&self.schema);
        format!("{views} set local search_path = pg_temp, {path}; set local transaction_read_only = on;")
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
                    if version >= newest_version() || permission != Permission::Migrate =>
                {
                    self.roll_back();
                    return self.adopt(Found::Queue { version, gate }, permission);
                }
                Found::Queue { version, gate } => {
                    self.gate.set(gate);
                    version
                }
                Found::Nothing => 0,
            },
            Some(_) => {
                let problem = "is a schema with tables of another program: name another with `schema=NAME` in the address";
                return Err(StoreError::NotAStore { path: (&self.schema).into(), problem });
            }
            None => 0,
        };
        self.apply(usize::try_from(from).unwrap_or(0))?;
        self.commit().map_err(Failure::of_commit)?;
        self.version.set(newest_version());
        self.gate.set(newest_gate());
        Ok(())
    }

    fn apply(&self, from: usize) -> Result<()> {
        let (version, gate) = (newest_version(), newest_gate());
        let own = MIGRATIONS.iter().map(|migration| migration.statements);
        let all = own.chain(added_migrations().iter().map(String::as_str));
        for (at, statements) in all.enumerate().skip(from) {
            self.batch(statements)?;
            if at + 1 == CAUSES_VERSION {
                assign_all(self)?;
            }
        }
        self.batch(&format!(
            "insert into meta (version, gate) values ({version}, {gate})
             on conflict (one) do update set version = excluded.version, gate = excluded.gate"
        ))?;
        if from > 0 && self.gate.get() < gate {
            let outdated = literal(OUTDATED);
            self.batch(&format!("update workers set health = {outdated} where state <> 'stopped'"))?;
        }
        Ok(())
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

//! Facts about the server of a store, for `store info` and `doctor`. It reads system views and `meta`, changes nothing, and
//! also works on a standby and on a schema of another version.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::address::Address;
use super::connect::{Server, Target};
use super::identifier::quoted;
use super::session::Session;
use crate::error::StoreError;

#[derive(Clone, Debug)]
pub struct ServerReport {
    pub server: Server,
    pub role: String,
    pub is_superuser: bool,
    /// Whether the session is encrypted, as the server sees it.
    pub is_encrypted: bool,
    pub has_fsync: bool,
    /// The setting `synchronous_commit` of this role.
    pub synchronous_commit: String,
    pub standbys: Standbys,
    /// How many transactions the oldest snapshot holds back from being cleaned up.
    pub oldest_snapshot_age: Option<i64>,
    /// The process whose snapshot that is.
    pub oldest_snapshot_pid: Option<i32>,
    pub schema: SchemaReport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standbys {
    pub connected: i64,
    /// Those that a commit waits for.
    pub synchronous: i64,
}

/// What the role may know of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaReport {
    Missing,
    /// The role may not read it.
    Hidden,
    /// It exists and holds no queue.
    Empty,
    Queue(QueueReport),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReport {
    pub version: i64,
    /// The number of the gate that writers pass.
    pub gate: i64,
    pub bytes: i64,
    /// Rows of `ready` that were deleted and not cleaned up yet, as the server estimates them.
    pub dead_ready_rows: i64,
    pub live_ready_rows: i64,
}

/// Opens a session and closes it again: which server it is, or why none can be used.
pub fn probe(address: &Address, target: Target) -> Result<Server, StoreError> {
    Ok(Session::open(address, target)?.server)
}

/// Asks a server of the store, a standby too.
pub fn report(address: &Address) -> Result<ServerReport, StoreError> {
    let session = Session::open(address, Target::Any)?;
    let row = session.one_row(SERVER, &[])?;
    Ok(ServerReport {
        role: column(&row, "role")?,
        is_superuser: column(&row, "is_superuser")?,
        is_encrypted: column(&row, "is_encrypted")?,
        has_fsync: column(&row, "has_fsync")?,
        synchronous_commit: column(&row, "synchronous_commit")?,
        standbys: Standbys {
            connected: column(&row, "standbys")?,
            synchronous: column(&row, "synchronous")?,
        },
        oldest_snapshot_age: column(&row, "oldest_age")?,
        oldest_snapshot_pid: column(&row, "oldest_pid")?,
        schema: report_schema(&session, &address.schema)?,
        // A pooler repeats what another server has said earlier.
        server: Server { is_standby: column(&row, "is_standby")?, ..session.server.clone() },
    })
}

fn report_schema(session: &Session, schema: &str) -> Result<SchemaReport, StoreError> {
    let row = session.one_row(SCHEMA, &[(&schema, Type::TEXT)])?;
    if !column::<bool>(&row, "schema_exists")? {
        return Ok(SchemaReport::Missing);
    }
    if !column::<bool>(&row, "has_meta")? {
        return Ok(SchemaReport::Empty);
    }
    if !column::<bool>(&row, "is_readable")? {
        return Ok(SchemaReport::Hidden);
    }
    let meta = session
        .one_row(&format!("select version::bigint, gate::bigint from {}.meta", quoted(schema)), &[])?;
    Ok(SchemaReport::Queue(QueueReport {
        version: column(&meta, "version")?,
        gate: column(&meta, "gate")?,
        bytes: column(&row, "bytes")?,
        dead_ready_rows: column(&row, "dead")?,
        live_ready_rows: column(&row, "live")?,
    }))
}

fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, name: &str) -> Result<T, StoreError> {
    row.try_get(name).map_err(|error| StoreError::Unavailable { source: error.into() })
}

/// The rows of `pg_stat_replication` are visible to every role, their states only to a few; without them none counts as
/// synchronous unless the setting that names them is empty. An old snapshot is that of a session, of a standby, of a slot or
/// of a prepared transaction; sessions are what people can end.
const SERVER: &str = "
select current_user::text as role,
       (select rolsuper from pg_roles where rolname = current_user) as is_superuser,
       coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as is_encrypted,
       pg_is_in_recovery() as is_standby,
       current_setting('fsync') = 'on' as has_fsync,
       current_setting('synchronous_commit') as synchronous_commit,
       (select count(*) from pg_stat_replication) as standbys,
       case when current_setting('synchronous_standby_names') = '' then 0
            else (select count(*) from pg_stat_replication where coalesce(sync_state, 'sync') in ('sync', 'quorum'))
       end as synchronous,
       oldest.age as oldest_age,
       oldest.pid as oldest_pid
from (values (1)) one
left join lateral (
  select greatest(age(backend_xmin), age(backend_xid))::bigint as age, pid
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()
    and (backend_xmin is not null or backend_xid is not null)
  order by 1 desc
  limit 1) oldest on true";

/// The same, for `status`: how many standbys there are if none of them is synchronous. A standby has none of its own.
pub(super) const LAGGING_STANDBYS: &str = "
select count(*) from pg_stat_replication
where not exists (select 1 from pg_stat_replication
                  where coalesce(sync_state, 'sync') in ('sync', 'quorum')
                    and current_setting('synchronous_standby_names') <> '')";

const SCHEMA: &str = "
select n.oid is not null as schema_exists,
       coalesce(meta.oid is not null, false) as has_meta,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_table_privilege(meta.oid, 'select'), false) as is_readable,
       coalesce((select sum(pg_total_relation_size(c.oid)) from pg_class c
                 where c.relnamespace = n.oid and c.relkind = 'r'), 0)::bigint as bytes,
       coalesce(pg_stat_get_dead_tuples(ready.oid), 0)::bigint as dead,
       coalesce(pg_stat_get_live_tuples(ready.oid), 0)::bigint as live
from (values (1)) one
left join pg_namespace n on n.nspname = $1
left join pg_class meta on meta.relnamespace = n.oid and meta.relname = 'meta' and meta.relkind = 'r'
left join pg_class ready on ready.relnamespace = n.oid and ready.relname = 'ready' and ready.relkind = 'r'";

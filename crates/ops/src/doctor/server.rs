//! The server of a PostgreSQL store: whether it can be used, keeps what it acknowledges, and is cleaned up.

use super::{Diagnosis, Finding};
use domain::values::size::rough_size;
use store::StoreError;
use store::postgres::address::{Host, TlsMode};
use store::postgres::report::{QueueReport, SchemaReport, ServerReport, Standbys, report};
use store::postgres::{Address, newest_version};

/// A snapshot that is older than this many transactions keeps dead rows from being cleaned up.
const OLD_SNAPSHOT: i64 = 100_000;
/// More dead rows of `ready` than this slow claims down.
const MANY_DEAD_ROWS: i64 = 100_000;

/// Checks the server. Returns whether its queue can be read.
pub(super) fn check(diagnosis: &mut Diagnosis, address: &Address) -> bool {
    let found = match report(address) {
        Ok(found) => found,
        Err(error) => {
            let advice = if let StoreError::Unreachable(error) = &error { Some(error.hint()) } else { None };
            diagnosis.refuse("server", error, advice.as_deref());
            return false;
        }
    };
    for finding in [
        server(&found, address),
        role(&found),
        fsync(found.has_fsync),
        tls(&found),
        standbys(found.standbys, found.server.is_standby),
        snapshot(&found),
    ] {
        diagnosis.add(finding);
    }
    let (finding, queue) = schema(&found.schema, &address.schema);
    diagnosis.add(finding);
    if let Some(queue) = queue {
        diagnosis.add(dead_rows(queue));
    }
    queue.is_some()
}

fn server(found: &ServerReport, address: &Address) -> Finding {
    let server = &found.server;
    let message = format!("PostgreSQL {} at {}, database {}", server.version, server.host, address.database);
    if server.is_standby {
        return Finding::warning("server", format!("{message}, is a standby, which cannot be written"))
            .advise("name the primary in the address; with several hosts queuectl finds it by itself");
    }
    Finding::ok("server", message)
}

fn role(found: &ServerReport) -> Finding {
    if found.is_superuser {
        return Finding::warning("role", format!("{} is a superuser", found.role)).advise(
            "create a role of its own for the queue; `queuectl store grant ROLE --as worker` prints its rights",
        );
    }
    Finding::ok("role", found.role.clone())
}

fn fsync(is_on: bool) -> Finding {
    if is_on {
        return Finding::ok("fsync", "on");
    }
    Finding::warning("fsync", "off: a crash of the server's machine can lose jobs or destroy the database")
        .advise("set `fsync = on` at the server")
}

fn tls(found: &ServerReport) -> Finding {
    match (found.is_encrypted, found.server.tls, &found.server.host) {
        (true, TlsMode::VerifyFull | TlsMode::VerifyCa, _) => {
            Finding::ok("tls", format!("encrypted, {}", found.server.tls.name()))
        }
        (_, _, Host::Unix { .. }) => Finding::ok("tls", "a socket of this machine needs none"),
        (true, TlsMode::Disable, Host::Tcp { .. }) | (false, _, Host::Tcp { .. }) => {
            Finding::warning("tls", "the session is not encrypted")
                .advise("use `sslmode=verify-full` in the address unless you trust the network between")
        }
    }
}

fn standbys(standbys: Standbys, is_standby: bool) -> Finding {
    match standbys {
        _ if is_standby => Finding::ok("standbys", "only the primary knows them"),
        Standbys { connected: 0, .. } => Finding::ok("standbys", "none"),
        Standbys { connected, synchronous: 0 } => {
            let message =
                format!("{connected} connected, none synchronous: a failover can lose acknowledged jobs");
            Finding::warning("standbys", message).advise("set `synchronous_standby_names` at the server")
        }
        Standbys { connected, synchronous } => {
            Finding::ok("standbys", format!("{connected} connected, {synchronous} synchronous"))
        }
    }
}

fn snapshot(found: &ServerReport) -> Finding {
    match (found.oldest_snapshot_age, found.oldest_snapshot_pid) {
        (Some(age), Some(pid)) if age > OLD_SNAPSHOT => {
            let message = format!("the oldest is {age} transactions old (process {pid} of the server)");
            Finding::warning("snapshots", message).advise(format!(
                "a long transaction, such as pg_dump, keeps dead rows; `select pg_terminate_backend({pid})` ends it"
            ))
        }
        (Some(age), _) => Finding::ok("snapshots", format!("the oldest is {age} transactions old")),
        (None, _) => Finding::ok("snapshots", "none"),
    }
}

fn schema(found: &SchemaReport, name: &str) -> (Finding, Option<QueueReport>) {
    match found {
        SchemaReport::Missing | SchemaReport::Empty => {
            (Finding::ok("schema", format!("{name} has no queue yet; it is created on first use")), None)
        }
        SchemaReport::Hidden => {
            let finding = Finding::warning("schema", format!("this role may not read {name}"))
                .advise("`queuectl store grant ROLE --as reader` prints the rights that it needs");
            (finding, None)
        }
        SchemaReport::Queue(queue) => {
            let bytes = rough_size(u64::try_from(queue.bytes).unwrap_or(0));
            let message = format!("{name}, version {} ({bytes})", queue.version);
            let finding = if queue.version < newest_version() {
                Finding::warning("schema", format!("{message}, which this queuectl can only read"))
                    .advise("bring it up to date: `queuectl store migrate`")
            } else {
                Finding::ok("schema", message)
            };
            (finding, Some(*queue))
        }
    }
}

fn dead_rows(queue: QueueReport) -> Finding {
    let QueueReport { dead_ready_rows: dead, live_ready_rows: live, .. } = queue;
    let message = format!("ready has {live} rows and {dead} dead ones");
    if dead > MANY_DEAD_ROWS && dead > live {
        return Finding::warning("vacuum", message)
            .advise("autovacuum does not keep up: look for old snapshots, or run `vacuum` on that table");
    }
    Finding::ok("vacuum", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;
    use store::postgres::connect::Server;

    fn report(host: Host, tls: TlsMode) -> ServerReport {
        let server = Server { host, version: "15.1".to_owned(), is_standby: false, tls };
        ServerReport {
            server,
            role: "worker".to_owned(),
            is_superuser: false,
            is_encrypted: tls != TlsMode::Disable,
            has_fsync: true,
            synchronous_commit: "on".to_owned(),
            standbys: Standbys { connected: 0, synchronous: 0 },
            oldest_snapshot_age: None,
            oldest_snapshot_pid: None,
            schema: SchemaReport::Empty,
        }
    }

    fn tcp() -> Host {
        Host::Tcp { name: "db".to_owned(), port: 5432 }
    }

    #[test]
    fn a_session_over_a_network_without_tls_is_a_warning() {
        let level = |host, mode| tls(&report(host, mode)).level;
        assert_eq!(level(tcp(), TlsMode::Disable), Level::Warning);
        assert_eq!(level(tcp(), TlsMode::VerifyCa), Level::Ok);
        assert_eq!(level(Host::Unix { folder: "/run".into(), port: 1 }, TlsMode::Disable), Level::Ok);
    }

    #[test]
    fn standbys_that_no_commit_waits_for_are_a_warning() {
        let level = |connected, synchronous| standbys(Standbys { connected, synchronous }, false).level;
        assert_eq!([level(0, 0), level(2, 0), level(2, 1)], [Level::Ok, Level::Warning, Level::Ok]);
    }

    #[test]
    fn an_old_snapshot_and_many_dead_rows_are_warnings() {
        let aged = |age| ServerReport {
            oldest_snapshot_age: Some(age),
            oldest_snapshot_pid: Some(7),
            ..report(tcp(), TlsMode::VerifyFull)
        };
        assert_eq!(snapshot(&aged(100_000)).level, Level::Ok);
        assert_eq!(snapshot(&aged(100_001)).level, Level::Warning);
        let rows = |dead, live| {
            dead_rows(QueueReport {
                version: 1,
                gate: 1,
                bytes: 0,
                dead_ready_rows: dead,
                live_ready_rows: live,
            })
            .level
        };
        assert_eq!(
            [rows(100_001, 5), rows(100_001, 200_000), rows(9, 0)],
            [Level::Warning, Level::Ok, Level::Ok]
        );
    }

    #[test]
    fn a_superuser_and_a_server_without_fsync_are_warnings() {
        let normal = report(tcp(), TlsMode::VerifyFull);
        assert_eq!(role(&normal).level, Level::Ok);
        assert_eq!(role(&ServerReport { is_superuser: true, ..normal }).level, Level::Warning);
        assert_eq!((fsync(true).level, fsync(false).level), (Level::Ok, Level::Warning));
    }
}

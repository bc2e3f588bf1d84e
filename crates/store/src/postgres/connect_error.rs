//! Why a server could not be used: one line that says so, and a hint what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::address::{Host, PasswordFileError};
use domain::values::span::format_span;

/// The oldest version of PostgreSQL that has all that the store needs.
pub const OLDEST_VERSION: u32 = 14;

/// Why no server of an address could be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the PostgreSQL server `{server}`: {problem}{}", others(*other_hosts))]
pub struct ConnectError {
    /// The host whose problem says most.
    pub server: Host,
    pub problem: ConnectProblem,
    /// How many other hosts of the address could not be used either.
    pub other_hosts: usize,
    pub user: String,
    pub database: String,
}

/// The order is that of the way to a session. Of several hosts the problem that came last on this way is reported.
#[derive(Debug, thiserror::Error)]
pub enum ConnectProblem {
    #[error("failed to read the certificates in `{}` ({source})", path.display())]
    BadRootFile { path: PathBuf, source: io::Error },
    #[error("there are no certificates in `{}`", path.display())]
    NoRootCertificates { path: PathBuf },
    #[error("this system has no trusted certificates")]
    NoSystemCertificates,
    #[error("its name is unknown ({0})")]
    UnknownName(io::Error),
    #[error("there is no such socket")]
    NoSocket,
    #[error("the socket may not be opened by this user")]
    ForbiddenSocket,
    #[error("no server listens there (connection refused)")]
    Refused,
    #[error("{0}")]
    Network(io::Error),
    #[error("no answer within {}", format_span(*.0))]
    TimedOut(Duration),
    #[error("the connection was closed")]
    Closed,
    #[error("the answer is not that of a PostgreSQL server ({0})")]
    NotPostgres(String),
    #[error("it offers no TLS")]
    NoTls,
    #[error("its certificate is signed by an unknown authority")]
    UnknownAuthority,
    #[error("its certificate does not name this host{}", names(.0))]
    WrongName(Vec<String>),
    #[error("its certificate has expired")]
    ExpiredCertificate,
    #[error("its certificate is that of an authority, not of a server")]
    AuthorityCertificate,
    #[error("the TLS handshake failed ({0})")]
    Tls(String),
    #[error("it wants a password, and there is none{}", refused_file(.0.as_ref()))]
    NoPassword(Option<PasswordFileError>),
    #[error("the password for role `{0}` is wrong")]
    WrongPassword(String),
    #[error("it refuses this role ({0})")]
    RefusedRole(String),
    #[error("there is no database `{0}`")]
    NoDatabase(String),
    #[error("it refuses the session ({0})")]
    RefusedSession(String),
    /// Poolers do so.
    #[error("it refuses the settings of a session ({0})")]
    RefusedSettings(String),
    #[error("it has no free connection ({0})")]
    TooManyConnections(String),
    #[error("it is starting up or shutting down ({0})")]
    StartingUp(String),
    #[error("it has version {found}, older than {OLDEST_VERSION}")]
    TooOld { found: String },
    #[error("it is a standby, which cannot be written")]
    Standby,
}

impl ConnectError {
    /// Whether another version of the server is needed: trying again does not help.
    pub fn is_incompatible(&self) -> bool {
        matches!(self.problem, ConnectProblem::TooOld { .. })
    }

    /// Whether the server works, but is not the primary.
    pub fn is_standby(&self) -> bool {
        matches!(self.problem, ConnectProblem::Standby)
    }

    pub fn hint(&self) -> String {
        let (server, user, database) = (&self.server, &self.user, &self.database);
        match &self.problem {
            ConnectProblem::BadRootFile { .. } | ConnectProblem::NoRootCertificates { .. } => {
                "name a readable PEM file with `sslrootcert=FILE`, or use `sslrootcert=system`".to_owned()
            }
            ConnectProblem::NoSystemCertificates => {
                "install the package ca-certificates, or name the authority's certificate with `sslrootcert=FILE`".to_owned()
            }
            ConnectProblem::UnknownName(_) => "check the host in the address of the store".to_owned(),
            ConnectProblem::NoSocket | ConnectProblem::Refused => how_to_start(server),
            ConnectProblem::ForbiddenSocket => {
                "the server's setting `unix_socket_permissions` decides who may open its socket".to_owned()
            }
            ConnectProblem::Network(_) | ConnectProblem::TimedOut(_) | ConnectProblem::Closed => {
                "check the network and firewalls between this machine and the server, then try again".to_owned()
            }
            ConnectProblem::NotPostgres(_) => "check the port in the address of the store".to_owned(),
            ConnectProblem::NoTls => {
                "set `ssl = on` at the server, or use `sslmode=disable` if you trust the network between".to_owned()
            }
            ConnectProblem::UnknownAuthority => {
                "name the certificate of the authority with `sslrootcert=FILE` in the address".to_owned()
            }
            ConnectProblem::WrongName(_) => {
                "use a host name that the certificate has, or `sslmode=verify-ca` to accept any server of that authority"
                    .to_owned()
            }
            ConnectProblem::ExpiredCertificate => {
                "renew the server's certificate; if it is valid, check the clock of this machine".to_owned()
            }
            ConnectProblem::AuthorityCertificate => {
                "give the server a certificate with `CA:FALSE`, signed by that authority".to_owned()
            }
            ConnectProblem::Tls(_) => "the log of the server may say more".to_owned(),
            ConnectProblem::NoPassword(Some(PasswordFileError::Exposed { path, .. })) => {
                format!("make the file private: `chmod 600 {}`", quoted(path))
            }
            ConnectProblem::NoPassword(_) => {
                "write the password into ~/.pgpass (mode 0600), or set PGPASSWORD or PGPASSFILE".to_owned()
            }
            ConnectProblem::WrongPassword(_) => format!(
                "check ~/.pgpass, PGPASSWORD or the address; `psql -h HOST -U {user} {database}` asks for the password"
            ),
            ConnectProblem::RefusedRole(_) => {
                "check the role in the address, and the lines of the server's pg_hba.conf for it".to_owned()
            }
            ConnectProblem::NoDatabase(name) => {
                format!("check the database in the address, or create it: `createdb {name}`")
            }
            ConnectProblem::RefusedSession(_) => {
                "try again in a moment; the log of the server, or of a pooler before it, may say more".to_owned()
            }
            ConnectProblem::RefusedSettings(_) => {
                "behind a pooler add `pooler=transaction` to the address".to_owned()
            }
            ConnectProblem::TooManyConnections(_) => {
                "raise `max_connections` at the server, start fewer workers, or use a pooler for `enqueue`".to_owned()
            }
            ConnectProblem::StartingUp(_) => "try again in a moment".to_owned(),
            ConnectProblem::TooOld { .. } => {
                format!("upgrade the server to PostgreSQL {OLDEST_VERSION} or newer")
            }
            ConnectProblem::Standby => {
                "name the primary in the address; with several hosts queuectl finds it by itself".to_owned()
            }
        }
    }

    /// The error of an address whose hosts all failed; there is at least one.
    #[cfg(feature = "postgres")]
    pub(super) fn of(address: &super::Address, failed: Vec<(Host, ConnectProblem)>) -> Self {
        let other_hosts = failed.len().saturating_sub(1);
        // Of equal ones the first: it is the host that the user named first.
        let most = failed.into_iter().rev().max_by_key(|(_, problem)| problem.rank());
        let (server, problem) = most.unwrap_or_else(|| (address.hosts[0].clone(), ConnectProblem::Closed));
        let (user, database) = (address.user.clone(), address.database.clone());
        Self { server, problem, other_hosts, user, database }
    }
}

#[cfg(feature = "postgres")]
impl ConnectProblem {
    /// How far the session came.
    fn rank(&self) -> u8 {
        match self {
            Self::BadRootFile { .. } | Self::NoRootCertificates { .. } | Self::NoSystemCertificates => 0,
            Self::UnknownName(_) => 1,
            Self::NoSocket | Self::ForbiddenSocket | Self::Refused | Self::Network(_) | Self::TimedOut(_) => {
                2
            }
            Self::Closed | Self::NotPostgres(_) => 3,
            Self::NoTls
            | Self::UnknownAuthority
            | Self::WrongName(_)
            | Self::ExpiredCertificate
            | Self::AuthorityCertificate
            | Self::Tls(_) => 4,
            Self::StartingUp(_) | Self::TooManyConnections(_) => 5,
            Self::NoPassword(_)
            | Self::WrongPassword(_)
            | Self::RefusedRole(_)
            | Self::NoDatabase(_)
            | Self::RefusedSession(_)
            | Self::RefusedSettings(_) => 6,
            Self::TooOld { .. } => 7,
            // With a standby that answers, only the primary is missing.
            Self::Standby => 8,
        }
    }
}

fn others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " (and the other host of the address cannot be used either)".to_owned(),
        count => format!(" (and {count} other hosts of the address cannot be used either)"),
    }
}

fn names(presented: &[String]) -> String {
    if presented.is_empty() { String::new() } else { format!(", but {}", presented.join(", ")) }
}

fn refused_file(error: Option<&PasswordFileError>) -> String {
    error.map(|error| format!(": {error}")).unwrap_or_default()
}

fn how_to_start(server: &Host) -> String {
    match server {
        Host::Unix { .. } => {
            "check that the server runs, and the folder of its socket (`show unix_socket_directories`)"
                .to_owned()
        }
        Host::Tcp { .. } => "check that the server runs, and its `listen_addresses` and `port`".to_owned(),
    }
}

fn quoted(path: &Path) -> String {
    domain::text::shell::quote_words(&[path.display().to_string()])
}

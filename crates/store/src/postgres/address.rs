//! The address of a PostgreSQL store: a URL as libpq accepts it, with a few parameters of our own.
//!
//! An address may hold a password. `Debug` and `Display` leave it out; [`Address::with_password`] is the only way to get
//! it as text, for the environment of a supervisor and its workers.

mod password;
mod password_file;
mod url;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::password::Password;
pub use self::password_file::PasswordFileError;

/// The port of a server that names none.
const DEFAULT_PORT: u16 = 5432;
/// The folder of the server's socket, where an address names no host.
const DEFAULT_SOCKET_FOLDER: &str = "/var/run/postgresql";
const DEFAULT_SCHEMA: &str = "queuectl";
const DEFAULT_APPLICATION_NAME: &str = "queuectl";
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub user: String,
    password: Option<Password>,
    /// Tried in this order; at least one.
    pub hosts: Vec<Host>,
    pub database: String,
    /// The schema that holds the queue.
    pub schema: String,
    /// As the URL says; without it [`Address::tls`] decides for each host.
    tls: Option<TlsMode>,
    pub root_certificates: RootCertificates,
    pub pooler: Pooler,
    /// Another way to the same database, past a pooler, for a session that listens.
    pub listen: Option<Box<Address>>,
    /// For each host: from the first packet until the session is ready.
    pub connect_timeout: Duration,
    pub application_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Tcp {
        name: String,
        port: u16,
    },
    /// The folder of the server's socket.
    Unix {
        folder: PathBuf,
        port: u16,
    },
}

domain::named_enum! {
    /// How a session is protected on its way.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TlsMode {
        /// The server's certificate is signed by an authority that we trust and names the host.
        VerifyFull = "verify-full",
        /// The server's certificate is signed by an authority that we trust.
        VerifyCa = "verify-ca",
        Disable = "disable",
    }
}

/// The authorities whose certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootCertificates {
    /// `~/.postgresql/root.crt` where that file exists, as with libpq, otherwise those of the system.
    Usual,
    System,
    File(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooler {
    /// The sessions are ours alone.
    None,
    /// A pooler gives each transaction to any session.
    Transaction,
}

/// Why a URL is no address. No message quotes a part that may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("the address of a PostgreSQL store begins with postgres://")]
    NotPostgres,
    #[error("the address has `%` without two hexadecimal digits behind it")]
    BadEscape,
    #[error("the address has escaped bytes that are no text")]
    NotText,
    /// The text may be a part of a password.
    #[error("the address has a port that is no number from 1 to 65535")]
    BadPort,
    #[error("the address has `@` behind the host: its password has a character that must be escaped")]
    UnescapedPassword,
    #[error("the address has {ports} ports for {hosts} hosts")]
    PortCount { ports: usize, hosts: usize },
    #[error("the address has `[` without `]`")]
    OpenBracket,
    /// The name only if it is similar to a known one: otherwise it may be a part of a password.
    #[error("{}", unknown_parameter(name.as_deref()))]
    UnknownParameter { name: Option<String>, nearest: Option<&'static str> },
    #[error("the parameter `{0}` is given twice")]
    Repeated(&'static str),
    #[error("the parameter `{name}` cannot be `{value}`")]
    BadValue { name: &'static str, value: String, expected: &'static str },
    #[error("`sslmode={0}` does not protect against a false server")]
    WeakTls(String),
    #[error("the address behind `listen` is not valid")]
    Listen(#[source] Box<AddressError>),
    #[error("the address behind `listen` cannot have the parameter `{0}`")]
    UnfitForListening(&'static str),
    #[error("the name of a schema has 1 to 63 bytes and does not begin with `pg_`")]
    BadSchema,
    #[error("the {0} contains a NUL byte")]
    Nul(&'static str),
}

fn unknown_parameter(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("an address has no parameter `{name}`"),
        None => "the address has an unknown parameter".to_owned(),
    }
}

impl AddressError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotPostgres => Some("for example postgres://worker@db.example.com/jobs".to_owned()),
            Self::BadEscape | Self::NotText | Self::UnescapedPassword | Self::BadPort => {
                Some("write `%` as %25, `@` as %40, `:` as %3A and `/` as %2F inside a name or a password".to_owned())
            }
            Self::UnknownParameter { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Self::UnknownParameter { nearest: None, .. } => {
                Some(format!("the parameters are {}", url::Parameter::names().join(", ")))
            }
            Self::BadValue { expected, .. } => Some((*expected).to_owned()),
            Self::WeakTls(_) => Some(
                "use verify-full, or verify-ca if the certificate does not name the host; `disable` is for networks that \
                 you trust"
                    .to_owned(),
            ),
            Self::Listen(source) => source.hint(),
            Self::UnfitForListening(_) => {
                Some("name the server itself there, past the pooler; the schema is that of the store".to_owned())
            }
            Self::PortCount { .. } | Self::OpenBracket | Self::Repeated(_) | Self::BadSchema | Self::Nul(_) => None,
        }
    }
}

impl Address {
    /// Reads a URL: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETERS`, where each part may be absent.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        url::parse(url)
    }

    /// Whether this text is such a URL, well-formed or not.
    pub fn is_url(text: &str) -> bool {
        url::after_scheme(text).is_some()
    }

    pub fn has_password(&self) -> bool {
        self.password.is_some() || self.listen.as_ref().is_some_and(|listen| listen.has_password())
    }

    /// How the session with this host is protected. A socket needs no protection, and neither does loopback unless the
    /// URL asks for it.
    pub fn tls(&self, host: &Host) -> TlsMode {
        match host {
            Host::Unix { .. } => TlsMode::Disable,
            Host::Tcp { name, .. } => self
                .tls
                .unwrap_or_else(|| if is_loopback(name) { TlsMode::Disable } else { TlsMode::VerifyFull }),
        }
    }

    /// The URL with its password. Must never be printed, logged or passed as an argument.
    pub fn with_password(&self) -> String {
        url::Url { address: self, shows_password: true }.to_string()
    }
}

impl Host {
    /// The path of the socket in the folder that the server was given.
    pub fn socket_path(folder: &Path, port: u16) -> PathBuf {
        folder.join(format!(".s.PGSQL.{port}"))
    }

    pub fn port(&self) -> u16 {
        match self {
            Self::Tcp { port, .. } | Self::Unix { port, .. } => *port,
        }
    }
}

/// As a person writes it: without the usual port.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { name, port: DEFAULT_PORT } => write!(f, "{name}"),
            Self::Tcp { name, port } if name.contains(':') => write!(f, "[{name}]:{port}"),
            Self::Tcp { name, port } => write!(f, "{name}:{port}"),
            Self::Unix { folder, port } => write!(f, "{}", Self::socket_path(folder, *port).display()),
        }
    }
}

/// The URL without its password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        url::Url { address: self, shows_password: false }.fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests;

//! Opening a session: the socket is ours, so that its descriptor can wake an epoll and its timeouts are those that we
//! need. All hosts of the address are tried, in their order.

mod classify;
mod socket;
mod tls;

use std::os::fd::OwnedFd;

use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config};

use super::address::{Address, Host, TlsMode};
use super::connect_error::{ConnectError, ConnectProblem, OLDEST_VERSION};
pub use socket::Socket;
pub use tls::TlsStream;

/// The future that carries the session. It must be polled for the client to make progress.
pub type Connection = tokio_postgres::Connection<Socket, TlsStream>;

/// Which server is acceptable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// One that can be written.
    #[default]
    Primary,
    /// A standby, too: for a session that only reads.
    Any,
}

#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    pub target: Target,
    /// Settings of the session, in the form of the server's option `-c NAME=VALUE`. Empty behind a pooler, which refuses
    /// them.
    pub session_settings: String,
}

/// A session that is ready.
#[expect(missing_debug_implementations, reason = "the driver's connection has none")]
pub struct Connected {
    pub client: Client,
    pub connection: Connection,
    /// A copy of the socket's descriptor, for an epoll. It is readable when the server has sent something.
    pub descriptor: OwnedFd,
    pub server: Server,
}

/// The server of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub host: Host,
    /// As the server says it, such as `15.4 (Debian 15.4-1)`.
    pub version: String,
    pub is_standby: bool,
    pub tls: TlsMode,
}

/// Opens a session with the first acceptable host.
pub async fn connect(address: &Address, options: &ConnectOptions) -> Result<Connected, ConnectError> {
    let mut failed = Vec::new();
    for host in &address.hosts {
        let trial = tokio::time::timeout(address.connect_timeout, connect_host(address, host, options));
        match trial.await.unwrap_or(Err(ConnectProblem::TimedOut(address.connect_timeout))) {
            Ok(connected) => return Ok(connected),
            Err(problem) => failed.push((host.clone(), problem)),
        }
    }
    Err(ConnectError::of(address, failed))
}

async fn connect_host(
    address: &Address,
    host: &Host,
    options: &ConnectOptions,
) -> Result<Connected, ConnectProblem> {
    let mode = address.tls(host);
    let tls = tls::Connector::new(mode, &address.root_certificates, host)?;
    // A refused password file matters only if the server asks for a password.
    let (password, refused_file) = match address.password(host) {
        Ok(password) => (password, None),
        Err(error) => (None, Some(error)),
    };
    let mut config = Config::new();
    config.user(&address.user).dbname(&address.database).application_name(&address.application_name);
    config.ssl_mode(if mode == TlsMode::Disable { SslMode::Disable } else { SslMode::Require });
    if !options.session_settings.is_empty() {
        config.options(&options.session_settings);
    }
    if let Some(password) = &password {
        config.password(password.reveal());
    }
    let socket = Socket::connect(host).await?;
    let descriptor = socket.descriptor().map_err(ConnectProblem::Network)?;
    let (client, connection) = config
        .connect_raw(socket, tls)
        .await
        .map_err(|error| classify::problem(error, address, refused_file))?;
    let server = Server {
        host: host.clone(),
        version: connection.parameter("server_version").unwrap_or_default().to_owned(),
        is_standby: connection.parameter("in_hot_standby") == Some("on"),
        tls: mode,
    };
    check(&server, options.target)?;
    Ok(Connected { client, connection, descriptor, server })
}

fn check(server: &Server, target: Target) -> Result<(), ConnectProblem> {
    if server.major_version().is_some_and(|major| major < OLDEST_VERSION) {
        return Err(ConnectProblem::TooOld { found: server.version.clone() });
    }
    if server.is_standby && target == Target::Primary {
        return Err(ConnectProblem::Standby);
    }
    Ok(())
}

impl Server {
    /// The number before the first dot; a development version has `17devel`.
    pub fn major_version(&self) -> Option<u32> {
        let digits = self.version.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.version.len());
        self.version[..digits].parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: &str, is_standby: bool) -> Server {
        let host = Host::Tcp { name: "h".to_owned(), port: 1 };
        Server { host, version: version.to_owned(), is_standby, tls: TlsMode::Disable }
    }

    #[test]
    fn an_old_server_and_a_standby_are_refused_for_different_reasons() {
        for old in ["9.6.24", "13.14 (Debian 13.14-1)"] {
            let refused = check(&server(old, true), Target::Primary).expect_err(old);
            assert!(matches!(&refused, ConnectProblem::TooOld { found } if found == old), "{refused}");
        }
        for new in ["14.0", "15.18 (Debian)", "18beta1", "17devel", ""] {
            check(&server(new, false), Target::Primary).expect(new);
        }
        let refused = check(&server("15.1", true), Target::Primary);
        assert!(matches!(refused, Err(ConnectProblem::Standby)), "{refused:?}");
        check(&server("15.1", true), Target::Any).expect("a session that reads");
    }
}

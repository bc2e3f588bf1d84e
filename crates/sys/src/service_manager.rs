//! Messages to the service manager that started this process, such as systemd: the protocol of sd_notify(3).
//!
//! Datagrams on a socket that the manager names in the environment. They are only news: sending one never blocks, and
//! a failure to send one changes nothing.

pub mod inherited_sockets;

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The socket: a path, or `@` and an abstract name.
const SOCKET: &str = "NOTIFY_SOCKET";
/// How many microseconds may pass between two signs of life.
const WATCHDOG_INTERVAL: &str = "WATCHDOG_USEC";
/// The process that has to give the signs of life.
const WATCHDOG_PROCESS: &str = "WATCHDOG_PID";

/// A service manager that waits for messages of this process.
#[derive(Clone, Debug)]
pub struct ServiceManager {
    socket: SocketAddr,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that the environment names; `None` if this process is not a service, or the name is not an address.
    pub fn from_environment() -> Option<Self> {
        Self::read(|name| env::var_os(name), std::process::id())
    }

    fn read(variable: impl Fn(&str) -> Option<OsString>, pid: u32) -> Option<Self> {
        let name = variable(SOCKET)?;
        let socket = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok()?,
            [b'/', ..] => SocketAddr::from_pathname(&name).ok()?,
            _ => return None,
        };
        let number = |name| variable(name).and_then(|value| value.to_str()?.parse::<u64>().ok());
        let is_for_us = number(WATCHDOG_PROCESS).is_none_or(|watched| watched == u64::from(pid));
        let interval = number(WATCHDOG_INTERVAL).filter(|micros| *micros > 0 && is_for_us);
        Some(Self { socket, watchdog: interval.map(Duration::from_micros) })
    }

    /// How often to give a sign of life: twice as often as the manager demands it.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|interval| interval / 2)
    }

    /// The service is up.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// One line for people that says what the service does.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={status}"));
    }

    /// The service has begun to shut down.
    pub fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\nSTATUS={status}"));
    }

    /// A sign of life.
    pub fn is_alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, message: &str) {
        let _ = self.try_send(message);
    }

    fn try_send(&self, message: &str) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.send_to_addr(message.as_bytes(), &self.socket)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<ServiceManager> {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        ServiceManager::read(value, 7)
    }

    #[test]
    fn only_a_path_or_an_abstract_name_is_a_socket() {
        for (socket, is_one) in [("/run/notify", true), ("@notify", true), ("notify", false), ("", false)] {
            assert_eq!(read(&[(SOCKET, socket)]).is_some(), is_one, "{socket}");
        }
        assert!(read(&[]).is_none());
    }

    #[test]
    fn the_watchdog_counts_only_for_the_process_that_it_names() {
        let interval = |variables: &[(&str, &str)]| {
            read(&[&[(SOCKET, "@x")], variables].concat()).expect("a manager").watchdog_interval()
        };
        let second = Some(Duration::from_secs(1));
        assert_eq!(interval(&[(WATCHDOG_INTERVAL, "2000000")]), second);
        assert_eq!(interval(&[(WATCHDOG_INTERVAL, "2000000"), (WATCHDOG_PROCESS, "7")]), second);
        assert_eq!(interval(&[(WATCHDOG_INTERVAL, "2000000"), (WATCHDOG_PROCESS, "8")]), None);
        assert_eq!(interval(&[(WATCHDOG_INTERVAL, "0")]), None);
        assert_eq!(interval(&[(WATCHDOG_INTERVAL, "soon")]), None);
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn messages_arrive_and_a_manager_that_is_gone_does_no_harm() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let manager = read(&[(SOCKET, path.to_str().expect("text"))]).expect("a manager");
        manager.is_alive();
        let socket = UnixDatagram::bind(&path).expect("a socket");
        manager.ready("2 workers");
        let mut buffer = [0; 64];
        let count = socket.recv(&mut buffer).expect("a message");
        assert_eq!(&buffer[..count], b"READY=1\nSTATUS=2 workers");
    }
}

//! The server of a trial with several hosts: a schema of its own, and how each host reaches it.

use std::time::Duration;

use super::host::HostSetup;
use crate::ProofError;
use store::postgres::Address;

/// The hosts of a trial on a server.
pub const HOST_NAMES: [&str; 3] = ["a", "b", "c"];
/// Sessions open quickly or not at all, so that a cut-off host delays no trial.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A server, and how the process that runs the trial and each host reach it.
#[derive(Clone, Debug)]
pub struct Server {
    pub observer: Address,
    pub hosts: Vec<HostSetup>,
}

impl Server {
    /// All hosts reach the server by this address, each through a proxy where the sessions are not encrypted.
    pub fn behind_proxies(address: &Address) -> Self {
        Self::reached_by(address, true)
    }

    /// All hosts reach the server by this address.
    pub fn reached_directly(address: &Address) -> Self {
        Self::reached_by(address, false)
    }

    fn reached_by(address: &Address, is_proxied: bool) -> Self {
        let setup = || HostSetup { address: address.clone(), is_proxied, launcher: Vec::new() };
        Self { observer: address.clone(), hosts: HOST_NAMES.iter().map(|_| setup()).collect() }
    }

    /// Moves all of it to a schema of its own. Its name is also that of the sessions of the hosts.
    pub(super) fn with_own_schema(mut self) -> Self {
        let schema = format!("queuectl_selftest_{}_{:08x}", std::process::id(), fastrand::u32(..));
        self.observer.schema.clone_from(&schema);
        for setup in &mut self.hosts {
            setup.address.schema.clone_from(&schema);
            setup.address.application_name.clone_from(&schema);
            setup.address.connect_timeout = setup.address.connect_timeout.min(CONNECT_TIMEOUT);
        }
        self
    }
}

/// Which sessions of the hosts to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    All,
    Listening,
}

/// Ends about half of these sessions of a trial. Returns how many.
#[cfg(feature = "postgres")]
pub(super) fn end_sessions(address: &Address, sessions: Sessions) -> Result<u64, ProofError> {
    let mut address = address.clone();
    address.application_name.clone_from(&address.schema);
    let sessions = match sessions {
        Sessions::All => store::postgres::Sessions::All,
        Sessions::Listening => store::postgres::Sessions::Listening,
    };
    Ok(store::postgres::end_sessions(&address, sessions, 0.5)?)
}

/// Deletes the schema of a trial.
#[cfg(feature = "postgres")]
pub(super) fn drop_schema(address: &Address) {
    // A session that was cut off may hold locks until the server ends it.
    for _ in 0..5 {
        if store::postgres::PostgresStore::destroy(address).is_ok() {
            return;
        }
    }
}

/// Without PostgreSQL no trial on a server begins.
#[cfg(not(feature = "postgres"))]
pub(super) fn end_sessions(_: &Address, _: Sessions) -> Result<u64, ProofError> {
    Ok(0)
}

#[cfg(not(feature = "postgres"))]
pub(super) fn drop_schema(_: &Address) {}

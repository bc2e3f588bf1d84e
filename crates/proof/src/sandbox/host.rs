//! A host of a trial: a home of its own, its pools of workers, and its way to the store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::proxy::Proxy;
use super::{lock, pid};
use crate::ProofError;
use store::postgres::Address;
use sys::fs::owner_only;

/// The home of the only host, in the folder of the trial.
pub(crate) const HOME: &str = "home";
/// The folder with the homes of several hosts.
pub(crate) const HOMES: &str = "hosts";
/// The pause before a host replaces a pool that has ended, so that one that cannot start is not replaced in a loop.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// How a host reaches the server.
#[derive(Clone, Debug)]
pub struct HostSetup {
    pub address: Address,
    /// Whether a proxy is put between.
    pub is_proxied: bool,
    /// The words before each program that it runs, such as those that enter a network namespace.
    pub launcher: Vec<OsString>,
}

#[derive(Debug)]
pub struct Host {
    pub name: String,
    pub home: PathBuf,
    /// How its processes reach the server. `None`: the store is a file in the home.
    pub(crate) address: Option<Address>,
    pub proxy: Option<Proxy>,
    pub(super) launcher: Vec<OsString>,
    pub(super) pools: Mutex<Vec<Child>>,
    /// No pool is started before this time.
    next_start: Mutex<Instant>,
}

impl Host {
    /// The host of a store in a file.
    pub(super) fn local(folder: &Path) -> Result<Self, ProofError> {
        Self::new(folder.join(HOME), None, None, Vec::new())
    }

    pub(super) fn remote(home: PathBuf, setup: HostSetup) -> Result<Self, ProofError> {
        let proxy = if setup.is_proxied {
            Proxy::to(&setup.address).map_err(ProofError::system("start a proxy"))?
        } else {
            None
        };
        let address = proxy.as_ref().map_or(setup.address, |proxy| proxy.address.clone());
        Self::new(home, Some(address), proxy, setup.launcher)
    }

    fn new(
        home: PathBuf,
        address: Option<Address>,
        proxy: Option<Proxy>,
        launcher: Vec<OsString>,
    ) -> Result<Self, ProofError> {
        let name = host_of(&home);
        let host = Self {
            name,
            home,
            address,
            proxy,
            launcher,
            pools: Mutex::default(),
            next_start: Mutex::new(Instant::now()),
        };
        host.make_home()?;
        Ok(host)
    }

    pub(crate) fn make_home(&self) -> Result<(), ProofError> {
        owner_only::add_folder(&self.home)
            .map_err(|source| ProofError::CannotMake { path: self.home.clone(), source })
    }

    /// The running supervisors that this sandbox started on it.
    pub fn supervisors(&self) -> Vec<Pid> {
        let mut pools = lock(&self.pools);
        pools.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        pools.iter().filter_map(|child| pid(child.id())).collect()
    }

    /// Starts no pool for this long.
    pub(crate) fn stay_down(&self, span: Duration) {
        *lock(&self.next_start) = Instant::now() + span;
    }

    /// Whether a pool may be started now.
    pub(crate) fn may_start(&self) -> bool {
        let mut next = lock(&self.next_start);
        let may_start = *next <= Instant::now();
        if may_start {
            *next = Instant::now() + RESTART_PAUSE;
        }
        may_start
    }
}

/// The name of the host with this home.
pub fn host_of(home: &Path) -> String {
    home.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

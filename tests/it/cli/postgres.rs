//! A queue on a PostgreSQL server, used from two machines.
//!
//! Both machines are this one: each has a home and a machine id of its own, so that neither reads the locks and files of
//! the other.

mod bench;
mod copy;
#[cfg(debug_assertions)] // As the simulated network, whose command it uses.
mod cut_off;
mod export;
#[cfg(debug_assertions)] // Only a debug build has fail-points.
mod stopped;
mod takeover;
mod verbs;
#[cfg(debug_assertions)] // Released builds take no migrations from tests.
mod versions;
mod workers;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use store::postgres::Address;

use super::harness::{Call, Home, RunResult};
use crate::engine::harness::{Pool, wait_until};
use crate::store::fixture::schema::Schema;

pub(crate) struct Machine<'a> {
    pub(crate) home: Home,
    address: &'a Address,
    name: &'a str,
    /// See [`Self::blind`].
    network: Option<PathBuf>,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(schema: &'a Schema, name: &'a str) -> Self {
        Self::at(&schema.address, name)
    }

    /// A machine that reaches the server by this address.
    pub(crate) fn at(address: &'a Address, name: &'a str) -> Self {
        Self { home: Home::new(), address, name, network: None }
    }

    /// Keeps the locks of other homes out of its reach: they are on this machine, and a lock that is held would keep it from
    /// taking jobs over.
    pub(crate) fn blind(mut self) -> Self {
        let network = self.home.path().join("net");
        fs::create_dir_all(&network).expect("a folder");
        self.network = Some(network);
        self
    }

    pub(crate) fn call(&self, args: &[&str]) -> Call {
        let call = self.home.call(args).env("QUEUECTL_MACHINE_ID", self.name);
        let call = call.env("QUEUECTL_STORE", self.address.to_string());
        match &self.network {
            Some(network) => call.env("QUEUECTL_SIMULATE_NETWORK", network),
            None => call,
        }
    }

    /// Runs the program with these words, which contain no blanks.
    #[track_caller]
    pub(crate) fn run(&self, words: &str) -> RunResult {
        self.call(&words.split(' ').collect::<Vec<_>>()).run()
    }

    #[track_caller]
    pub(crate) fn enqueue(&self, id: &str, command: &str) {
        self.call(&["enqueue", "-q", "--id", id, "-c", command]).run().ok();
    }

    /// Starts a worker, which ends with the result.
    #[track_caller]
    pub(crate) fn worker(&self) -> Pool<'_> {
        let pool = Pool::of(&self.home);
        self.run("worker start -q").ok();
        pool
    }

    #[track_caller]
    pub(crate) fn show(&self, id: &str) -> Value {
        self.run(&format!("show {id} --json")).ok().json()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, id: &str, state: &str) -> Value {
        let mut job = Value::Null;
        wait_until(&format!("{id} is {state}"), || {
            job = self.show(id);
            job["state"] == state
        });
        job
    }

    /// Leases are short, so that a test of a lost worker ends soon.
    pub(crate) fn shorten_leases(&self) {
        for (key, value) in [("heartbeat_interval", "500ms"), ("lease", "2s"), ("kill_grace", "300ms")] {
            self.run(&format!("config set {key} {value}")).ok();
        }
    }
}

//! A queue on a PostgreSQL server, used from two machines.
//!
//! Both machines are this one: each has a home and a machine id of its own, so that neither reads the locks and files of
//! the other.

mod copy;
mod takeover;
mod verbs;
mod workers;

use serde_json::Value;

use super::harness::{Call, Home, RunResult};
use crate::engine::harness::{Pool, wait_until};
use crate::store::fixture::schema::Schema;

pub(crate) struct Machine<'a> {
    pub(crate) home: Home,
    schema: &'a Schema,
    name: &'a str,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(schema: &'a Schema, name: &'a str) -> Self {
        Self { home: Home::new(), schema, name }
    }

    pub(crate) fn call(&self, args: &[&str]) -> Call {
        let call = self.home.call(args).env("QUEUECTL_MACHINE_ID", self.name);
        call.env("QUEUECTL_STORE", self.schema.address.to_string())
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

//! The browser: the one that `tests/with-chromium` has started for a whole test run, or one for this test alone.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::REPOSITORY;

/// A socket that speaks the debugging protocol.
const ADDRESS: &str = "QUEUECTL_TEST_CHROMIUM";
/// Prints the address, and lives as long as its standard input.
const UNTIL_CLOSED: &str = "echo \"$QUEUECTL_TEST_CHROMIUM\"; exec cat >/dev/null";

pub(crate) struct Process {
    pub(crate) address: String,
    /// `None` if the browser belongs to the whole test run.
    own: Option<Child>,
}

impl Process {
    pub(crate) fn of_test_run() -> Self {
        match env::var(ADDRESS) {
            Ok(address) => Self { address, own: None },
            Err(_) => Self::start(),
        }
    }

    /// Starts a browser that ends with this value, and with this process however it ends.
    pub(crate) fn start() -> Self {
        let mut command = Command::new(format!("{REPOSITORY}/tests/with-chromium"));
        command.args(["sh", "-c", UNTIL_CLOSED]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("tests/with-chromium starts");
        let mut address = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        out.read_line(&mut address).expect("the address of the browser");
        assert!(!address.is_empty(), "no browser: {:?}", child.wait());
        Self { address: address.trim_end().to_owned(), own: Some(child) }
    }

    /// The same browser for another test, while this value lives.
    pub(super) fn shared(&self) -> Self {
        Self { address: self.address.clone(), own: None }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.own {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

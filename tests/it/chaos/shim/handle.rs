//! What a test has in hand of the shim.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use tempfile::TempDir;

use super::control::{Control, Fault, When};
use super::library;
use crate::cli::harness::Home;

/// Faults for whoever is started with its [`variables`](Self::variables). All are off at first.
#[derive(Debug)]
pub(crate) struct Shim {
    control: Control,
    variables: Vec<(String, OsString)>,
    _folder: TempDir,
}

impl Shim {
    /// For files in this home.
    pub(crate) fn new(home: &Home) -> Self {
        Self::below(&home.path())
    }

    /// For files in this folder, which need not be there yet.
    pub(crate) fn below(home: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("control");
        let control = Control::create(&path);
        // The kernel tells paths without symbolic links.
        let inside = home.parent().and_then(|folder| folder.canonicalize().ok()).expect("a folder");
        let below = inside.join(home.file_name().expect("a home has a name"));
        let variables = vec![
            ("LD_PRELOAD".to_owned(), library::path().into()),
            ("QUEUECTL_SHIM".to_owned(), path.into()),
            ("QUEUECTL_SHIM_BELOW".to_owned(), below.into()),
        ];
        Self { control, variables, _folder: folder }
    }

    /// What a process must have in its environment.
    pub(crate) fn variables(&self) -> Vec<(String, OsString)> {
        self.variables.clone()
    }

    pub(crate) fn sync_fails(&self, error: Errno, when: When) {
        self.fails(Fault::Sync, error, when);
    }

    pub(crate) fn write_fails(&self, error: Errno, when: When) {
        self.fails(Fault::Write, error, when);
    }

    /// No room for anything. Making a file shorter or giving it a hole needs none.
    pub(crate) fn is_full(&self) {
        self.fails(Fault::Write, Errno::NOSPC, When::Always);
        self.fails(Fault::Allocate, Errno::NOSPC, When::Always);
    }

    pub(crate) fn fails(&self, fault: Fault, error: Errno, when: When) {
        self.control.set(fault, error.raw_os_error(), when);
    }

    /// Every call that reads, writes, truncates or syncs takes this much longer.
    pub(crate) fn slow(&self, delay: Duration) {
        self.control.delay(u64::try_from(delay.as_micros()).expect("a short delay"));
    }

    /// Strikes only files whose paths end so; all of the home with an empty one.
    pub(crate) fn only(&self, suffix: &str) {
        self.control.only(suffix);
    }

    /// The wall clock goes ahead by so many seconds, or behind.
    pub(crate) fn shift_clock(&self, seconds: i64) {
        self.control.shift_clock(seconds);
    }

    /// The clock that counts from boot goes so many times slower, and those who wait for a time wait longer: whatever
    /// happens seems to happen faster, however slow the machine is. For processes that are not started yet.
    pub(crate) fn slow_clock(&self, times: u64) {
        self.control.slow_clock(times);
    }

    /// The disk works again, as fast as it can, and the clock is right. Counters stay.
    pub(crate) fn heal(&self) {
        self.heal_disk();
        self.shift_clock(0);
    }

    pub(crate) fn heal_disk(&self) {
        for fault in Fault::ALL {
            self.control.set(fault, 0, When::Never);
        }
        self.slow(Duration::ZERO);
        self.only("");
    }

    /// How many calls there were since the fault was set; with `When::Nth(u64::MAX)` they are only counted.
    pub(crate) fn seen(&self, fault: Fault) -> u64 {
        self.control.seen(fault)
    }

    /// How many calls have failed because of this fault, ever.
    pub(crate) fn struck(&self, fault: Fault) -> u64 {
        self.control.struck(fault)
    }

    /// How many calls were delayed, ever.
    pub(crate) fn delayed(&self) -> u64 {
        self.control.delayed()
    }

    /// How often somebody was told a wrong time, ever.
    pub(crate) fn clock_shifted(&self) -> u64 {
        self.control.clock_shifted()
    }
}

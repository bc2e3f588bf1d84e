//! The handle with which a test controls the shim.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use tempfile::TempDir;

use super::control::{Control, Fault, When};
use super::library;
use crate::cli::harness::Home;

/// Faults for processes that are started with its [`variables`](Self::variables). All are off at first.
#[derive(Debug)]
pub(crate) struct Shim {
    control: Control,
    variables: Vec<(String, OsString)>,
    folder: TempDir,
}

impl Shim {
    /// A shim for the files of this home.
    pub(crate) fn new(home: &Home) -> Self {
        Self::below(&home.path())
    }

    /// A shim for the files of this folder, which need not exist yet.
    pub(crate) fn below(home: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("control");
        let control = Control::create(&path);
        // The kernel reports paths without symbolic links.
        let inside = home.parent().and_then(|folder| folder.canonicalize().ok()).expect("a folder");
        let below = inside.join(home.file_name().expect("a home has a name"));
        let variables = vec![
            ("LD_PRELOAD".to_owned(), library::path().into()),
            ("QUEUECTL_SHIM".to_owned(), path.into()),
            ("QUEUECTL_SHIM_BELOW".to_owned(), below.into()),
        ];
        Self { control, variables, folder }
    }

    /// The variables that a process needs in its environment.
    pub(crate) fn variables(&self) -> Vec<(String, OsString)> {
        self.variables.clone()
    }

    /// The same for processes of other users, which may not be able to read the build folder.
    pub(crate) fn shared_variables(&self) -> Vec<(String, OsString)> {
        let folder = self.folder.path();
        let library = folder.join("shim.so");
        fs::copy(library::path(), &library).expect("the library is copied");
        for (path, mode) in [(folder, 0o755), (&folder.join("control"), 0o666), (&library, 0o755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        let mut variables = self.variables();
        variables[0].1 = library.into();
        variables
    }

    pub(crate) fn sync_fails(&self, error: Errno, when: When) {
        self.fails(Fault::Sync, error, when);
    }

    pub(crate) fn write_fails(&self, error: Errno, when: When) {
        self.fails(Fault::Write, error, when);
    }

    /// Simulates a full disk. Truncating a file or punching a hole still works.
    pub(crate) fn is_full(&self) {
        self.fails(Fault::Write, Errno::NOSPC, When::Always);
        self.fails(Fault::Allocate, Errno::NOSPC, When::Always);
    }

    pub(crate) fn fails(&self, fault: Fault, error: Errno, when: When) {
        self.control.set(fault, error.raw_os_error(), when);
    }

    /// Delays every call that reads, writes, truncates or syncs.
    pub(crate) fn slow(&self, delay: Duration) {
        self.control.delay(u64::try_from(delay.as_micros()).expect("a short delay"));
    }

    /// Limits faults to files whose paths end with `suffix`; empty: all files of the home.
    pub(crate) fn only(&self, suffix: &str) {
        self.control.only(suffix);
    }

    /// Shifts the wall clock by this many seconds.
    pub(crate) fn shift_clock(&self, seconds: i64) {
        self.control.shift_clock(seconds);
    }

    /// Makes the monotonic clock run this many times slower, and timeouts as much longer: everything seems to happen faster,
    /// however slow the machine is. Only affects processes started later.
    pub(crate) fn slow_clock(&self, times: u64) {
        self.control.slow_clock(times);
    }

    /// Ends all faults of disk and wall clock. The counters keep their values.
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

    /// How many calls there were since the fault was set; with `When::Nth(u64::MAX)` calls are only counted.
    pub(crate) fn seen(&self, fault: Fault) -> u64 {
        self.control.seen(fault)
    }

    /// How many calls have failed because of this fault in total.
    pub(crate) fn struck(&self, fault: Fault) -> u64 {
        self.control.struck(fault)
    }

    /// How many calls were delayed in total.
    pub(crate) fn delayed(&self) -> u64 {
        self.control.delayed()
    }

    /// How often a process read the shifted time, in total.
    pub(crate) fn clock_shifted(&self) -> u64 {
        self.control.clock_shifted()
    }
}

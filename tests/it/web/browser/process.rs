//! Debian's chromium as a child of the test: its debugging pipe, its profile and its end.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tempfile::TempDir;

const PROGRAM: &str = "chromium";

/// Nothing that would ask the network, a display, a keyring or a second process for anything.
const FLAGS: &[&str] = &[
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-zygote",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--force-color-profile=srgb",
    "--lang=en-US",
];

/// The debugging pipe is on descriptors 3 and 4. The shell puts it there and becomes the browser.
const TO_DESCRIPTORS: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>\"$0\"";

pub(crate) struct Process {
    child: Child,
    folder: TempDir,
}

impl Process {
    /// Starts the browser, and returns it with both ends of its pipe.
    pub(crate) fn start() -> (Self, ChildStdin, ChildStdout) {
        let path = env::var_os("PATH").unwrap_or_default();
        let is_installed = env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file());
        assert!(
            is_installed,
            "`{PROGRAM}` is missing: install Debian's package chromium, or run ./check as root"
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", TO_DESCRIPTORS]).arg(folder.path().join("stderr")).arg(PROGRAM).args(FLAGS);
        command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        command.env("HOME", folder.path()).env("TMPDIR", folder.path()).env("TZ", "UTC");
        for name in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"] {
            command.env_remove(name);
        }
        // A group of its own: all its processes end together. If this process is killed, the closed pipe ends them.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the shell starts");
        let to = child.stdin.take().expect("stdin is a pipe");
        let from = child.stdout.take().expect("stdout is a pipe");
        (Self { child, folder }, to, from)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The errors that the browser has printed.
    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        // The profile can be deleted once no process writes to it.
        let end = Instant::now() + Duration::from_secs(2);
        while test_kill_process_group(group).is_ok() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

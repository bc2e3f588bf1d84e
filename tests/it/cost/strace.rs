//! The system calls of a program, traced by `strace`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cli::harness::{Call, PROGRAM};

const OPENS: [&str; 4] = ["open", "openat", "openat2", "creat"];

/// The calls of one run and of all processes that it started, in order: `name(arguments) = result`.
#[derive(Debug)]
pub(super) struct Calls(Vec<String>);

/// Whether `strace` works here; if not, says so on standard error.
pub(super) fn is_installed() -> bool {
    let mut probe = Command::new("strace");
    probe.args(["-f", "-o", "/dev/null", "true"]).stdin(Stdio::null()).stderr(Stdio::null());
    let works = probe.status().is_ok_and(|status| status.success());
    if !works {
        // Bypasses the capture of output, which hides it for tests that pass.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: `strace` is not installed or not allowed here, so system calls are not counted"
        );
    }
    works
}

impl Calls {
    /// Runs the program, which must succeed.
    pub(super) fn of(call: Call, folder: &Path) -> Self {
        let trace = folder.join("calls");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-s", "4096", "-e", "signal=none", "-o"]).arg(&trace).arg(PROGRAM);
        call.through(strace).run().ok();
        let text = String::from_utf8_lossy(&fs::read(&trace).expect("strace wrote the calls")).into_owned();
        let calls = text.lines().filter_map(|line| line.split_once(' ')).map(|(_, call)| call.trim_start());
        Self(calls.map(str::to_owned).collect())
    }

    /// The calls from the first access to the home on, without those of process start.
    pub(super) fn on_home(self, home: &Path) -> Self {
        let inside = format!("\"{}", home.display());
        let is_start = |call: &String| !call.starts_with("execve(") && call.contains(&inside);
        let start = self.0.iter().position(is_start).expect("the program accesses the home");
        Self(self.0.into_iter().skip(start).collect())
    }

    /// Without accesses to the folders above the home: their number depends on how deep the home is.
    pub(super) fn without_folders_above(mut self, home: &Path) -> Self {
        let above: Vec<String> =
            home.ancestors().skip(1).map(|path| format!("\"{}\"", path.display())).collect();
        self.0.retain(|call| !above.iter().any(|folder| call.contains(folder)));
        self
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The calls with one of these names.
    pub(super) fn named(&self, names: &[&str]) -> Vec<&str> {
        let matches = |call: &&str| call.split('(').next().is_some_and(|name| names.contains(&name));
        self.0.iter().map(String::as_str).filter(matches).collect()
    }

    /// The descriptor of the opened file whose quoted name ends with `name`.
    pub(super) fn descriptor(&self, name: &str) -> Option<&str> {
        let opened = self.named(&OPENS).into_iter().find(|call| call.contains(name))?;
        opened.rsplit_once(" = ").map(|(_, descriptor)| descriptor)
    }

    /// The calls that opened this file.
    pub(super) fn opened(&self, path: &Path) -> Vec<&str> {
        let path = format!("\"{}\"", path.display());
        self.named(&OPENS).into_iter().filter(|call| call.contains(&path)).collect()
    }
}

impl std::fmt::Display for Calls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = self.0.iter().map(|call| call.chars().take(160).collect::<String>());
        short.into_iter().try_for_each(|call| writeln!(out, "{call}"))
    }
}

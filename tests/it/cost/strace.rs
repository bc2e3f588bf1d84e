//! The calls that a program makes to the system, where `strace` can tell.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cli::harness::{Call, PROGRAM};

const OPENS: [&str; 4] = ["open", "openat", "openat2", "creat"];

/// The calls of one run and of all that it started, in their order: `name(arguments) = result`.
#[derive(Debug)]
pub(super) struct Calls(Vec<String>);

/// Whether runs can be traced here; standard error says so if not.
pub(super) fn is_there() -> bool {
    let mut try_it = Command::new("strace");
    try_it.args(["-f", "-o", "/dev/null", "true"]).stdin(Stdio::null()).stderr(Stdio::null());
    let works = try_it.status().is_ok_and(|status| status.success());
    if !works {
        // Past what holds back the words of tests that pass.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: `strace` is not installed or not allowed here, so calls are not counted"
        );
    }
    works
}

impl Calls {
    /// Runs the program, which must end well.
    pub(super) fn of(call: Call, folder: &Path) -> Self {
        let tape = folder.join("calls");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-s", "4096", "-e", "signal=none", "-o"]).arg(&tape).arg(PROGRAM);
        call.through(strace).run().ok();
        let text =
            String::from_utf8_lossy(&fs::read(&tape).expect("the calls were written down")).into_owned();
        let calls = text.lines().filter_map(|line| line.split_once(' ')).map(|(_, call)| call.trim_start());
        Self(calls.map(str::to_owned).collect())
    }

    /// What it does from its first look into the home on; what starting a program takes is left out.
    pub(super) fn on_home(self, home: &Path) -> Self {
        let inside = format!("\"{}", home.display());
        let is_start = |call: &String| !call.starts_with("execve(") && call.contains(&inside);
        let start = self.0.iter().position(is_start).expect("it looks into the home");
        Self(self.0.into_iter().skip(start).collect())
    }

    /// Without looks at the folders above the home: there are as many as the home lies deep.
    pub(super) fn without_folders_above(mut self, home: &Path) -> Self {
        let above: Vec<String> =
            home.ancestors().skip(1).map(|path| format!("\"{}\"", path.display())).collect();
        self.0.retain(|call| !above.iter().any(|folder| call.contains(folder)));
        self
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Those by one of these names.
    pub(super) fn named(&self, names: &[&str]) -> Vec<&str> {
        let is_meant = |call: &&str| call.split('(').next().is_some_and(|name| names.contains(&name));
        self.0.iter().map(String::as_str).filter(is_meant).collect()
    }

    /// The number under which a file was opened whose name in quotes ends so.
    pub(super) fn descriptor(&self, name: &str) -> Option<&str> {
        let opened = self.named(&OPENS).into_iter().find(|call| call.contains(name))?;
        opened.rsplit_once(" = ").map(|(_, descriptor)| descriptor)
    }

    /// Those that opened this file.
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

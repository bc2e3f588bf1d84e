//! A home on its own small disk that a test can fill: a tmpfs that only processes of this test see.
//!
//! If mounting is not permitted, the shim simulates the full disk, with a warning on standard error.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::shim::Shim;
use crate::cli::harness::{Call, Home, PROGRAM};

/// Mounts a disk, prints the result, and keeps it mounted until standard input is closed.
const HOLD: &str =
    "mount -t tmpfs -o size=2m,mode=0700 tmpfs \"$0\" && echo mounted || echo refused; exec cat";

pub(crate) struct SmallDisk {
    pub(crate) home: Home,
    kind: Kind,
}

enum Kind {
    /// Mounted in the namespace of this process.
    Mounted(Child),
    Simulated(Shim),
}

impl SmallDisk {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        fs::create_dir(home.path()).expect("the home is created");
        let kind = mount(&home).map_or_else(
            || {
                eprintln!("WARNING: no disk can be mounted here, so this test simulates the full disk");
                Kind::Simulated(Shim::new(&home))
            },
            Kind::Mounted,
        );
        Self { home, kind }
    }

    /// A call of the program on this home.
    pub(crate) fn call(&self, args: &[&str]) -> Call {
        let call = self.home.call(args);
        match &self.kind {
            Kind::Mounted(holder) => call.through(enter(holder, &self.home, PROGRAM)),
            Kind::Simulated(shim) => call.envs(shim.variables()),
        }
    }

    /// Fills the disk completely.
    pub(crate) fn fill(&self) {
        match &self.kind {
            Kind::Mounted(_) => self.shell("! head -c 4m /dev/zero 2>&- > home/ballast"),
            Kind::Simulated(shim) => shim.is_full(),
        }
    }

    /// Leaves enough space that a few jobs fill the disk.
    pub(crate) fn fill_nearly(&self) {
        match &self.kind {
            Kind::Mounted(_) => self.shell("head -c 1m /dev/zero > home/ballast"),
            // `has_taken` makes the disk full.
            Kind::Simulated(_) => {}
        }
    }

    /// Makes a simulated disk full after it has taken this many jobs, like a real one.
    pub(crate) fn has_taken(&self, jobs: usize) {
        if let (Kind::Simulated(shim), 5..) = (&self.kind, jobs) {
            shim.is_full();
        }
    }

    pub(crate) fn empty(&self) {
        match &self.kind {
            Kind::Mounted(_) => self.shell("rm home/ballast"),
            Kind::Simulated(shim) => shim.heal(),
        }
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self.kind, Kind::Mounted(_))
    }

    fn shell(&self, script: &str) {
        let Kind::Mounted(holder) = &self.kind else {
            panic!("the disk is simulated");
        };
        let mut command = enter(holder, &self.home, "/bin/sh");
        let status = command.args(["-c", script]).status().expect("a shell");
        assert!(status.success(), "`{script}`: {status}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Kind::Mounted(holder) = &mut self.kind {
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}

fn mount(home: &Home) -> Option<Child> {
    let mut command = Command::new("unshare");
    command.args(["-m", "/bin/sh", "-c", HOLD]).arg(home.path()).current_dir(home.folder());
    let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut said = String::new();
    let out = holder.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut said).expect("the holder prints a line");
    if said == "mounted\n" {
        return Some(holder);
    }
    drop(holder.stdin.take());
    let _ = holder.wait();
    None
}

/// A program in the mount namespace of the disk, in the parent folder of the home.
fn enter(holder: &Child, home: &Home, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--mount=/proc/{}/ns/mnt", holder.id()));
    // The working directory must be entered after the namespace, or it would be the folder without the disk.
    command.arg(format!("--wdns={}", home.folder().display())).arg(program);
    command
}

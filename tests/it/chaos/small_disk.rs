//! A home on a disk of its own that is small enough to be filled: a tmpfs that only processes of this test see.
//!
//! Where mounting is not allowed, the shim plays the full disk, and standard error says so.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::shim::Shim;
use crate::cli::harness::{Call, Home, PROGRAM};

/// Mounts a disk, says how that went, and keeps it until its standard input is closed.
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
        fs::create_dir(home.path()).expect("the home is made");
        let kind = mount(&home).map_or_else(
            || {
                eprintln!(
                    "WARNING: no disk can be mounted here, so the full disk of this test is a simulation"
                );
                Kind::Simulated(Shim::new(&home))
            },
            Kind::Mounted,
        );
        Self { home, kind }
    }

    /// The program on this home.
    pub(crate) fn call(&self, args: &[&str]) -> Call {
        let call = self.home.call(args);
        match &self.kind {
            Kind::Mounted(holder) => call.through(enter(holder, &self.home, PROGRAM)),
            Kind::Simulated(shim) => call.envs(shim.variables()),
        }
    }

    /// Leaves no room.
    pub(crate) fn fill(&self) {
        match &self.kind {
            Kind::Mounted(_) => self.shell("! head -c 4m /dev/zero 2>&- > home/ballast"),
            Kind::Simulated(shim) => shim.is_full(),
        }
    }

    /// Leaves so much room that a few jobs will fill it.
    pub(crate) fn fill_nearly(&self) {
        match &self.kind {
            Kind::Mounted(_) => self.shell("head -c 1m /dev/zero > home/ballast"),
            // The disk is full when the test has enqueued enough.
            Kind::Simulated(_) => {}
        }
    }

    /// One job more than a real disk would have taken.
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
            panic!("there is no such disk");
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
    BufReader::new(out).read_line(&mut said).expect("it speaks");
    if said == "mounted\n" {
        return Some(holder);
    }
    drop(holder.stdin.take());
    let _ = holder.wait();
    None
}

/// A program that sees the disk, in the folder that the home is in.
fn enter(holder: &Child, home: &Home, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--mount=/proc/{}/ns/mnt", holder.id()));
    // Entered after the namespace: before, it would be the folder without the disk.
    command.arg(format!("--wdns={}", home.folder().display())).arg(program);
    command
}

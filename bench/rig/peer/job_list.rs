//! GNU parallel and xargs: they run a list of jobs and exit; they accept no jobs later.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Facts, Peer, SLOTS, line, program, utf8, version};
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

struct ListRunner {
    program: PathBuf,
    drained: u32,
    /// The line of each job in the list.
    job: &'static str,
    /// The arguments for this list and this number of slots.
    arguments: for<'a> fn(&'a str, &'a str) -> Vec<&'a str>,
}

pub(crate) fn find_parallel() -> Option<Box<dyn Peer>> {
    let parallel = ListRunner {
        program: program("parallel")?,
        drained: 600,
        job: "job\n",
        // Does not keep the output, and gives the command once, which is faster than one on each line.
        arguments: |list, slots| vec!["--will-cite", "--ungroup", "-j", slots, "-a", list, "true"],
    };
    Some(Box::new(parallel))
}

pub(crate) fn find_xargs() -> Option<Box<dyn Peer>> {
    let xargs = ListRunner {
        program: program("xargs")?,
        drained: 2_000,
        // Each line is a command for a shell, which has `true` built in: faster than starting `/bin/true`.
        job: "true\n",
        arguments: |list, slots| vec!["-a", list, "-P", slots, "-d", "\\n", "-n", "1", "sh", "-c"],
    };
    Some(Box::new(xargs))
}

impl Peer for ListRunner {
    fn facts(&self) -> Facts {
        // strace -f of a whole run: no fsync, fdatasync or sync.
        let acknowledgement = "no submit; the job list is its input";
        Facts { drained: self.drained, queued: 0, is_synced: false, acknowledgement }
    }

    fn version(&self) -> Result<String> {
        version(&self.program, &["--version"])
    }

    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let list = home.path().join("list");
        fs::write(&list, self.job.repeat(jobs as usize))?;
        let slots = SLOTS.to_string();
        let program = Program::new(line(&self.program, &(self.arguments)(utf8(&list)?, &slots)))?;
        Ok(at_home(program, home.path())?.run()?.wall.as_secs_f64())
    }
}

/// GNU parallel reads these variables: its files are in the home, and it uses the smallest shell.
fn at_home(program: Program, home: &Path) -> Result<Program> {
    program.with("PARALLEL_HOME", home)?.with("PARALLEL_SHELL", "/bin/sh")?.with("TMPDIR", home)
}

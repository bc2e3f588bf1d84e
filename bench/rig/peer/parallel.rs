//! GNU parallel: runs a list of jobs and exits; it accepts no jobs later.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use super::{Acknowledgement, Facts, Peer, SLOTS, line, program, utf8, version};
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

struct Parallel {
    program: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    Some(Box::new(Parallel { program: program("parallel")? }))
}

impl Peer for Parallel {
    fn facts(&self) -> Facts {
        // strace -f of a whole run: no fsync, fdatasync or sync.
        let acknowledgement = Acknowledgement::Unsynced("no submit; the job list is its input");
        Facts { drained: 600, queued: 0, acknowledgement }
    }

    fn version(&self) -> Result<String> {
        version(&self.program, &["--version"])
    }

    /// Does not keep the output, uses the smallest shell, and gives the command once, which is faster than one on each
    /// line.
    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let list = home.path().join("list");
        fs::write(&list, "job\n".repeat(jobs as usize))?;
        let slots = SLOTS.to_string();
        let arguments = ["--will-cite", "--ungroup", "-j", &slots, "-a", utf8(&list)?, "true"];
        let program = Program::new(line(&self.program, &arguments))?
            .with("PARALLEL_HOME", home.path())?
            .with("PARALLEL_SHELL", "/bin/sh")?
            .with("TMPDIR", home.path())?;
        Ok(program.run()?.wall.as_secs_f64())
    }
}

//! xargs: runs a list of jobs and exits; it accepts no jobs later.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use super::{Acknowledgement, Facts, Peer, SLOTS, line, program, utf8, version};
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

struct Xargs {
    program: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    Some(Box::new(Xargs { program: program("xargs")? }))
}

impl Peer for Xargs {
    fn facts(&self) -> Facts {
        // strace -f of a whole run: no fsync, fdatasync or sync.
        let acknowledgement = Acknowledgement::Unsynced("no submit; the job list is its input");
        Facts { drained: 2_000, queued: 0, acknowledgement }
    }

    fn version(&self) -> Result<String> {
        version(&self.program, &["--version"])
    }

    /// Each line is a command for a shell, which has `true` built in: faster than starting `/bin/true`.
    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let list = home.path().join("list");
        fs::write(&list, "true\n".repeat(jobs as usize))?;
        let slots = SLOTS.to_string();
        let arguments = ["-a", utf8(&list)?, "-P", &slots, "-d", "\\n", "-n", "1", "sh", "-c"];
        Ok(Program::new(line(&self.program, &arguments))?.run()?.wall.as_secs_f64())
    }
}

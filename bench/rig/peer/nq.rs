//! nq: no server; a job is a process that waits for the locks of the earlier jobs. One job runs at a time.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;

use super::gate::Gate;
use super::{Facts, LONG_QUEUE_JOBS, Peer, Queue, line, program};
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

struct Nq {
    program: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    Some(Box::new(Nq { program: program("nq")? }))
}

impl Peer for Nq {
    fn facts(&self) -> Facts {
        Facts {
            drained: 200,
            queued: LONG_QUEUE_JOBS,
            // strace -f nq: the parent prints the id while the child is in fsync(the folder); the child writes the
            // command to its file after that, and never syncs it. A job is that child: kill -9 loses it.
            is_synced: false,
            acknowledgement: "a waiting process; its file is not synced",
        }
    }

    /// nq has no option that prints its version.
    fn version(&self) -> Result<String> {
        Ok("–".to_owned())
    }

    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let mut folder = self.closed(home)?;
        folder.fill(jobs)?;
        let wait = folder.client(&["-w"])?;
        let began = Instant::now();
        folder.gate = None;
        wait.run()?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn stalled(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(self.closed(home)?)))
    }

    fn idle(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(self.open(home))))
    }
}

impl Nq {
    fn open(&self, home: Home) -> Folder {
        Folder { program: self.program.clone(), gate: None, home }
    }

    fn closed(&self, home: Home) -> Result<Folder> {
        let mut folder = self.open(home);
        let gate = Gate::closed(&folder.home.path().join("gate"))?;
        folder.client(&gate.before(&["true"])?)?.run()?;
        folder.gate = Some(gate);
        Ok(folder)
    }
}

struct Folder {
    program: PathBuf,
    gate: Option<Gate>,
    home: Home,
}

impl Folder {
    fn client(&self, arguments: &[&str]) -> Result<Program> {
        Program::new(line(&self.program, arguments))?.with("NQDIR", self.home.path())
    }
}

impl Queue for Folder {
    fn submit(&self, command: &[&str]) -> Result<Program> {
        self.client(command)
    }

    fn home(&self) -> &Home {
        &self.home
    }
}

impl Drop for Folder {
    /// The waiting jobs are `true`: open the gate and let them run.
    fn drop(&mut self) {
        self.gate = None;
        if let Err(error) = self.client(&["-w"]).and_then(|wait| wait.run()) {
            eprintln!("nq jobs may still be running: {error:#}");
        }
    }
}

//! task-spooler: a server that keeps its list in memory, and a waiting process for every queued job.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;

use super::gate::Gate;
use super::{Facts, Peer, Queue, SLOTS, line, program, version};
use crate::rig::running::RunningProcess;
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

/// Slightly below the limit of the server.
const MAX_JOBS: u32 = 900;

struct TaskSpooler {
    program: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    Some(Box::new(TaskSpooler { program: program("tsp")? }))
}

impl Peer for TaskSpooler {
    fn facts(&self) -> Facts {
        Facts {
            drained: MAX_JOBS,
            queued: MAX_JOBS,
            // strace -p of the server during a submit: recvfrom, sendto and pselect6; it opens no file. After kill -9
            // of the server its list is empty.
            is_synced: false,
            acknowledgement: "in memory only",
        }
    }

    fn version(&self) -> Result<String> {
        version(&self.program, &["-V"])
    }

    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let server = self.serve(home)?;
        let gate = server.close()?;
        server.fill(jobs)?;
        // A job that needs every slot starts when all before it are done; this process waits for it.
        let last = RunningProcess::start(&server.client(&["-f", "-n", "-N", &SLOTS.to_string(), "true"])?)?;
        let began = Instant::now();
        drop(gate);
        last.wait()?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn stalled(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        let mut server = self.serve(home)?;
        server.gate = Some(server.close()?);
        Ok(Some(Box::new(server)))
    }

    fn idle(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(self.serve(home)?)))
    }
}

impl TaskSpooler {
    /// The first call leaves the server in the background. Another process waits for the benchmark to end, and then
    /// stops the server.
    fn serve(&self, home: Home) -> Result<Server> {
        let benchmark_gate = Gate::closed(&home.path().join("benchmark_gate"))?;
        let mut server = Server {
            program: self.program.clone(),
            benchmark_gate: Some(benchmark_gate),
            stopper: None,
            gate: None,
            home,
        };
        server.stopper = Some(RunningProcess::start(&server.stopper()?)?);
        server.client(&["-S", &SLOTS.to_string()])?.run()?;
        Ok(server)
    }
}

struct Server {
    program: PathBuf,
    benchmark_gate: Option<Gate>,
    stopper: Option<RunningProcess>,
    /// Keeps the jobs waiting. It opens after the server has ended, so that they never run.
    gate: Option<Gate>,
    home: Home,
}

impl Server {
    fn client(&self, arguments: &[&str]) -> Result<Program> {
        self.at_home(Program::new(line(&self.program, arguments))?)
    }

    /// In its own session, so that a signal to the benchmark's process group does not end it.
    fn stopper(&self) -> Result<Program> {
        let end = [super::utf8(&self.program)?, "-K"];
        let waiting = self
            .benchmark_gate
            .as_ref()
            .map(|benchmark_gate| benchmark_gate.before(&end))
            .transpose()?
            .unwrap_or_default();
        self.at_home(Program::new(["setsid"].into_iter().chain(waiting))?)
    }

    fn at_home(&self, program: Program) -> Result<Program> {
        let folder = self.home.path();
        program.with("TS_SOCKET", folder.join("socket"))?.with("TMPDIR", folder)
    }

    /// Occupies all slots until the gate is dropped.
    fn close(&self) -> Result<Gate> {
        let gate = Gate::closed(&self.home.path().join("gate"))?;
        let slots = SLOTS.to_string();
        let waiting = [&["-n", "-N", &slots], &gate.before(&["true"])?[..]].concat();
        self.client(&waiting)?.run()?;
        Ok(gate)
    }
}

impl Queue for Server {
    /// Without keeping the output, which is faster.
    fn submit(&self, command: &[&str]) -> Result<Program> {
        self.client(&[&["-n"], command].concat())
    }

    fn home(&self) -> &Home {
        &self.home
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.benchmark_gate = None;
        if let Some(Err(error)) = self.stopper.take().map(RunningProcess::wait) {
            eprintln!("the task-spooler server may still be running: {error:#}");
        }
    }
}

//! task-spooler: a server in memory, and a waiting process for every job that is queued.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;

use super::gate::Gate;
use super::{Acknowledges, Facts, Peer, Queue, SLOTS, line, program, version};
use crate::running::Running;
use crate::spawn::Program;
use crate::workspace::Home;

/// Somewhat below what the server takes.
const MOST: u32 = 900;

struct TaskSpooler {
    program: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    Some(Box::new(TaskSpooler { program: program("tsp")? }))
}

impl Peer for TaskSpooler {
    fn facts(&self) -> Facts {
        Facts {
            drained: MOST,
            queued: MOST,
            // strace -p of the server during a submit: recvfrom, sendto and pselect6, no file is opened. After kill -9
            // of the server its list is empty.
            acknowledges: Acknowledges::Unsynced("in memory only"),
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
        let last = Running::start(&server.client(&["-f", "-n", "-N", &SLOTS.to_string(), "true"])?)?;
        let began = Instant::now();
        drop(gate);
        last.wait()?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn held(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        let server = self.serve(home)?;
        let gate = server.close()?;
        Ok(Some(Box::new(Held { server, _gate: gate })))
    }

    fn idle(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(self.serve(home)?)))
    }
}

impl TaskSpooler {
    /// The first call leaves the server in the background. Another process waits for this one to end, and ends it.
    fn serve(&self, home: Home) -> Result<Server> {
        let life = Gate::closed(&home.path().join("life"))?;
        let mut server = Server { program: self.program.clone(), life: Some(life), ender: None, home };
        server.ender = Some(Running::start(&server.ender()?)?);
        server.client(&["-S", &SLOTS.to_string()])?.run()?;
        Ok(server)
    }
}

struct Server {
    program: PathBuf,
    life: Option<Gate>,
    ender: Option<Running>,
    home: Home,
}

impl Server {
    fn client(&self, arguments: &[&str]) -> Result<Program> {
        self.at_home(Program::new(line(&self.program, arguments))?)
    }

    /// In a session of its own, so that it outlives what ends the benchmark by its process group.
    fn ender(&self) -> Result<Program> {
        let end = [super::plain(&self.program)?, "-K"];
        let waiting = self.life.as_ref().map(|life| life.before(&end)).transpose()?.unwrap_or_default();
        self.at_home(Program::new(["setsid"].into_iter().chain(waiting))?)
    }

    fn at_home(&self, program: Program) -> Result<Program> {
        let folder = self.home.path();
        program.with("TS_SOCKET", folder.join("socket"))?.with("TMPDIR", folder)
    }

    /// Takes all slots until the gate is dropped.
    fn close(&self) -> Result<Gate> {
        let gate = Gate::closed(&self.home.path().join("gate"))?;
        let slots = SLOTS.to_string();
        let waiting = [&["-n", "-N", &slots], &gate.before(&["true"])?[..]].concat();
        self.client(&waiting)?.run()?;
        Ok(gate)
    }
}

impl Queue for Server {
    /// Without keeping the output, which is quicker.
    fn submit(&self, command: &[&str]) -> Result<Program> {
        self.client(&[&["-n"], command].concat())
    }

    fn home(&self) -> &Home {
        &self.home
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.life = None;
        if let Some(Err(error)) = self.ender.take().map(Running::wait) {
            eprintln!("the server of task-spooler may still run: {error:#}");
        }
    }
}

/// The server ends before the gate opens, so that what waits never runs.
struct Held {
    server: Server,
    _gate: Gate,
}

impl Queue for Held {
    fn submit(&self, command: &[&str]) -> Result<Program> {
        self.server.submit(command)
    }

    fn home(&self) -> &Home {
        self.server.home()
    }
}

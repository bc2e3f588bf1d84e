//! kill -9 of the server's process of one session. The server then ends all sessions, and recovers as from a crash.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::Sandbox;
use rustix::process::{Pid, Signal, kill_process};

use super::harness::Stage;
use super::servers::PrivateServer;

pub(super) struct KillBackend {
    server: PrivateServer,
}

impl KillBackend {
    pub(super) fn stage() -> Stage {
        PrivateServer::stage(Self::of)
    }

    pub(super) fn of(server: &PrivateServer) -> Self {
        Self { server: server.clone() }
    }
}

impl Nemesis for KillBackend {
    fn name(&self) -> &'static str {
        "kill-backend"
    }

    fn description(&self) -> &'static str {
        "kill -9 of the server's process of one session"
    }

    fn pause(&self, random: &mut Rng) -> Duration {
        Duration::from_millis(random.u64(500..2_000))
    }

    fn strike(&mut self, sandbox: &Sandbox, _random: &mut Rng) -> Result<bool, ProofError> {
        let schema = &sandbox.server().expect("a server").schema;
        let any = format!(
            "select pid from pg_stat_activity where application_name = '{schema}' order by random() limit 1"
        );
        let output = self.server.cluster.try_sql("postgres", "jobs", &any);
        let pid = String::from_utf8_lossy(&output.stdout).trim().parse().ok().and_then(Pid::from_raw);
        // The process is the server's, which this test has started.
        Ok(pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()))
    }
}

//! Sessions with the server that it ends.

use fastrand::Rng;

use super::Nemesis;
use crate::ProofError;
use crate::sandbox::Sandbox;
use crate::sandbox::server::Sessions;

#[derive(Debug)]
pub struct EndSessions {
    name: &'static str,
    description: &'static str,
    sessions: Sessions,
}

impl EndSessions {
    pub const ALL: Self = Self {
        name: "end-sessions",
        description: "pg_terminate_backend of sessions of the hosts",
        sessions: Sessions::All,
    };
    pub const LISTENING: Self = Self {
        name: "end-listeners",
        description: "pg_terminate_backend of sessions that listen",
        sessions: Sessions::Listening,
    };
}

impl Nemesis for EndSessions {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn strike(&mut self, sandbox: &Sandbox, _random: &mut Rng) -> Result<bool, ProofError> {
        Ok(sandbox.end_sessions(self.sessions)? > 0)
    }
}

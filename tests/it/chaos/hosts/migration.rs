//! A newer version that migrates the schema under running workers of the old one.
//!
//! Most migrations leave the old workers running. After some, older programs must not write: they find no gate, end their
//! commands, and stop. Such a migration is undone after a while, as by an operator who restores the old version.

use std::fs;
use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::Sandbox;

use super::harness::Stage;
use super::servers::PrivateServer;

pub(super) fn migration() -> Stage {
    PrivateServer::stage(|server| Migration { server: server.clone(), added: 0 })
}

struct Migration {
    server: PrivateServer,
    /// How many migrations the newest version has that the workers do not know.
    added: u32,
}

impl Migration {
    /// The file of a migration.
    fn path(sandbox: &Sandbox, number: u32) -> String {
        sandbox.folder().join(format!("newer-{number}.sql")).display().to_string()
    }

    /// Adds a migration with these statements to the newest version, and carries it out. Returns whether that succeeded.
    fn migrate(&mut self, sandbox: &Sandbox, statements: &str) -> bool {
        self.added += 1;
        fs::write(Self::path(sandbox, self.added), statements).expect("a migration is written");
        let known: Vec<String> = (1..=self.added).map(|number| Self::path(sandbox, number)).collect();
        let mut call = sandbox.command(["-q", "store", "migrate", "--now"]);
        call.env("QUEUECTL_MIGRATIONS", known.join(":"));
        let is_done = call.output().is_ok_and(|output| output.status.success());
        if !is_done {
            self.added -= 1;
        }
        is_done
    }

    /// Returns to the version before the last migration, which has closed the gate of the old workers.
    fn undo(&mut self, schema: &str) {
        let back = format!(
            "begin; alter table {schema}.gate_2 rename to gate_1;
             update {schema}.meta set version = version - 1, gate = 1; commit"
        );
        self.server.cluster.sql("jobs", &back);
        self.added -= 1;
    }
}

impl Nemesis for Migration {
    fn name(&self) -> &'static str {
        "migration"
    }

    fn description(&self) -> &'static str {
        "a newer version migrates the schema under running workers"
    }

    fn pause(&self, random: &mut Rng) -> Duration {
        Duration::from_millis(random.u64(300..1_200))
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let schema = sandbox.server().expect("a server").schema.clone();
        if random.u32(0..4) > 0 {
            let column = format!("alter table jobs add column made_up_{} bigint", fastrand::u32(..));
            return Ok(self.migrate(sandbox, &column));
        }
        let is_closed = self.migrate(sandbox, "alter table gate_1 rename to gate_2");
        if is_closed {
            // This sleep is the duration of the fault, not synchronisation.
            std::thread::sleep(sandbox.timing.lease.mul_f64(random.f64() * 1.5));
            self.undo(&schema);
        }
        Ok(is_closed)
    }
}

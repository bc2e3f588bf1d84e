//! A primary that dies, and a standby that takes its place: one that has every acknowledged commit, or one that lags behind.
//! Afterwards the old primary becomes the standby of the new one.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::evidence::LostTail;
use proof::nemesis::Nemesis;
use proof::sandbox::{Sandbox, Server};
use store::postgres::Address;
use sys::clock::since_boot;

use super::harness::Stage;
use super::servers::SETTINGS;
use crate::postgres::cluster::{Cluster, PASSWORD_IN_URL, eventually};

pub(super) fn synchronous_failover() -> Stage {
    stage(Replication::Synchronous)
}

pub(super) fn lagging_failover() -> Stage {
    stage(Replication::Lagging)
}

fn stage(replication: Replication) -> Stage {
    let primary = Cluster::start(SETTINGS);
    let standby = primary.standby();
    let pair = Pair { primary, standby, replication };
    pair.connect();
    let (first, second) = (pair.primary.port, pair.standby.port);
    let url = format!("postgres://keeper:{PASSWORD_IN_URL}@127.0.0.1:{first},127.0.0.1:{second}/jobs");
    Stage::new(Server::reached_directly(&Address::parse(&url).expect("an address")), pair)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replication {
    /// A commit waits for the standby.
    Synchronous,
    /// Before the primary dies, the standby receives nothing for a while.
    Lagging,
}

struct Pair {
    primary: Cluster,
    standby: Cluster,
    replication: Replication,
}

impl Pair {
    /// Waits until the standby follows, and lets commits wait for it if they have to.
    fn connect(&self) {
        let state = "select coalesce(max(state), '') from pg_stat_replication";
        eventually("the standby follows", || {
            (self.primary.sql("postgres", state) == "streaming").then_some(())
        });
        if self.replication == Replication::Synchronous {
            self.primary.sql("postgres", "alter system set synchronous_standby_names = '*'");
            self.primary.reload();
            let state = "select coalesce(max(sync_state), '') from pg_stat_replication";
            eventually("the standby is synchronous", || {
                (self.primary.sql("postgres", state) == "sync").then_some(())
            });
        }
    }

    /// From here on the standby gets nothing more. Returns a time after which commits may be lost.
    fn cut(&self) -> Duration {
        let from = since_boot();
        let here = self.primary.sql("postgres", "select pg_current_wal_flush_lsn()");
        let is_there = format!("select pg_last_wal_replay_lsn() >= '{here}'");
        eventually("the standby is up to date", || {
            (self.standby.sql("jobs", &is_there) == "t").then_some(())
        });
        self.standby.sql("postgres", "alter system set primary_conninfo = ''");
        self.standby.reload();
        let senders = "select count(*) from pg_stat_replication";
        eventually("replication ends", || (self.primary.sql("postgres", senders) == "0").then_some(()));
        from
    }

    fn fail_over(&mut self) {
        // All its processes end, so that none acknowledges anything after the promotion.
        self.primary.crash();
        self.standby.program("pg_ctl", &["-D", &self.standby.data(), "-w", "promote"]);
        std::mem::swap(&mut self.primary, &mut self.standby);
    }

    /// The new primary must not wait for a standby before it has one.
    fn recover(&self) {
        self.primary.sql("postgres", "alter system reset synchronous_standby_names");
        self.primary.sql("postgres", "alter system reset primary_conninfo");
        self.primary.reload();
        self.standby.follow(&self.primary);
        self.connect();
    }
}

impl Nemesis for Pair {
    fn name(&self) -> &'static str {
        match self.replication {
            Replication::Synchronous => "failover",
            Replication::Lagging => "lagging-failover",
        }
    }

    fn description(&self) -> &'static str {
        "the primary dies and a standby is promoted"
    }

    fn pause(&self, random: &mut Rng) -> Duration {
        Duration::from_millis(random.u64(500..1_500))
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let from = (self.replication == Replication::Lagging).then(|| self.cut());
        if from.is_some() {
            // This sleep is the time whose commits are lost, not synchronisation.
            std::thread::sleep(Duration::from_millis(random.u64(200..1_200)));
        }
        self.fail_over();
        if let Some(from) = from {
            let tail = LostTail { from, to: since_boot() };
            sandbox.disturbances.lock().expect("no trial panics").lost_tails.push(tail);
        }
        self.recover();
        Ok(true)
    }
}

//! The scenarios: which nemesis strikes which server.

use proof::nemesis::{Mix, Nemesis, for_hosts};
use proof::sandbox::Server;
use store::postgres::Address;

use super::backends::KillBackend;
use super::clock::jumping_clock;
use super::failover::{lagging_failover, synchronous_failover};
use super::full_disk::full_disk;
use super::harness::{Scenario, Stage};
use super::migration::migration;
use super::namespaces::{flapping_cable, pulled_cable};
use super::pooler::restarted_pooler;
use super::servers::{Fall, PrivateServer};

/// The server that `tests/with-postgres` has started.
pub(super) fn shared_server() -> Address {
    let url = std::env::var("QUEUECTL_TEST_POSTGRES").expect("run with tests/with-postgres");
    Address::parse(&url).expect("an address")
}

/// Every nemesis, each with a server of its own if it strikes at the server.
pub(super) fn every_scenario() -> Vec<Scenario> {
    let only = std::env::var("QUEUECTL_CHAOS_ONLY").ok();
    let mut scenarios: Vec<Scenario> =
        for_hosts(true).iter().enumerate().map(|(at, nemesis)| behind_proxies(nemesis.name(), at)).collect();
    scenarios.extend(server_scenarios());
    scenarios.retain(|scenario| only.as_ref().is_none_or(|only| only == scenario.name));
    assert!(!scenarios.is_empty(), "there is no such nemesis: {only:?}");
    scenarios
}

/// One of the nemeses that `queuectl selftest --store` has.
fn behind_proxies(name: &'static str, at: usize) -> Scenario {
    Scenario::new(name, move |_| {
        let server = Server::behind_proxies(&shared_server());
        Some(Stage::with(server, for_hosts(true).swap_remove(at)))
    })
}

fn server_scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("kill-server", |_| Some(PrivateServer::falls(Fall::Killed))),
        Scenario::new("restart-server", |_| Some(PrivateServer::falls(Fall::Restarted))),
        Scenario::new("kill-backend", |_| Some(KillBackend::stage())),
        Scenario::new("failover", |_| Some(synchronous_failover())),
        Scenario::new("lagging-failover", |_| Some(lagging_failover())),
        Scenario::new("restart-pooler", |_| Some(restarted_pooler())),
        Scenario::new("full-disk", |_| full_disk()),
        Scenario::new("server-clock", |_| Some(jumping_clock())),
        Scenario::new("migration", |_| Some(migration())),
        Scenario::new("pulled-cable", |_| pulled_cable()),
        Scenario::new("flapping-cable", |_| flapping_cable()),
    ]
}

/// A part of them, a different one for each seed, short enough for every test run.
pub(super) fn short_mix() -> Vec<Scenario> {
    vec![
        Scenario::new("hosts", |seed| {
            let mut nemeses = for_hosts(true);
            fastrand::Rng::with_seed(seed).shuffle(&mut nemeses);
            Some(Stage::new(Server::behind_proxies(&shared_server()), Mix::of(nemeses)))
        }),
        Scenario::new("servers", |_| {
            Some(PrivateServer::stage(|server| {
                let fall = |fall| -> Box<dyn Nemesis> { Box::new(server.falling(fall)) };
                Mix::of(vec![fall(Fall::Killed), fall(Fall::Restarted), Box::new(KillBackend::of(server))])
            }))
        }),
        Scenario::new("pulled-cable", |_| pulled_cable()),
    ]
}

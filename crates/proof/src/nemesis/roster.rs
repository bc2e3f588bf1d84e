//! The nemeses of `queuectl selftest`.

use super::{
    EndSessions, FreezeHost, KillBoth, KillEnqueue, KillSupervisor, KillWorker, Nemesis, PauseJobs,
    PowerLoss, StopBoth, StopWorker, Storm, networks,
};

/// All nemeses for one host with a queue in a file that need no special build or privileges.
pub fn for_one_host() -> Vec<Box<dyn Nemesis>> {
    vec![
        Box::new(KillWorker),
        Box::new(KillBoth),
        Box::new(KillSupervisor),
        Box::new(KillEnqueue::default()),
        Box::new(StopWorker),
        Box::new(StopBoth),
        Box::new(Storm),
        Box::new(PauseJobs),
    ]
}

/// The same for several hosts with a queue on a server. A host whose worker and supervisor are both stopped cannot end its
/// commands, which no promise covers, so [`FreezeHost`] stops the commands too.
pub fn for_hosts(has_proxies: bool) -> Vec<Box<dyn Nemesis>> {
    let mut nemeses: Vec<Box<dyn Nemesis>> = vec![
        Box::new(KillWorker),
        Box::new(KillBoth),
        Box::new(KillSupervisor),
        Box::new(KillEnqueue::default()),
        Box::new(StopWorker),
        Box::new(Storm),
        Box::new(PowerLoss),
        Box::new(FreezeHost),
        Box::new(EndSessions::ALL),
        Box::new(EndSessions::LISTENING),
    ];
    let networks = networks().into_iter().filter(|_| has_proxies);
    nemeses.extend(networks.map(|network| -> Box<dyn Nemesis> { Box::new(network) }));
    nemeses
}

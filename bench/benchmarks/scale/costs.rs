//! What single operations cost the server: in time, and in CPU time of all its processes. The CPU time is what a projection
//! to a larger server needs.

use std::time::Instant;

use anyhow::{Result, ensure};
use store::postgres::Address;
use store::{Exchange, Store};

use crate::Bench;
use crate::output::figure::{count, grouped};
use crate::output::report::Report;
use crate::output::table::Table;
use crate::rig::cluster::{Cluster, psql};
use crate::rig::filled::{Shape, Worker, fill};
use crate::rig::sample::Sample;

/// Jobs per turn, and leases per heartbeat.
const SLOTS: [u32; 3] = [1, 16, 64];
const JOBS_PER_WORKER: u32 = 16;
const WORKERS_PER_MACHINE: u32 = 10;
const WARM_UP_ROUNDS: u32 = 10;

/// The median time of an operation, and the CPU time of the server for it, in milliseconds.
struct Cost {
    wall: f64,
    cpu: f64,
}

impl Cost {
    fn cells(&self) -> [String; 2] {
        [grouped(self.wall, 2), grouped(self.cpu, 2)]
    }
}

pub(super) fn run(bench: &Bench, report: &mut Report, cluster: &Cluster) -> Result<()> {
    report.section("The cost of single operations, in milliseconds");
    report.table(&of_one_worker(bench, cluster)?);
    report.table(&by_workers(bench, cluster)?);
    Ok(())
}

fn measure(cluster: &Cluster, times: u32, act: &mut dyn FnMut() -> Result<()>) -> Result<Cost> {
    (0..WARM_UP_ROUNDS).try_for_each(|_| act())?;
    let before = cluster.cpu()?;
    let mut walls = Sample::default();
    for _ in 0..times {
        let began = Instant::now();
        act()?;
        walls.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    let cpu = cluster.cpu()?.saturating_sub(before).as_secs_f64() * 1000.0 / f64::from(times);
    Ok(Cost { wall: walls.median(), cpu })
}

fn of_one_worker(bench: &Bench, cluster: &Cluster) -> Result<Table> {
    bench.progress("the cost of turns and heartbeats");
    let times = if bench.quick { 50 } else { 300 };
    let server = cluster.database()?;
    let home = bench.workspace.home_with_server("costs", server.clone())?;
    let store = home.open()?;
    let mut rows = Vec::new();
    let mut push = |what: String, cost: &Cost| rows.push([vec![what], cost.cells().to_vec()].concat());
    for slots in SLOTS {
        fill(bench, store.as_ref(), slots * (times + WARM_UP_ROUNDS + 1), Shape::Plain)?;
        psql(&server.to_string(), "vacuum analyze")?;
        let mut worker = Worker::register(store.as_ref(), slots)?;
        let turn = measure(cluster, times, &mut || worker.exchange())?;
        push(format!("turn: settle {slots} jobs, claim {slots}"), &turn);
        let heartbeat = measure(cluster, times, &mut || worker.extend())?;
        push(format!("heartbeat with {slots} leases"), &heartbeat);
    }
    let worker = Worker::register_idle(store.as_ref(), 1)?;
    push("heartbeat without leases".to_owned(), &measure(cluster, times, &mut || worker.extend())?);
    let orders = measure(cluster, times, &mut || Ok(store.orders(worker.id()).map(drop)?))?;
    push("orders".to_owned(), &orders);
    let enqueue = measure(cluster, times, &mut || fill(bench, store.as_ref(), 1, Shape::Plain))?;
    push("enqueue one job on an open session".to_owned(), &enqueue);
    let columns = ["operation", "time", "server CPU"].map(str::to_owned).to_vec();
    Ok(Table { title: "One worker".to_owned(), columns, rows })
}

/// Operations whose cost depends on how many workers there are. Their rows are written by SQL, each with running jobs and
/// a share of the counters.
fn by_workers(bench: &Bench, cluster: &Cluster) -> Result<Table> {
    let sizes: &[u32] = if bench.quick { &[10, 100] } else { &[100, 1_000, 10_000] };
    let times = if bench.quick { 20 } else { 50 };
    let server = cluster.database()?;
    let home = bench.workspace.home_with_server("costs", server.clone())?;
    let store = home.open()?;
    let mut table = Table {
        title: format!(
            "By the number of workers, each with {JOBS_PER_WORKER} running jobs: time and server CPU"
        ),
        columns: [
            "workers",
            "look at the own machine",
            "and at all beats",
            "sum up the queues",
            "enqueue one job",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: Vec::new(),
    };
    let mut before = 0;
    for workers in sizes {
        bench.progress(&format!("{} registered workers", count(*workers)));
        add_workers(bench, store.as_ref(), &server, before, *workers)?;
        before = *workers;
        let machine = "machine-1";
        let costs = [
            measure(cluster, times, &mut || Ok(store.neighbours(machine).map(drop)?))?,
            measure(cluster, times, &mut || Ok(store.neighbours_and_beats(machine).map(drop)?))?,
            measure(cluster, times, &mut || Ok(store.queues().map(drop)?))?,
            measure(cluster, times, &mut || fill(bench, store.as_ref(), 1, Shape::Plain))?,
        ];
        let cells = costs.iter().map(|cost| cost.cells().join(" / "));
        table.rows.push(std::iter::once(count(*workers)).chain(cells).collect());
    }
    Ok(table)
}

/// Adds workers with these numbers, and claims their jobs.
fn add_workers(bench: &Bench, store: &dyn Store, server: &Address, from: u32, to: u32) -> Result<()> {
    const CLAIMS_PER_TURN: usize = 1_000;
    let mut jobs = ((to - from) * JOBS_PER_WORKER) as usize;
    fill(bench, store, (to - from) * JOBS_PER_WORKER, Shape::Plain)?;
    let claimer = Worker::register_idle(store, JOBS_PER_WORKER)?;
    while jobs > 0 {
        let want = jobs.min(CLAIMS_PER_TURN);
        let claim = Exchange { worker: claimer.id(), settlements: &[], want, want_limited: 0 };
        ensure!(store.exchange(&claim)?.claimed.len() == want, "the store ran out of ready jobs");
        jobs -= want;
    }
    let claimer = claimer.id();
    let first = from + 1;
    psql(
        &server.to_string(),
        &format!(
            "set search_path = queuectl;
             insert into workers (id, host, boot_id, pid, concurrency, state, started_at, last_heartbeat, machine_id, home_id)
               select 'fleet-' || g, 'host', 'boot', g, {JOBS_PER_WORKER}, 'running', 0, 0,
                      'machine-' || g / {WORKERS_PER_MACHINE}, 'home-' || g / {WORKERS_PER_MACHINE}
               from generate_series({first}, {to}) g;
             insert into counters (queue_id, state, shard, count)
               select q.id, s.name, w.seq, 0 from queues q, workers w, unnest(array['pending', 'processing', 'completed']) s(name)
               where w.id like 'fleet-%' and w.pid between {first} and {to};
             with added as (select array_agg(seq) as seqs from workers where id like 'fleet-%' and pid between {first} and {to})
             update jobs set worker_seq = added.seqs[1 + jobs.seq % cardinality(added.seqs)] from added
               where worker_seq = (select seq from workers where id = '{claimer}');"
        ),
    )?;
    psql(&server.to_string(), "vacuum analyze")
}

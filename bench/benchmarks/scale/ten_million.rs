//! Ten million jobs in PostgreSQL, compared with ten thousand: commands that read the store, and a worker's turn.

use std::time::Instant;

use anyhow::{Context, Result};

use super::tables;
use crate::Bench;
use crate::benchmarks::large_store::{Times, time_command, time_exchanges};
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::cluster::{Cluster, psql};
use crate::rig::filled::{Shape, fill};
use crate::rig::sample::Sample;
use crate::rig::workspace::Home;

const SMALL_STORE_JOBS: u32 = 10_000;
const MAX_RATIO: f64 = 1.5;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let jobs = if bench.quick { 300_000 } else { 10_000_000 };
    let cluster = Cluster::start()?;
    let began = Instant::now();
    let large = filled(bench, &cluster, "large", jobs)?;
    let loading = Sample::of(f64::from(jobs) / began.elapsed().as_secs_f64());
    let small = filled(bench, &cluster, "small", SMALL_STORE_JOBS)?;
    bench.progress("reading and claiming");
    let homes = [&small, &large];
    let stores = [small.open()?, large.open()?];
    let mut all = vec![time_command(&homes, "status")?, time_command(&homes, "list")?];
    for durability in ["full", "normal"] {
        all.push(time_exchanges(bench, &stores, durability)?);
    }
    report.section(&format!(
        "{} ready jobs in PostgreSQL, compared with {}",
        count(jobs),
        count(SMALL_STORE_JOBS)
    ));
    for times in &all {
        line(report, times);
    }
    report.line("jobs stored, with the vacuum after them", &loading, Unit::PerSecond, Bar::None);
    let server = large.server().context("the queue is on a server")?;
    report.table(&tables::sizes(server, "Sizes of the tables")?);
    Ok(())
}

fn filled(bench: &Bench, cluster: &Cluster, name: &str, jobs: u32) -> Result<Home> {
    let server = cluster.database()?;
    let home = bench.workspace.home_with_server(name, server.clone())?;
    fill(bench, home.open()?.as_ref(), jobs, Shape::Plain)?;
    psql(&server.to_string(), "vacuum analyze")?;
    Ok(home)
}

fn line(report: &mut Report, times: &Times) {
    let operation = &times.operation;
    report.line(operation, &times.medians(1), Unit::Milliseconds, Bar::None);
    let most = Bar::AtMost(MAX_RATIO);
    report.line(&format!("{operation}, relative to the small store"), &times.ratio(1), Unit::Ratio, most);
}

//! A store with very many jobs against a small one: looking at it, and a worker's turn.
//!
//! A turn that commits durably waits mostly for the disk, which hides what finding the next job costs. So turns are
//! measured twice: with full durability, and without the sync.

use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use queuectl::domain::settings::SettingKey;
use queuectl::store::Store;
use queuectl::store::sqlite::SqliteStore;

use crate::Bench;
use crate::filled::{Filled, OneSlot, Shape};
use crate::report::{Bar, Report, Unit};
use crate::sample::{Sample, ratio_of_medians};
use crate::spawn::Program;

const SMALL: u32 = 10_000;
const MOST: f64 = 1.5;
const STATUS_MILLISECONDS: f64 = 10.0;
const LIST_MILLISECONDS: f64 = 20.0;
const LOOKS: usize = 20;
const TURNS_PER_ROUND: usize = 50;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let large = if bench.quick { 300_000 } else { 10_000_000 };
    for shape in [Shape::Plain, Shape::Future { ready: SMALL }, Shape::Paused] {
        Report::section(&format!("{large} jobs, {}, against {SMALL} ready ones", shape.describe()));
        let small = Filled::new(bench.workspace.home("small")?, SMALL, Shape::Plain)?;
        let large = Filled::new(bench.workspace.home("large")?, large, shape)?;
        let verbs = [("status", STATUS_MILLISECONDS), ("list", LIST_MILLISECONDS)];
        for (verb, limit) in verbs {
            look(report, &small, &large, verb, limit)?;
        }
        let (small, large) = (small.open()?, large.open()?);
        for durability in ["full", "normal"] {
            take_turns(bench, report, &small, &large, durability)?;
        }
    }
    Ok(())
}

/// A command that shows something, as a whole process.
fn look(report: &mut Report, small: &Filled, large: &Filled, verb: &str, limit: f64) -> Result<()> {
    let on_small = small.home.queuectl(&[verb])?;
    let on_large = large.home.queuectl(&[verb])?;
    let (mut milliseconds, mut ratio) = (Sample::default(), Sample::default());
    for _ in 0..LOOKS {
        let seconds = |program: &Program| Ok::<_, anyhow::Error>(program.run()?.wall.as_secs_f64());
        let (small, large) = (seconds(&on_small)?, seconds(&on_large)?);
        milliseconds.push(large * 1000.0);
        ratio.push(large / small);
    }
    let what = format!("{verb}, whole process");
    report.line(&what, &milliseconds, Unit::Milliseconds, Bar::AtMost(limit));
    report.line(&format!("{verb}, against the small store"), &ratio, Unit::Ratio, Bar::None);
    Ok(())
}

/// Settling one job and claiming the next, on both stores in turn.
fn take_turns(
    bench: &Bench,
    report: &mut Report,
    small: &SqliteStore,
    large: &SqliteStore,
    durability: &str,
) -> Result<()> {
    for store in [small, large] {
        store.set(SettingKey::Durability, Some(durability), "bench")?.map_err(|error| anyhow!(error))?;
    }
    let rounds = if bench.quick { 6 } else { 12 };
    let mut workers = [OneSlot::register(small)?, OneSlot::register(large)?];
    let mut measured = Vec::new();
    for _ in 0..rounds {
        let mut times = [Sample::default(), Sample::default()];
        for _ in 0..TURNS_PER_ROUND {
            for (worker, times) in workers.iter_mut().zip(&mut times) {
                let began = Instant::now();
                worker.turn().context("failed to take a turn")?;
                times.push(began.elapsed().as_secs_f64());
            }
        }
        measured.push(times);
    }
    let ratio = ratio_of_medians(measured.iter().map(|[small, large]| (large, small)));
    report.line(
        &format!("settling one and claiming one, durability {durability}"),
        &ratio,
        Unit::Ratio,
        Bar::AtMost(MOST),
    );
    Ok(())
}

//! The limits of the machine: starting programs that do nothing, inserting rows, syncing.

use std::fs::File;

use anyhow::Result;

use crate::Bench;
use crate::output::figure;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::bare::{self, Command};
use crate::rig::raw;
use crate::rig::sample::Sample;

const COMMANDS: [Command; 2] = [Command::TRUE, Command::SHELL_TRUE];
const IN_FLIGHT: [u32; 4] = [1, 2, 4, 16];
const ROWS_PER_TRANSACTION: u32 = 10_000;
const SYNCS_PER_ROUND: usize = 100;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    loops(bench, report)?;
    disk(bench, report)
}

fn loops(bench: &Bench, report: &mut Report) -> Result<()> {
    let (count, rounds) = if bench.quick { (300, 3) } else { (2_000, 5) };
    let cells: Vec<(Command, u32)> =
        COMMANDS.into_iter().flat_map(|command| IN_FLIGHT.map(|at_once| (command, at_once))).collect();
    let mut rates = vec![Sample::default(); cells.len()];
    for round in 1..=rounds {
        bench.progress(&format!("spawn loops, round {round} of {rounds}"));
        for ((command, at_once), rate) in cells.iter().zip(&mut rates) {
            rate.push(f64::from(count) / bare::plain(*command, count, *at_once)?);
        }
    }
    report.section("A loop that starts a program by posix_spawn and waits for it");
    for ((command, at_once), rate) in cells.iter().zip(&rates) {
        report.line(&format!("`{}`, {at_once} in flight", command.typed), rate, Unit::PerSecond, Bar::None);
    }
    Ok(())
}

fn disk(bench: &Bench, report: &mut Report) -> Result<()> {
    let (single, bulk, rounds) = if bench.quick { (100, 50_000, 3) } else { (1_000, 200_000, 7) };
    let file = bench.workspace.path().join("raw.db");
    let mut log = File::create(bench.workspace.path().join("synced"))?;
    let (mut singles, mut bulks, mut syncs) = (Sample::default(), Sample::default(), Sample::default());
    for round in 1..=rounds {
        bench.progress(&format!("inserts and syncs, round {round} of {rounds}"));
        singles.push(f64::from(single) / raw::insert_seconds(&file, single, 1)?);
        bulks.push(f64::from(bulk) / raw::insert_seconds(&file, bulk, ROWS_PER_TRANSACTION)?);
        syncs.push(raw::sync_seconds(&mut log, SYNCS_PER_ROUND)?.median() * 1000.0);
    }
    report.section("SQLite (one table, no index, WAL, `synchronous=full`) and the disk");
    report.line("rows inserted, one per transaction", &singles, Unit::PerSecond, Bar::None);
    let what = format!("rows inserted, {} per transaction", figure::count(ROWS_PER_TRANSACTION));
    report.line(&what, &bulks, Unit::PerSecond, Bar::None);
    report.line("appending 4 KiB and fdatasync", &syncs, Unit::Milliseconds, Bar::None);
    Ok(())
}

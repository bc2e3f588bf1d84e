//! Instruction counts by callgrind, for the paths where time is too noisy to show a small change.
//!
//! The cost of an exchange is computed from the difference between many exchanges and few, so that process start,
//! opening the store and registering a worker cancel out.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use store::sqlite::SqliteStore;
use sys::clock::SystemClock;

use crate::Bench;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::filled::{Shape, Worker, filled_home};
use crate::rig::sample::Sample;
use crate::rig::spawn::Program;

/// The argument that makes this program do exchanges; the home, the slots and the number of exchanges follow.
pub(crate) const EXCHANGES: &str = "--exchanges";
const VALGRIND: &str = "valgrind";
const SLOTS: [u32; 3] = [1, 16, 64];
/// The number of jobs that the short and the long run settle and claim.
const SHORT_RUN_JOBS: u32 = 320;
const LONG_RUN_JOBS: u32 = 3_200;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rounds = if bench.quick { 1 } else { 3 };
    report.section("Instructions, counted by callgrind (without the kernel)");
    if !is_installed() {
        report.note("Not counted: valgrind is not installed (`apt-get install valgrind`).");
        return Ok(());
    }
    let enqueue = count_enqueue(bench, rounds)?;
    report.line("one `enqueue` process", &enqueue, Unit::Count, Bar::None);
    for slots in SLOTS {
        bench.progress(&format!("counting exchanges with {slots} slots"));
        let exchange: Sample = (0..rounds).map(|_| count_exchange(bench, slots)).collect::<Result<_>>()?;
        report.line(
            &format!("an exchange that settles {slots} and claims {slots}"),
            &exchange,
            Unit::Count,
            Bar::None,
        );
        if slots > 1 {
            let job = exchange.divided_by(f64::from(slots));
            report.line(&format!("an exchange of {slots}, per job"), &job, Unit::Count, Bar::None);
        }
    }
    Ok(())
}

fn is_installed() -> bool {
    Program::new([VALGRIND, "--version"]).and_then(|program| program.run()).is_ok()
}

/// On a store with a few jobs.
fn count_enqueue(bench: &Bench, rounds: usize) -> Result<Sample> {
    bench.progress("counting one `enqueue`");
    let home = bench.workspace.home("instructions")?;
    let arguments = ["enqueue", "--", "true"];
    home.queuectl(&arguments)?.run()?;
    let folder = home.path().to_str().context("the path is not UTF-8")?;
    let program = bench.workspace.program();
    let words = [program.to_str().context("the path is not UTF-8")?, "--home", folder];
    let words: Vec<&str> = words.into_iter().chain(arguments).collect();
    (0..rounds).map(|_| count(bench, &words)).collect()
}

/// The instructions of one exchange. Each run uses a new store, so that both start from the same state.
fn count_exchange(bench: &Bench, slots: u32) -> Result<f64> {
    let (few, many) = (SHORT_RUN_JOBS / slots, LONG_RUN_JOBS / slots);
    let difference = count_exchanges(bench, slots, many)? - count_exchanges(bench, slots, few)?;
    Ok(difference / f64::from(many - few))
}

fn count_exchanges(bench: &Bench, slots: u32, exchanges: u32) -> Result<f64> {
    let filled = filled_home(bench, "instructions", LONG_RUN_JOBS * 2, Shape::Plain)?;
    let program = std::env::current_exe()?;
    let program = program.to_str().context("the path is not UTF-8")?;
    let folder = filled.path().to_str().context("the path is not UTF-8")?;
    count(bench, &[program, EXCHANGES, folder, &slots.to_string(), &exchanges.to_string()])
}

/// The instructions of a whole process.
fn count(bench: &Bench, words: &[&str]) -> Result<f64> {
    let file = bench.workspace.path().join("callgrind");
    let out = format!("--callgrind-out-file={}", file.display());
    let valgrind = [VALGRIND, "--tool=callgrind", &out];
    Program::new(valgrind.iter().chain(words))?.run().context("failed to count instructions")?;
    let counted = fs::read_to_string(&file)?;
    let total = counted.lines().find_map(|line| line.strip_prefix("totals: "));
    total.context("callgrind wrote no total")?.trim().parse().context("the total is not a number")
}

/// The counted program: does this number of exchanges on an existing store.
pub(crate) fn exchange_repeatedly(home: &Path, slots: u32, exchanges: u32) -> Result<()> {
    let store = SqliteStore::open(&home.join("queue.db"), Arc::new(SystemClock))?;
    let mut worker = Worker::register(&store, slots)?;
    (0..exchanges).try_for_each(|_| worker.exchange())
}

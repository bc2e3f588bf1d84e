//! Instructions instead of time, counted by callgrind: for the paths where a clock is too noisy to see a small change.
//!
//! What a turn takes is the difference between many turns and few of them, so that starting, opening the store and
//! registering a worker cancel out.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use store::sqlite::SqliteStore;
use sys::clock::SystemClock;

use crate::Bench;
use crate::filled::{Filled, Shape, Worker};
use crate::report::{Bar, Report, Unit};
use crate::sample::Sample;
use crate::spawn::Program;

/// The argument with which this program takes turns; the home, the slots and the number of turns follow.
pub(crate) const TURNS: &str = "--turns";
const VALGRIND: &str = "valgrind";
const SLOTS: [u32; 3] = [1, 16, 64];
/// So many jobs are settled and claimed by the few turns, and by the many.
const FEW_JOBS: u32 = 320;
const MANY_JOBS: u32 = 3_200;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rounds = if bench.quick { 1 } else { 3 };
    report.section("Instructions, counted by callgrind (without the kernel)");
    if !is_installed() {
        report.note("Not counted: valgrind is missing (`apt-get install valgrind`).");
        return Ok(());
    }
    let enqueue = count_enqueue(bench, rounds)?;
    report.line("one `enqueue` process", &enqueue, Unit::Count, Bar::None);
    for slots in SLOTS {
        bench.progress(&format!("counting turns of {slots}"));
        let turn: Sample = (0..rounds).map(|_| count_turn(bench, slots)).collect::<Result<_>>()?;
        report.line(
            &format!("a turn that settles {slots} and claims {slots}"),
            &turn,
            Unit::Count,
            Bar::None,
        );
        if slots > 1 {
            let job = turn.divided_by(f64::from(slots));
            report.line(&format!("a turn of {slots}, for each job"), &job, Unit::Count, Bar::None);
        }
    }
    Ok(())
}

fn is_installed() -> bool {
    Program::new([VALGRIND, "--version"]).and_then(|program| program.run()).is_ok()
}

/// On a store that has a few jobs.
fn count_enqueue(bench: &Bench, rounds: usize) -> Result<Sample> {
    bench.progress("counting one `enqueue`");
    let home = bench.workspace.home("instructions")?;
    let arguments = ["enqueue", "--", "true"];
    home.queuectl(&arguments)?.run()?;
    let folder = home.path().to_str().context("a plain path")?;
    let program = bench.workspace.program();
    let words = [program.to_str().context("a plain path")?, "--home", folder];
    let words: Vec<&str> = words.into_iter().chain(arguments).collect();
    (0..rounds).map(|_| count(bench, &words)).collect()
}

/// What one turn takes: each count works on a new store, so that both begin alike.
fn count_turn(bench: &Bench, slots: u32) -> Result<f64> {
    let (few, many) = (FEW_JOBS / slots, MANY_JOBS / slots);
    let difference = count_turns(bench, slots, many)? - count_turns(bench, slots, few)?;
    Ok(difference / f64::from(many - few))
}

fn count_turns(bench: &Bench, slots: u32, turns: u32) -> Result<f64> {
    let filled = Filled::new(bench, "instructions", MANY_JOBS * 2, Shape::Plain)?;
    let program = std::env::current_exe()?;
    let program = program.to_str().context("a plain path")?;
    let folder = filled.home.path().to_str().context("a plain path")?;
    count(bench, &[program, TURNS, folder, &slots.to_string(), &turns.to_string()])
}

/// The instructions of a whole process.
fn count(bench: &Bench, words: &[&str]) -> Result<f64> {
    let file = bench.workspace.path().join("callgrind");
    let out = format!("--callgrind-out-file={}", file.display());
    let valgrind = [VALGRIND, "--tool=callgrind", &out];
    Program::new(valgrind.iter().chain(words))?.run().context("failed to count instructions")?;
    let counted = fs::read_to_string(&file)?;
    let total = counted.lines().find_map(|line| line.strip_prefix("totals: "));
    total.context("callgrind has written no total")?.trim().parse().context("a total is a number")
}

/// What is counted: takes so many turns on a store that is there.
pub(crate) fn take_turns(home: &Path, slots: u32, turns: u32) -> Result<()> {
    let store = SqliteStore::open(&home.join("queue.db"), Arc::new(SystemClock))?;
    let mut worker = Worker::register(&store, slots)?;
    (0..turns).try_for_each(|_| worker.turn())
}

//! This program compared with another build of queuectl, usually an earlier one: single commands, and the start of a job.

use std::path::Path;

use anyhow::{Context, Result};

use crate::Bench;
use crate::benchmarks::enqueue_one::{SHOWN_JOBS, VERBS};
use crate::benchmarks::start_latency::{PRIORITY, Start, TAIL_QUANTILE, stamp_command, start_of};
use crate::output::report::{Bar, Report, Unit};
use crate::rig::running::RunningProcess;
use crate::rig::sample::Sample;
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

/// Nothing is slower, within what two copies of one program differ by.
const NOT_SLOWER: Bar = Bar::AtMost(1.02);
const RUNS_PER_ROUND: usize = 50;
const STARTS_PER_ROUND: usize = 25;
const SLOTS: &str = "4";

pub(crate) fn run(bench: &Bench, other: &Path, report: &mut Report) -> Result<()> {
    // Both as a new installation has them: the kernel keeps a program that was read from the disk in smaller pieces.
    let ours = bench.workspace.copy_program("this")?;
    let theirs = bench.workspace.copy(other, "other")?;
    let rounds = if bench.quick { 6 } else { 20 };
    commands(bench, [&ours, &theirs], rounds, report)?;
    starts(bench, [&ours, &theirs], rounds, report)
}

/// One command line of both programs, and their ratios, one for each round.
struct Comparison {
    words: String,
    /// With their homes, which are deleted at the end.
    programs: [(Home, Program); 2],
    wall: Sample,
    cpu: Sample,
}

fn commands(bench: &Bench, programs: [&Path; 2], rounds: usize, report: &mut Report) -> Result<()> {
    let mut comparisons = Vec::new();
    for (number, (words, _)) in VERBS.into_iter().enumerate() {
        let prepare = |name: &str, program| -> Result<(Home, Program)> {
            let home = bench.workspace.home_of(&format!("against-{number}-{name}"), program)?;
            home.queuectl(&["enqueue", "--", "true"])?.seconds(SHOWN_JOBS)?;
            let verb = home.queuectl(words)?;
            verb.seconds(RUNS_PER_ROUND)?;
            Ok((home, verb))
        };
        let programs = [prepare("this", programs[0])?, prepare("other", programs[1])?];
        let words = words.join(" ");
        comparisons.push(Comparison { words, programs, wall: Sample::default(), cpu: Sample::default() });
    }
    for round in 1..=rounds {
        bench.progress(&format!("single commands of both programs, round {round} of {rounds}"));
        for comparison in &mut comparisons {
            comparison.measure()?;
        }
    }
    report.section("Time of one process, relative to the other program");
    for comparison in &comparisons {
        report.line(&comparison.words, &comparison.wall, Unit::Ratio, NOT_SLOWER);
    }
    report.section("CPU time of one process, relative to the other program");
    for comparison in &comparisons {
        report.line(&comparison.words, &comparison.cpu, Unit::Ratio, NOT_SLOWER);
    }
    Ok(())
}

impl Comparison {
    /// One round, in which both programs take turns.
    fn measure(&mut self) -> Result<()> {
        let mut wall = [Sample::default(), Sample::default()];
        let mut cpu = [Sample::default(), Sample::default()];
        for _ in 0..RUNS_PER_ROUND {
            for (side, (_, program)) in self.programs.iter().enumerate() {
                let run = program.run()?;
                wall[side].push(run.wall.as_secs_f64());
                cpu[side].push(run.cpu.as_secs_f64());
            }
        }
        self.wall.push(wall[0].median() / wall[1].median());
        self.cpu.push(cpu[0].median() / cpu[1].median());
        Ok(())
    }
}

fn starts(bench: &Bench, programs: [&Path; 2], rounds: usize, report: &mut Report) -> Result<()> {
    let side = |name: &str, program| -> Result<(Home, RunningProcess)> {
        let home = bench.workspace.home_of(&format!("against-start-{name}"), program)?;
        let worker =
            RunningProcess::start(&home.queuectl(&["worker", "run", "-q", "--concurrency", SLOTS])?)?;
        start(&home, "warm-up").context("no worker started the first job")?;
        Ok((home, worker))
    };
    let sides = [side("this", programs[0])?, side("other", programs[1])?];
    let (mut ratios, mut all) = (Sample::default(), [Sample::default(), Sample::default()]);
    for round in 1..=rounds {
        bench.progress(&format!("starts on idle workers of both programs, round {round} of {rounds}"));
        let mut samples = [Sample::default(), Sample::default()];
        for number in 0..STARTS_PER_ROUND {
            for ((home, _), sample) in sides.iter().zip(&mut samples) {
                sample.push(start(home, &format!("job-{round}-{number}"))?.after_call());
            }
        }
        ratios.push(samples[0].median() / samples[1].median());
        for (all, sample) in all.iter_mut().zip(samples) {
            all.append(sample);
        }
    }
    report.section("Starting a job on an idle worker, relative to the other program");
    report.line("after `enqueue` was called", &ratios, Unit::Ratio, NOT_SLOWER);
    let [ours, theirs] = all.map(|sample| sample.quantile(TAIL_QUANTILE));
    report.line("the same, 99th percentile", &Sample::of(ours / theirs), Unit::Ratio, Bar::None);
    for (_home, worker) in sides {
        worker.stop()?;
    }
    Ok(())
}

/// Submits a job and waits until it has ended.
fn start(home: &Home, id: &str) -> Result<Start> {
    let stamp = home.path().join("stamp");
    let command = stamp_command(&stamp)?;
    let mut enqueue = vec!["enqueue", "-q", "--id", id, "--priority", PRIORITY, "--"];
    enqueue.extend(command.iter().map(String::as_str));
    let start = start_of(&home.queuectl(&enqueue)?, &stamp)?;
    home.queuectl(&["wait", id])?.run()?;
    Ok(start)
}

//! One durable `queuectl enqueue` process, against a process that does nothing at all.

use std::fs::File;

use anyhow::Result;

use crate::Bench;
use crate::raw;
use crate::report::{Bar, Report, Unit};
use crate::sample::{Sample, ratio_of_medians};
use crate::spawn::Program;

const MOST: f64 = 3.0;
const RUNS_PER_ROUND: usize = 50;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rounds = if bench.quick { 6 } else { 20 };
    let home = bench.workspace.home("enqueue-one")?;
    let enqueue = home.queuectl(&["enqueue", "--", "true"])?;
    let copy = bench.workspace.copy_program("copied")?;
    let copied = home.queuectl_at(&copy, &["enqueue", "--", "true"])?;
    let version = home.queuectl(&["--version"])?;
    let nothing = Program::new(["/bin/true"])?;
    let mut log = File::create(bench.workspace.path().join("synced"))?;

    let mut measured = Vec::new();
    for program in [&enqueue, &copied, &version, &nothing] {
        program.seconds(RUNS_PER_ROUND)?;
    }
    for round in 1..=rounds {
        bench.progress(&format!("single processes, round {round} of {rounds}"));
        measured.push(Round {
            nothing: nothing.seconds(RUNS_PER_ROUND)?,
            enqueue: enqueue.seconds(RUNS_PER_ROUND)?,
            copied: copied.seconds(RUNS_PER_ROUND)?,
            version: version.seconds(RUNS_PER_ROUND)?,
            sync: raw::sync_seconds(&mut log, RUNS_PER_ROUND)?,
        });
    }

    let against_nothing = |subject: fn(&Round) -> &Sample| {
        ratio_of_medians(measured.iter().map(|round| (subject(round), &round.nothing)))
    };
    let means: Sample = measured.iter().map(|round| round.enqueue.mean() / round.nothing.mean()).collect();
    report.section("One process, against /bin/true");
    let ratio = Unit::Ratio;
    report.line("enqueue", &against_nothing(|round| &round.enqueue), ratio, Bar::AtMost(MOST));
    report.line("enqueue, by the means (with checkpoints)", &means, ratio, Bar::None);
    let copied = against_nothing(|round| &round.copied);
    report.line("enqueue, of a program that was just copied", &copied, ratio, Bar::None);
    report.line("--version (starting alone)", &against_nothing(|round| &round.version), ratio, Bar::None);
    report.line(
        "appending 4 KiB and fdatasync (no process)",
        &against_nothing(|round| &round.sync),
        ratio,
        Bar::None,
    );
    Ok(())
}

struct Round {
    nothing: Sample,
    enqueue: Sample,
    copied: Sample,
    version: Sample,
    sync: Sample,
}

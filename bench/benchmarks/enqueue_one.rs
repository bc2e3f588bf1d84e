//! Processes that do one thing, compared with a process that does nothing.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::Bench;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::raw;
use crate::rig::sample::{Sample, ratio_of_medians};
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

/// Command lines, and how many times as long as `/bin/true` each may take.
pub(crate) const VERBS: [(&[&str], f64); 7] = [
    (&["--version"], 2.0),
    (&["enqueue", "--", "true"], 3.3),
    (&["enqueue", "--command", "true"], 3.3),
    (&["enqueue", r#"{"command":"true"}"#], 3.3),
    (&["enqueue", "--queue", "mail", "--priority", "3", "--tag", "a", "--", "true"], 3.3),
    (&["status"], 3.6),
    (&["list"], 3.6),
];
/// The same of the program that `tools/release` has built.
const RELEASED: (&[&str], f64) = (&["enqueue", "--", "true"], 3.0);
const RUNS_PER_ROUND: usize = 50;
/// Jobs in the home that `status` and `list` show.
pub(crate) const SHOWN_JOBS: usize = 10;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rounds = if bench.quick { 6 } else { 20 };
    // Each has a home of its own: every few commits a process checkpoints the log, which must not always be the same one.
    let home = |name: &str| bench.workspace.home(&format!("enqueue-one-{name}"));
    let shown = home_with_jobs(bench)?;
    let nothing = Program::new(["/bin/true"])?;
    let mut subjects = Vec::new();
    for (number, (words, most)) in VERBS.into_iter().enumerate() {
        let changed = home(&number.to_string())?;
        let program = if words[0] == "enqueue" { &changed } else { &shown }.queuectl(words)?;
        subjects.push(Subject::new(words.join(" "), program, Bar::AtMost(most)));
    }
    let enqueue = ["enqueue", "--", "true"];
    let copy = bench.workspace.copy_program("copied")?;
    let copied = home("copied")?.queuectl_at(&copy, &enqueue)?;
    subjects.push(Subject::new("enqueue, of a program that was just copied".to_owned(), copied, Bar::None));
    let released = released();
    if released.exists() {
        let (words, most) = RELEASED;
        let copy = bench.workspace.copy_from_disk(&released, "released")?;
        let program = home("released")?.queuectl_at(&copy, words)?;
        let what = format!("{}, of what tools/release built", words.join(" "));
        subjects.push(Subject::new(what, program, Bar::AtMost(most)));
    }
    let mut log = File::create(bench.workspace.path().join("synced"))?;

    nothing.seconds(RUNS_PER_ROUND)?;
    for subject in &subjects {
        subject.program.seconds(RUNS_PER_ROUND)?;
    }
    let (mut floor, mut syncs) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        bench.progress(&format!("single processes, round {round} of {rounds}"));
        // In turns, so that a change of the machine's speed touches all alike.
        let (mut bare, mut taken) = (Vec::new(), vec![Vec::new(); subjects.len()]);
        for _ in 0..RUNS_PER_ROUND {
            bare.push(nothing.run()?.wall.as_secs_f64());
            for (subject, seconds) in subjects.iter().zip(&mut taken) {
                seconds.push(subject.program.run()?.wall.as_secs_f64());
            }
        }
        floor.push(bare.into_iter().collect::<Sample>());
        for (subject, seconds) in subjects.iter_mut().zip(taken) {
            subject.rounds.push(seconds.into_iter().collect());
        }
        syncs.push(raw::sync_seconds(&mut log, RUNS_PER_ROUND)?);
    }

    report.section("One process, relative to /bin/true");
    for subject in &subjects {
        let ratio = ratio_of_medians(subject.rounds.iter().zip(&floor));
        report.line(&subject.what, &ratio, Unit::Ratio, subject.bar);
    }
    let enqueues = subjects.iter().find(|subject| subject.what == enqueue.join(" "));
    if let Some(enqueues) = enqueues {
        let means = enqueues.rounds.iter().zip(&floor).map(|(round, floor)| round.mean() / floor.mean());
        report.line(
            "enqueue, ratio of means (includes checkpoints)",
            &means.collect(),
            Unit::Ratio,
            Bar::None,
        );
    }
    let sync = ratio_of_medians(syncs.iter().zip(&floor));
    report.line("appending 4 KiB and fdatasync (no process)", &sync, Unit::Ratio, Bar::None);
    if !released.exists() {
        report.note("The shipped program was not measured: `tools/release` has not built it here.");
    }
    Ok(())
}

/// One command line, and what each round of it took.
struct Subject {
    what: String,
    program: Program,
    bar: Bar,
    rounds: Vec<Sample>,
}

impl Subject {
    fn new(what: String, program: Program, bar: Bar) -> Self {
        Self { what, program, bar, rounds: Vec::new() }
    }
}

fn home_with_jobs(bench: &Bench) -> Result<Home> {
    let home = bench.workspace.home("show-few")?;
    home.queuectl(&["enqueue", "--", "true"])?.seconds(SHOWN_JOBS)?;
    Ok(home)
}

/// Where `tools/release` leaves the program for this machine.
fn released() -> PathBuf {
    let build = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap_or(Path::new("target"));
    build.join("x86_64-unknown-linux-gnu/release/queuectl")
}

//! A store with very many jobs against a small one: looking at it, and a worker's turn.
//!
//! A turn that commits durably waits mostly for the disk, which hides what finding the next job costs. So turns are
//! measured twice: with full durability, and without the sync.

use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use domain::settings::SettingKey;
use store::Store;
use store::sqlite::SqliteStore;

use crate::Bench;
use crate::figure::count;
use crate::filled::{Filled, Shape, Worker};
use crate::plot::{Axis, Kind, LineChart, Series};
use crate::report::{Bar, Report, Unit};
use crate::sample::{Sample, ratio_of_medians};

const SMALL: u32 = 10_000;
const MOST: f64 = 1.5;
const STATUS_MILLISECONDS: f64 = 10.0;
const LIST_MILLISECONDS: f64 = 20.0;
const LOOKS: usize = 20;
const TURNS_PER_ROUND: usize = 50;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (sizes, largest): (&[u32], u32) = if bench.quick {
        (&[SMALL, 300_000], 300_000)
    } else {
        (&[SMALL, 1_000_000, 10_000_000], 10_000_000)
    };
    let chart = all_ready(bench, report, &sizes[1..])?;
    for shape in [Shape::Future { ready: SMALL }, Shape::Paused] {
        let large = Filled::new(bench, "large", largest, shape)?;
        compare(bench, report, &[Subject { filled: &large, size: largest, shape }])?;
    }
    report.plot("large-store", &chart.title, chart.svg());
    Ok(())
}

/// The usual shape, in every size.
fn all_ready(bench: &Bench, report: &mut Report, sizes: &[u32]) -> Result<LineChart> {
    let shape = Shape::Plain;
    let filled: Vec<(u32, Filled)> = sizes
        .iter()
        .map(|size| Ok((*size, Filled::new(bench, &format!("large-{size}"), *size, shape)?)))
        .collect::<Result<_>>()?;
    let subjects: Vec<Subject<'_>> =
        filled.iter().map(|(size, filled)| Subject { filled, size: *size, shape }).collect();
    let series = compare(bench, report, &subjects)?;
    let all_sizes = std::iter::once(SMALL).chain(sizes.iter().copied()).map(f64::from).collect();
    Ok(LineChart {
        title: "What looking and claiming costs, by the size of the store".to_owned(),
        across: Axis::new("jobs in the store, all ready", Kind::Marked(all_sizes)),
        upwards: Axis::new("milliseconds (medians)", Kind::Linear),
        series,
    })
}

/// A store that is compared with the small one.
struct Subject<'a> {
    filled: &'a Filled,
    size: u32,
    shape: Shape,
}

/// The milliseconds of one act: on the small store and on each of the others, round by round.
struct Times {
    act: String,
    rounds: Vec<Vec<Sample>>,
}

/// Measures everything on all of these stores in turn, and says how each compares with the small one.
fn compare(bench: &Bench, report: &mut Report, subjects: &[Subject<'_>]) -> Result<Vec<Series>> {
    // A new one each time, so that it carries nothing from earlier comparisons.
    let small = Filled::new(bench, "small", SMALL, Shape::Plain)?;
    let filled: Vec<&Filled> =
        std::iter::once(&small).chain(subjects.iter().map(|subject| subject.filled)).collect();
    bench.progress("looking and claiming");
    let looks = ["status", "list"].map(|verb| look(&filled, verb));
    let stores: Vec<SqliteStore> = filled.iter().map(|filled| filled.open()).collect::<Result<_>>()?;
    let turns = ["full", "normal"].map(|durability| take_turns(bench, &stores, durability));
    let all: Vec<Times> = looks.into_iter().chain(turns).collect::<Result<_>>()?;

    for (at, Subject { size, shape, .. }) in subjects.iter().enumerate() {
        let (size, small) = (count(*size), count(SMALL));
        report.section(&format!("{size} jobs, {}, against {small} ready ones", shape.describe()));
        for times in &all {
            times.report(report, at + 1);
        }
    }
    let sizes: Vec<u32> = std::iter::once(SMALL).chain(subjects.iter().map(|subject| subject.size)).collect();
    Ok(all.iter().map(|times| times.series(&sizes)).collect())
}

impl Times {
    /// How the store at this position compares with the first.
    fn report(&self, report: &mut Report, at: usize) {
        let all: Sample = self.rounds.iter().map(|round| round[at].median()).collect();
        let ratio = ratio_of_medians(self.rounds.iter().map(|round| (&round[at], &round[0])));
        let (most_milliseconds, most_ratio) = match self.act.as_str() {
            "status" => (Bar::AtMost(STATUS_MILLISECONDS), Bar::None),
            "list" => (Bar::AtMost(LIST_MILLISECONDS), Bar::None),
            _ => (Bar::None, Bar::AtMost(MOST)),
        };
        report.line(&self.act, &all, Unit::Milliseconds, most_milliseconds);
        report.line(&format!("{}, against the small store", self.act), &ratio, Unit::Ratio, most_ratio);
    }

    fn series(&self, sizes: &[u32]) -> Series {
        let median =
            |at: usize| self.rounds.iter().map(|round| round[at].median()).collect::<Sample>().median();
        let points = sizes.iter().enumerate().map(|(at, size)| (f64::from(*size), median(at)));
        Series::new(&self.act, points.collect())
    }
}

/// A command that shows something, as a whole process.
fn look(filled: &[&Filled], verb: &str) -> Result<Times> {
    let programs: Vec<_> =
        filled.iter().map(|filled| filled.home.queuectl(&[verb])).collect::<Result<_>>()?;
    let round = |_| {
        let once =
            |program: &crate::spawn::Program| Ok(Sample::of(program.run()?.wall.as_secs_f64() * 1000.0));
        programs.iter().map(once).collect::<Result<Vec<_>>>()
    };
    Ok(Times { act: verb.to_owned(), rounds: (0..LOOKS).map(round).collect::<Result<_>>()? })
}

/// Settling one job and claiming the next, on all stores in turn.
fn take_turns(bench: &Bench, stores: &[SqliteStore], durability: &str) -> Result<Times> {
    for store in stores {
        store.set(SettingKey::Durability, Some(durability), "bench")?.map_err(|error| anyhow!(error))?;
    }
    let mut workers: Vec<Worker<'_>> =
        stores.iter().map(|store| Worker::register(store, 1)).collect::<Result<_>>()?;
    let mut rounds = Vec::new();
    for _ in 0..if bench.quick { 6 } else { 12 } {
        let mut times = vec![Sample::default(); stores.len()];
        for _ in 0..TURNS_PER_ROUND {
            for (worker, times) in workers.iter_mut().zip(&mut times) {
                let began = Instant::now();
                worker.turn().context("failed to take a turn")?;
                times.push(began.elapsed().as_secs_f64() * 1000.0);
            }
        }
        rounds.push(times);
    }
    Ok(Times { act: format!("a turn, durability {durability}"), rounds })
}

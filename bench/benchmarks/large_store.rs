//! A store with very many jobs compared with a small one: commands that read it, and a worker's exchange.
//!
//! An exchange that commits durably waits mostly for the disk, which hides the cost of finding the next job. So
//! exchanges are measured twice: with full durability, and without the sync.

use std::time::Instant;

use anyhow::{Context, Result};
use domain::settings::SettingKey;
use store::Store;

use crate::Bench;
use crate::output::figure::count;
use crate::output::plot::{Axis, Kind, LineChart, Series};
use crate::output::report::{Bar, Report, Unit};
use crate::rig::filled::{Shape, Worker, filled_home};
use crate::rig::sample::{Sample, ratio_of_medians};
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

const SMALL_STORE_JOBS: u32 = 10_000;
const MAX_RATIO: f64 = 1.5;
const MAX_STATUS_MILLISECONDS: f64 = 10.0;
const MAX_LIST_MILLISECONDS: f64 = 20.0;
const COMMAND_ROUNDS: usize = 20;
const EXCHANGES_PER_ROUND: usize = 50;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (sizes, largest): (&[u32], u32) = if bench.quick {
        (&[SMALL_STORE_JOBS, 300_000], 300_000)
    } else {
        (&[SMALL_STORE_JOBS, 1_000_000, 10_000_000], 10_000_000)
    };
    let chart = all_ready(bench, report, &sizes[1..])?;
    for shape in [Shape::Future { ready: SMALL_STORE_JOBS }, Shape::Paused] {
        let large = filled_home(bench, "large", largest, shape)?;
        compare(bench, report, &[Subject { filled: &large, size: largest, shape }])?;
    }
    report.plot("large-store", &chart.title, chart.svg());
    Ok(())
}

/// The usual shape, in every size.
fn all_ready(bench: &Bench, report: &mut Report, sizes: &[u32]) -> Result<LineChart> {
    let shape = Shape::Plain;
    let filled: Vec<(u32, Home)> = sizes
        .iter()
        .map(|size| Ok((*size, filled_home(bench, &format!("large-{size}"), *size, shape)?)))
        .collect::<Result<_>>()?;
    let subjects: Vec<Subject<'_>> =
        filled.iter().map(|(size, filled)| Subject { filled, size: *size, shape }).collect();
    let series = compare(bench, report, &subjects)?;
    let all_sizes = std::iter::once(SMALL_STORE_JOBS).chain(sizes.iter().copied()).map(f64::from).collect();
    Ok(LineChart {
        title: "Cost of reading and claiming, by the size of the store".to_owned(),
        across: Axis::new("jobs in the store, all ready", Kind::Marked(all_sizes)),
        upwards: Axis::new("milliseconds (medians)", Kind::Linear),
        series,
    })
}

/// A store that is compared with the small one.
struct Subject<'a> {
    filled: &'a Home,
    size: u32,
    shape: Shape,
}

/// The milliseconds of one operation: on the small store and on each of the others, round by round.
pub(crate) struct Times {
    pub(crate) operation: String,
    rounds: Vec<Vec<Sample>>,
}

/// Measures every operation on all of these stores in turn, and reports how each compares with the small one.
fn compare(bench: &Bench, report: &mut Report, subjects: &[Subject<'_>]) -> Result<Vec<Series>> {
    // A new store each time, so that earlier comparisons have no effect on it.
    let small = filled_home(bench, "small", SMALL_STORE_JOBS, Shape::Plain)?;
    let filled: Vec<&Home> =
        std::iter::once(&small).chain(subjects.iter().map(|subject| subject.filled)).collect();
    bench.progress("reading and claiming");
    let commands = ["status", "list"].map(|verb| time_command(&filled, verb));
    let stores: Vec<Box<dyn Store>> = filled.iter().map(|filled| filled.open()).collect::<Result<_>>()?;
    let exchanges = ["full", "normal"].map(|durability| time_exchanges(bench, &stores, durability));
    let all: Vec<Times> = commands.into_iter().chain(exchanges).collect::<Result<_>>()?;

    for (at, Subject { size, shape, .. }) in subjects.iter().enumerate() {
        let (size, small) = (count(*size), count(SMALL_STORE_JOBS));
        report.section(&format!("{size} jobs, {}, compared with {small} ready jobs", shape.describe()));
        for times in &all {
            times.report(report, at + 1);
        }
    }
    let sizes: Vec<u32> =
        std::iter::once(SMALL_STORE_JOBS).chain(subjects.iter().map(|subject| subject.size)).collect();
    Ok(all.iter().map(|times| times.series(&sizes)).collect())
}

impl Times {
    /// How the store at this position compares with the first.
    fn report(&self, report: &mut Report, at: usize) {
        let (all, ratio) = (self.medians(at), self.ratio(at));
        let (most_milliseconds, most_ratio) = match self.operation.as_str() {
            "status" => (Bar::AtMost(MAX_STATUS_MILLISECONDS), Bar::None),
            "list" => (Bar::AtMost(MAX_LIST_MILLISECONDS), Bar::None),
            _ => (Bar::None, Bar::AtMost(MAX_RATIO)),
        };
        report.line(&self.operation, &all, Unit::Milliseconds, most_milliseconds);
        report.line(
            &format!("{}, relative to the small store", self.operation),
            &ratio,
            Unit::Ratio,
            most_ratio,
        );
    }

    /// The median of each round for the store at this position.
    pub(crate) fn medians(&self, at: usize) -> Sample {
        self.rounds.iter().map(|round| round[at].median()).collect()
    }

    /// The same relative to the first store.
    pub(crate) fn ratio(&self, at: usize) -> Sample {
        ratio_of_medians(self.rounds.iter().map(|round| (&round[at], &round[0])))
    }

    fn series(&self, sizes: &[u32]) -> Series {
        let points = sizes.iter().enumerate().map(|(at, size)| (f64::from(*size), self.medians(at).median()));
        Series::new(&self.operation, points.collect())
    }
}

/// A command that reads the store, as a whole process.
pub(crate) fn time_command(filled: &[&Home], verb: &str) -> Result<Times> {
    let programs: Vec<_> = filled.iter().map(|filled| filled.queuectl(&[verb])).collect::<Result<_>>()?;
    let round = |_| {
        let once = |program: &Program| Ok(Sample::of(program.run()?.wall.as_secs_f64() * 1000.0));
        programs.iter().map(once).collect::<Result<Vec<_>>>()
    };
    Ok(Times { operation: verb.to_owned(), rounds: (0..COMMAND_ROUNDS).map(round).collect::<Result<_>>()? })
}

/// Settles one job and claims the next, on all stores in turn.
pub(crate) fn time_exchanges(bench: &Bench, stores: &[Box<dyn Store>], durability: &str) -> Result<Times> {
    for store in stores {
        store.set(SettingKey::Durability, Some(durability), "bench")?;
    }
    let mut workers: Vec<Worker<'_>> =
        stores.iter().map(|store| Worker::register(store.as_ref(), 1)).collect::<Result<_>>()?;
    let mut rounds = Vec::new();
    for _ in 0..if bench.quick { 6 } else { 12 } {
        let mut times = vec![Sample::default(); stores.len()];
        for _ in 0..EXCHANGES_PER_ROUND {
            for (worker, times) in workers.iter_mut().zip(&mut times) {
                let began = Instant::now();
                worker.exchange().context("failed to exchange")?;
                times.push(began.elapsed().as_secs_f64() * 1000.0);
            }
        }
        rounds.push(times);
    }
    Ok(Times { operation: format!("exchange, durability {durability}"), rounds })
}

//! Every command with every number of slots and of workers, each compared with a bare loop of the program that it
//! executes, with as many in flight.

use anyhow::Result;

use super::MIN_RATIO;
use crate::Bench;
use crate::output::figure::count;
use crate::output::plot::{Axis, BarChart, Kind, LineChart, Mark, Series};
use crate::output::report::{Bar, Report, Unit};
use crate::output::table::Table;
use crate::rig::bare;
use crate::rig::bare::Command;
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs::{self, DrainResult, PoolShape};

/// The enqueued command, and the program that is executed for it.
const JOBS: [(&str, Command); 3] = [
    ("true", Command::TRUE),
    ("/bin/true", Command::TRUE),
    ("echo hello; echo err >&2", Command::SHELL_ECHO),
];
const IN_FLIGHT: [u32; 4] = [1, 2, 4, 16];
const ROUNDS: u32 = 3;

/// How the slots that drain a queue are spread over workers.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// One worker.
    Slots(u32),
    /// Workers with one slot each.
    Workers(u32),
}

const LAYOUTS: [Layout; 6] = [
    Layout::Slots(1),
    Layout::Slots(2),
    Layout::Slots(4),
    Layout::Slots(16),
    Layout::Workers(4),
    Layout::Workers(16),
];

/// One command with one layout, over all rounds.
struct Cell {
    command: &'static str,
    executed: Command,
    layout: Layout,
    /// Jobs per second.
    rate: Sample,
    /// The rate of the bare loop.
    limit: Sample,
    /// The rate of the loop of `sh -c true`.
    shell: Sample,
    failures: f64,
}

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let jobs = if bench.quick { 500 } else { 3_000 };
    let mut cells: Vec<Cell> =
        LAYOUTS.iter().flat_map(|layout| JOBS.map(|job| Cell::new(job, *layout))).collect();
    for round in 1..=ROUNDS {
        for at_once in IN_FLIGHT {
            bench.progress(&format!("drains of {jobs} jobs, {at_once} in flight, round {round} of {ROUNDS}"));
            let mut cells: Vec<&mut Cell> =
                cells.iter_mut().filter(|cell| cell.layout.in_flight() == at_once).collect();
            measure(bench, jobs, at_once, &mut cells)?;
        }
    }

    let title = format!(
        "Drains of {} jobs, compared with bare loops with as many in flight, {ROUNDS} rounds",
        count(jobs)
    );
    report.table(&table(title, &cells));
    let failures = Sample::of(cells.iter().map(|cell| cell.failures).sum());
    report.section("All drains of this table");
    report.line("failed attempts", &failures, Unit::Count, Bar::AtMost(0.0));
    let (rates, ratios) = (throughput(&cells), relative_to_loops(&cells));
    report.plot("throughput", &rates.title, rates.svg());
    report.plot("drain-ratios", &ratios.title, ratios.svg());
    Ok(())
}

/// One round of all cells with `at_once` jobs in flight, right after the loops that they are compared with.
fn measure(bench: &Bench, jobs: u32, at_once: u32, cells: &mut [&mut Cell]) -> Result<()> {
    let rate_of = |command| Ok::<_, anyhow::Error>(f64::from(jobs) / bare::plain(command, jobs, at_once)?);
    let (bare_true, shell) = (rate_of(Command::TRUE)?, rate_of(Command::SHELL_TRUE)?);
    let shell_echo = rate_of(Command::SHELL_ECHO)?;
    for cell in cells {
        let drained = cell.layout.drain(bench, cell.command, jobs)?;
        cell.rate.push(f64::from(jobs) / drained.seconds);
        cell.limit.push(if cell.executed.typed == Command::TRUE.typed { bare_true } else { shell_echo });
        cell.shell.push(shell);
        cell.failures += drained.failures;
    }
    Ok(())
}

fn table(title: String, cells: &[Cell]) -> Table {
    let columns = ["command", "workers", "jobs", "bare loop", "ratio", "10 % – 90 %", "to `sh -c true`"];
    let row = |cell: &Cell| {
        let ratio = cell.ratio();
        vec![
            format!("`{}`", cell.command),
            cell.layout.describe(),
            Unit::PerSecond.show(cell.rate.median()),
            Unit::PerSecond.show(cell.limit.median()),
            Unit::Ratio.show(ratio.median()),
            format!("{:.2} – {:.2}", ratio.quantile(0.1), ratio.quantile(0.9)),
            Unit::Ratio.show(cell.rate.over(&cell.shell).median()),
        ]
    };
    Table { title, columns: columns.map(str::to_owned).to_vec(), rows: cells.iter().map(row).collect() }
}

/// Jobs per second by the number of slots, and the rates of the loops as limits.
fn throughput(cells: &[Cell]) -> LineChart {
    let by_slots = |command: &str, value: fn(&Cell) -> f64| {
        let slots =
            cells.iter().filter(|cell| cell.command == command).filter_map(|cell| match cell.layout {
                Layout::Slots(slots) => Some((f64::from(slots), value(cell))),
                Layout::Workers(_) => None,
            });
        slots.collect::<Vec<_>>()
    };
    let [(first, _), ..] = JOBS;
    let limits = [
        Series::new("limit: /bin/true", by_slots(first, |cell| cell.limit.median())).dashed(),
        Series::new("limit: sh -c true", by_slots(first, |cell| cell.shell.median())).dashed(),
    ];
    let drains = JOBS.map(|(command, _)| Series::new(command, by_slots(command, |cell| cell.rate.median())));
    LineChart {
        title: "Jobs drained, by slots of one worker".to_owned(),
        across: Axis::new(
            "slots (for the limits: programs in flight)",
            Kind::Marked(IN_FLIGHT.map(f64::from).to_vec()),
        ),
        upwards: Axis::new("jobs per second", Kind::Linear),
        series: limits.into_iter().chain(drains).collect(),
    }
}

/// The ratio of every cell.
fn relative_to_loops(cells: &[Cell]) -> BarChart {
    let ratios = |command: &str| {
        let cells = cells.iter().filter(|cell| cell.command == command);
        cells.map(|cell| cell.ratio().median()).collect::<Vec<_>>()
    };
    BarChart {
        title: "Drain rate, relative to the bare loop of the same program".to_owned(),
        upwards: "ratio".to_owned(),
        groups: LAYOUTS.iter().map(|layout| layout.describe()).collect(),
        series: JOBS.map(|(command, _)| (command.to_owned(), ratios(command))).to_vec(),
        mark: Some(Mark { name: format!("target with 4 slots: {MIN_RATIO:.2}"), value: MIN_RATIO }),
    }
}

impl Cell {
    fn new((command, executed): (&'static str, Command), layout: Layout) -> Self {
        let (rate, limit, shell) = (Sample::default(), Sample::default(), Sample::default());
        Self { command, executed, layout, rate, limit, shell, failures: 0.0 }
    }

    fn ratio(&self) -> Sample {
        self.rate.over(&self.limit)
    }
}

impl Layout {
    fn drain(self, bench: &Bench, command: &str, jobs: u32) -> Result<DrainResult> {
        let home = bench.workspace.home("drain")?;
        match self {
            Self::Slots(slots) => {
                tiny_jobs::enqueue(&home, command, jobs)?;
                tiny_jobs::drain_by_slots(&home, slots)?;
                tiny_jobs::drain_result(home.open()?.as_ref(), jobs)
            }
            Self::Workers(workers) => {
                tiny_jobs::drain_by_pool(home, command, jobs, PoolShape { workers, slots: 1 })
            }
        }
    }

    fn in_flight(self) -> u32 {
        match self {
            Self::Slots(count) | Self::Workers(count) => count,
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Slots(1) => "1 slot".to_owned(),
            Self::Slots(slots) => format!("{slots} slots"),
            Self::Workers(workers) => format!("{workers} × 1 slot"),
        }
    }
}

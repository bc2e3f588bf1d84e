//! A steady load in PostgreSQL for many minutes: jobs are enqueued, claimed and settled at a fixed pace, and retention
//! deletes the finished ones. Neither turns nor tables may grow once retention has begun to delete.

mod load;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use domain::job::life::StateName;
use domain::settings::SettingKey;
use store::Store;
use store::postgres::Address;

use self::load::{Load, Turns};
use super::tables::{self, TableSize};
use crate::Bench;
use crate::output::figure::{count, grouped};
use crate::output::plot::{Axis, Kind, LineChart, Series};
use crate::output::report::{Bar, Report, Unit};
use crate::output::table::Table;
use crate::rig::cluster::Cluster;
use crate::rig::filled::{Shape, fill};
use crate::rig::sample::Sample;

/// Ready jobs that are there from the beginning, so that a claim never finds the queue empty.
const BACKLOG: u32 = 10_000;
/// Generous, because other programs use the machine too: growth over the whole run would pass them.
const MAX_TURN_GROWTH: f64 = 1.5;
const MAX_SIZE_GROWTH: f64 = 1.25;
const MIN_PACE: f64 = 0.95;
const TAIL_QUANTILE: f64 = 0.95;

/// A moment of the run.
struct Moment {
    minutes: f64,
    finished_per_second: f64,
    turns: Sample,
    prune_steps: Sample,
    pruned_per_second: f64,
    ready: u64,
    jobs: u64,
    tables: Vec<TableSize>,
}

impl Moment {
    fn megabytes(&self) -> f64 {
        self.tables.iter().map(|table| table.megabytes + table.index_megabytes).sum()
    }

    fn table(&self, name: &str) -> Option<&TableSize> {
        self.tables.iter().find(|table| table.name == name)
    }
}

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (samples, interval, retain) = if bench.quick { (6, 10, "15s") } else { (20, 60, "2m") };
    let (interval, load) = (Duration::from_secs(interval), Load::STANDARD);
    // A short run would end before the server first looks for tables to vacuum.
    let settings: &[&str] = if bench.quick { &["autovacuum_naptime=2s"] } else { &[] };
    let cluster = Cluster::start_with(settings)?;
    let server = cluster.database()?;
    let home = bench.workspace.home_with_server("steady", server.clone())?;
    let store = home.open()?;
    store.set(SettingKey::RetainCompleted, Some(retain), "bench")?;
    fill(bench, store.as_ref(), BACKLOG, Shape::Plain)?;
    let (is_over, turns) = (AtomicBool::new(false), Turns::default());
    let moments = thread::scope(|scope| {
        let threads = load.start(scope, bench, &home, &turns, &is_over);
        let moments = (1..=samples).map(|number| {
            let moment = observe(store.as_ref(), &server, &turns, interval)?;
            let moment = Moment { minutes: f64::from(number) * interval.as_secs_f64() / 60.0, ..moment };
            bench.progress(&format!(
                "{number} of {samples}: {} jobs/s, a turn takes {} ms, tables {} MB, {} jobs",
                grouped(moment.finished_per_second, 0),
                grouped(moment.turns.median(), 2),
                grouped(moment.megabytes(), 0),
                moment.jobs,
            ));
            Ok(moment)
        });
        let moments = moments.collect::<Result<Vec<Moment>>>();
        is_over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().expect("the thread does not panic")?;
        }
        moments
    })?;
    report_all(report, &load, retain, &moments);
    Ok(())
}

/// Waits for an interval and looks at the queue then.
fn observe(store: &dyn Store, server: &Address, turns: &Turns, interval: Duration) -> Result<Moment> {
    let began = Instant::now();
    turns.take();
    thread::sleep(interval);
    let seen = turns.take();
    let seconds = began.elapsed().as_secs_f64();
    let queues = store.queues()?;
    let in_state = |state| queues.iter().filter_map(|queue| queue.counts.get(&state)).sum::<u64>();
    Ok(Moment {
        minutes: 0.0,
        finished_per_second: f64::from(seen.settled) / seconds,
        turns: seen.milliseconds,
        prune_steps: seen.prune_milliseconds,
        pruned_per_second: f64::from(seen.pruned) / seconds,
        ready: in_state(StateName::Pending),
        jobs: queues.iter().flat_map(|queue| queue.counts.values()).sum(),
        tables: tables::read(server)?,
    })
}

/// How the last quarter of the run compares with the second, in which retention deletes already.
fn growth(moments: &[Moment], figure: impl Fn(&Moment) -> f64) -> Sample {
    let quarter = moments.len() / 4;
    let median = |moments: &[Moment]| moments.iter().map(&figure).collect::<Sample>().median();
    Sample::of(median(&moments[moments.len() - quarter..]) / median(&moments[quarter..2 * quarter]))
}

fn report_all(report: &mut Report, load: &Load, retain: &str, moments: &[Moment]) {
    let minutes = moments.last().map_or(0.0, |last| last.minutes);
    report.section(&format!(
        "{} jobs/s without commands in PostgreSQL for {} minutes, completed ones deleted after {retain}",
        count(load.jobs_per_second()),
        grouped(minutes, 0)
    ));
    let pace: Sample = moments.iter().map(|moment| moment.finished_per_second).collect();
    let least = Bar::AtLeast(MIN_PACE * f64::from(load.jobs_per_second()));
    report.line("jobs finished", &pace, Unit::PerSecond, least);
    let turns = growth(moments, |moment| moment.turns.median());
    let growth_bar = Bar::AtMost(MAX_TURN_GROWTH);
    report.line("a turn in the last quarter, relative to the second", &turns, Unit::Ratio, growth_bar);
    let size = growth(moments, Moment::megabytes);
    let size_bar = Bar::AtMost(MAX_SIZE_GROWTH);
    report.line("the tables in the last quarter, relative to the second", &size, Unit::Ratio, size_bar);
    let medians: Sample = moments.iter().map(|moment| moment.turns.median()).collect();
    report.line("a turn, median of each sample", &medians, Unit::Milliseconds, Bar::None);
    // Nothing has expired in the first samples.
    let retention: Sample =
        moments.iter().map(|moment| moment.prune_steps.median()).filter(|median| !median.is_nan()).collect();
    report.line("a step of retention, median of each sample", &retention, Unit::Milliseconds, Bar::None);
    report.table(&over_time(moments));
    let at_the_end: &[TableSize] = moments.last().map_or(&[], |moment| &moment.tables);
    report.table(&tables::table("The tables at the end of the steady load", at_the_end));
    let chart = chart(moments);
    report.plot("steady-turns", &chart.title, chart.svg());
}

fn over_time(moments: &[Moment]) -> Table {
    let dead = |moment: &Moment, name| moment.table(name).map_or(0.0, |table| table.dead_rows);
    let size = |moment: &Moment, name: &str| {
        moment.table(name).map_or(0.0, |table| table.megabytes + table.index_megabytes)
    };
    let cells = |moment: &Moment| {
        vec![
            grouped(moment.minutes, 1),
            grouped(moment.finished_per_second, 0),
            grouped(moment.turns.median(), 2),
            grouped(moment.turns.quantile(TAIL_QUANTILE), 2),
            grouped(moment.pruned_per_second, 0),
            moment.ready.to_string(),
            moment.jobs.to_string(),
            grouped(size(moment, "ready"), 1),
            grouped(dead(moment, "ready"), 0),
            grouped(size(moment, "jobs"), 0),
            grouped(size(moment, "attempts"), 0),
            grouped(moment.megabytes(), 0),
        ]
    };
    let columns = [
        "minute",
        "jobs/s",
        "turn, ms",
        "95 %",
        "deleted/s",
        "ready",
        "jobs",
        "`ready`, MB",
        "dead rows in it",
        "`jobs`, MB",
        "`attempts`, MB",
        "all, MB",
    ];
    Table {
        title: "The steady load, minute by minute".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: moments.iter().map(cells).collect(),
    }
}

fn chart(moments: &[Moment]) -> LineChart {
    let series = |name: &str, figure: fn(&Moment) -> f64| {
        Series::new(name, moments.iter().map(|moment| (moment.minutes, figure(moment))).collect())
    };
    LineChart {
        title: "The steady load: a turn over time".to_owned(),
        across: Axis::new("minutes", Kind::Linear),
        upwards: Axis::new("milliseconds", Kind::Linear),
        series: vec![
            series("a turn, median", |moment| moment.turns.median()),
            series("a turn, 95 %", |moment| moment.turns.quantile(TAIL_QUANTILE)),
        ],
    }
}

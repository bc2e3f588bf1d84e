//! Reading a large store through the API, compared with the store itself and with the command line.

use std::time::Instant;

use anyhow::{Context, Result};
use rusqlite::Connection;
use serde_json::json;
use store::{JobFilter, Page};

use crate::Bench;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::dashboard::{Client, Dashboard};
use crate::rig::filled::{Shape, Worker, filled_home};
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs;
use crate::rig::workspace::Home;

const QUEUES: usize = 200;
const ROWS: usize = 100;
/// Turns of a worker whose minute is the model of all others.
const TURNS: usize = 100;
const MAX_LIST_MILLISECONDS: f64 = 3.0;
const MAX_LIST_TAIL_MILLISECONDS: f64 = 15.0;
const MAX_LIST_RATIO: f64 = 1.5;
/// Paths, and the most milliseconds that their 99th percentile may have.
const ROUTES: [(&str, f64); 3] =
    [("/api/v1/status", 5.0), ("/api/v1/history?range=24h", 20.0), ("/metrics", 30.0)];
const MAX_SEARCH_PART_MILLISECONDS: f64 = 200.0;
const MAX_SEARCH_RATIO: f64 = 1.3;
const TAIL: f64 = 0.99;
/// No command contains it.
const ABSENT: &str = "*no-command-has-this*";

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let size = bench.large_store_jobs();
    let home = filled_home(bench, "dashboard-large", size, Shape::Plain)?;
    add_queues(&home)?;
    add_history(&home)?;
    let dashboard = Dashboard::start(&home, &[])?;
    let mut client = dashboard.client()?;
    bench.progress("reading through the API");
    report.section(&format!(
        "Reading through the API, {} jobs, {QUEUES} queues with 90 days of history",
        count(size)
    ));
    let calls = if bench.quick { 100 } else { 500 };
    list(report, &home, &mut client, calls)?;
    for (path, most) in ROUTES {
        let times: Sample =
            (0..calls).map(|_| Ok(client.get(path)?.milliseconds())).collect::<Result<_>>()?;
        let what = format!("`GET {path}`");
        report.line(&what, &times, Unit::Milliseconds, Bar::None);
        report.line(
            &format!("{what}, 99th percentile"),
            &times.at(TAIL),
            Unit::Milliseconds,
            Bar::AtMost(most),
        );
    }
    bench.progress("searching for what no job has");
    search(bench, report, &home, &mut client)?;
    drop(client);
    dashboard.stop()
}

/// One job in each of many queues.
fn add_queues(home: &Home) -> Result<()> {
    let line = |number| format!("{}\n", json!({ "command": "true", "queue": format!("queue-{number}") }));
    tiny_jobs::enqueue_lines(home, &(0..QUEUES).map(line).collect::<String>())
}

/// A row for every minute of a day, every ten minutes of the week before and every hour of 90 days, in each queue: as many
/// as a queue has that was never idle. The key of a row is its resolution, its first minute and its queue.
fn add_history(home: &Home) -> Result<()> {
    let store = home.open()?;
    let mut worker = Worker::register(store.as_ref(), 1)?;
    for _ in 0..TURNS {
        worker.exchange()?;
    }
    store.sample_depth()?;
    drop(store);
    let database = Connection::open(home.database())?;
    let fullest = "select content from minutes order by length(content) desc limit 1";
    let row: Vec<u8> = database.query_row(fullest, [], |row| row.get(0)).context("no turn was counted")?;
    for (code, step, from, to) in [(0, 1, 1, 1_440), (1, 10, 1_440, 10_080), (2, 60, 10_080, 129_600)] {
        database.execute(
            "with recursive ages (age) as (select ?3 union all select age + ?2 from ages where age + ?2 < ?4)
             insert or ignore into minutes (id, content)
             select (?1 << 61) | (((now - age) / ?2 * ?2) << 31) | id, ?5
             from queues, ages, (select cast(strftime('%s') as integer) / 60 as now)",
            (code, step, from, to, &row),
        )?;
    }
    Ok(())
}

fn list(report: &mut Report, home: &Home, client: &mut Client<'_>, calls: usize) -> Result<()> {
    let store = home.open()?;
    let (filter, page) = (JobFilter::default(), Page { limit: ROWS, after: None });
    let path = format!("/api/v1/jobs?limit={ROWS}");
    let (mut inside, mut outside) = (Sample::default(), Sample::default());
    for _ in 0..calls {
        let began = Instant::now();
        store.list(&filter, &page)?;
        inside.push(began.elapsed().as_secs_f64() * 1000.0);
        outside.push(client.get(&path)?.milliseconds());
    }
    let what = format!("`GET {path}`");
    report.line("`store.list`, as many", &inside, Unit::Milliseconds, Bar::None);
    report.line(&what, &outside, Unit::Milliseconds, Bar::AtMost(MAX_LIST_MILLISECONDS));
    let tail = Bar::AtMost(MAX_LIST_TAIL_MILLISECONDS);
    report.line(&format!("{what}, 99th percentile"), &outside.at(TAIL), Unit::Milliseconds, tail);
    let ratio = Sample::of(outside.median() / inside.median());
    report.line(
        &format!("{what}, relative to `store.list`"),
        &ratio,
        Unit::Ratio,
        Bar::AtMost(MAX_LIST_RATIO),
    );
    Ok(())
}

fn search(bench: &Bench, report: &mut Report, home: &Home, client: &mut Client<'_>) -> Result<()> {
    let command = home.queuectl(&["list", "--command-like", ABSENT])?;
    let (mut parts, mut whole, mut ratios) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..if bench.quick { 5 } else { 3 } {
        let by_command = command.run()?.wall.as_secs_f64();
        let began = Instant::now();
        let mut next = Some(format!("/api/v1/jobs?like={ABSENT}&limit={ROWS}"));
        while let Some(path) = next {
            let answer = client.get(&path)?;
            anyhow::ensure!(answer.body == b"[]", "a job matches");
            parts.push(answer.milliseconds());
            next = answer.next_page();
        }
        let by_api = began.elapsed().as_secs_f64();
        whole.push(by_api);
        ratios.push(by_api / by_command);
    }
    let most = Bar::AtMost(MAX_SEARCH_PART_MILLISECONDS);
    report.line("a search that finds nothing: an answer", &parts, Unit::Milliseconds, Bar::None);
    report.line("a search that finds nothing: the longest answer", &parts.at(1.0), Unit::Milliseconds, most);
    report.line("a search that finds nothing: all answers", &whole, Unit::Seconds, Bar::None);
    let most = Bar::AtMost(MAX_SEARCH_RATIO);
    report.line("a search that finds nothing, relative to the command `list`", &ratios, Unit::Ratio, most);
    Ok(())
}

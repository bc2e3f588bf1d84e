//! A drain while the dashboard shows the overview and follows the output of a job, compared with one without a dashboard.

use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::thread::JoinHandle;

use anyhow::Result;

use crate::Bench;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::browser::Browser;
use crate::rig::dashboard::Dashboard;
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs;
use crate::rig::usage::cpu;

/// The stream of a tab that shows the overview.
pub(super) const OVERVIEW: &str = "/live?page=%2F";
const SLOTS: u32 = 4;
const MIN_RATIO: f64 = 0.98;
const MAX_PERCENT: f64 = 2.0;

struct Watched {
    seconds: f64,
    /// The dashboard's share of one core.
    percent: f64,
}

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (3_000, 5) } else { (10_000, 9) };
    let (mut ratios, mut percents) = (Sample::default(), Sample::default());
    for round in 1..=rounds {
        bench.progress(&format!("drains with a dashboard and without, round {round} of {rounds}"));
        // Each comes first in every other round, so that a change in the machine's speed affects both.
        let is_first = round % 2 == 0;
        let before = if is_first { Some(watched(bench, jobs)?) } else { None };
        let plain = plain(bench, jobs)?;
        let watched = before.map_or_else(|| watched(bench, jobs), Ok)?;
        ratios.push(plain / watched.seconds);
        percents.push(watched.percent);
    }
    report.section(&format!(
        "{} jobs `true`, {SLOTS} slots, with the overview open and a log followed, compared with no dashboard",
        count(jobs)
    ));
    report.line("drain rate, relative to no dashboard", &ratios, Unit::Ratio, Bar::AtLeast(MIN_RATIO));
    report.line("dashboard: share of one core", &percents, Unit::Percent, Bar::AtMost(MAX_PERCENT));
    Ok(())
}

fn plain(bench: &Bench, jobs: u32) -> Result<f64> {
    let home = bench.workspace.home("dashboard-drain")?;
    tiny_jobs::enqueue(&home, "true", jobs)?;
    tiny_jobs::drain_by_slots(&home, SLOTS)?;
    Ok(tiny_jobs::drain_result(home.open()?.as_ref(), jobs)?.seconds)
}

fn watched(bench: &Bench, jobs: u32) -> Result<Watched> {
    let home = bench.workspace.home("dashboard-drain")?;
    tiny_jobs::enqueue(&home, "true", jobs)?;
    let dashboard = Dashboard::start(&home, &[])?;
    let streams = [OVERVIEW.to_owned(), format!("/api/v1/jobs/{jobs}/log/stream")];
    let tabs: Vec<_> =
        streams.iter().map(|path| Ok(read_on(dashboard.open_stream(path)?))).collect::<Result<_>>()?;
    let before = cpu(dashboard.pid())?;
    let wall = tiny_jobs::drain_by_slots(&home, SLOTS)?;
    let percent = cpu(dashboard.pid())?.saturating_sub(before).as_secs_f64() / wall * 100.0;
    dashboard.stop()?;
    for tab in tabs {
        tab.join().expect("the thread does not panic")?;
    }
    let seconds = tiny_jobs::drain_result(home.open()?.as_ref(), jobs)?.seconds;
    Ok(Watched { seconds, percent })
}

/// The same with both pages open in chromium, which needs far more of the machine than the dashboard does.
pub(super) fn in_browser(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (3_000, 5) } else { (10_000, 7) };
    let mut ratios = Sample::default();
    for round in 1..=rounds {
        bench.progress(&format!("drains with a browser and without, round {round} of {rounds}"));
        let is_first = round % 2 == 0;
        let before = if is_first { Some(shown(bench, jobs)?) } else { None };
        let plain = plain(bench, jobs)?;
        let shown = before.map_or_else(|| shown(bench, jobs), Ok)?;
        ratios.push(plain / shown);
    }
    report.section(&format!(
        "{} jobs `true`, {SLOTS} slots, with the overview and a followed log in chromium on the same machine",
        count(jobs)
    ));
    report.line("drain rate, relative to none", &ratios, Unit::Ratio, Bar::AtLeast(MIN_RATIO));
    Ok(())
}

fn shown(bench: &Bench, jobs: u32) -> Result<f64> {
    let home = bench.workspace.home("dashboard-drain")?;
    tiny_jobs::enqueue(&home, "true", jobs)?;
    let dashboard = Dashboard::start(&home, &[])?;
    let mut browser = Browser::start(&home)?;
    for path in ["/".to_owned(), format!("/jobs/{jobs}")] {
        let tab = browser.tab()?;
        browser.open(&tab, &path)?;
        browser.wait(&tab, "document.querySelector('#age.live')")?;
    }
    tiny_jobs::drain_by_slots(&home, SLOTS)?;
    drop(browser);
    dashboard.stop()?;
    Ok(tiny_jobs::drain_result(home.open()?.as_ref(), jobs)?.seconds)
}

/// Reads a stream until the dashboard ends it.
pub(super) fn read_on(mut stream: TcpStream) -> JoinHandle<Result<()>> {
    thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        stream.set_read_timeout(None)?;
        while stream.read(&mut piece)? > 0 {}
        Ok(())
    })
}

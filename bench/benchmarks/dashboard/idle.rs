//! What the dashboard uses while no client listens, and while one tab is open on an idle queue.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Pid;

use super::drain::{OVERVIEW, read_on};
use crate::Bench;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::dashboard::Dashboard;
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs;
use crate::rig::usage::{cpu, resident_megabytes};

const MAX_WAKE_UPS: f64 = 0.0;
const MAX_MEGABYTES: f64 = 14.0;
const MAX_TAB_PERCENT: f64 = 0.5;
const SPAN: Duration = Duration::from_secs(10);
/// Threads that had something to do end when they have had nothing for ten seconds.
const SETTLE_TIME: Duration = Duration::from_secs(12);
const JOBS: u32 = 100;

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let home = bench.workspace.home("dashboard-idle")?;
    tiny_jobs::enqueue(&home, "true", JOBS)?;
    let dashboard = Dashboard::start(&home, &[])?;
    dashboard.client()?.get("/api/v1/status")?;
    bench.progress("watching an idle dashboard");
    thread::sleep(SETTLE_TIME);
    let before = (wake_ups(dashboard.pid())?, cpu(dashboard.pid())?);
    thread::sleep(SPAN);
    let after = (wake_ups(dashboard.pid())?, cpu(dashboard.pid())?);
    let resident = Sample::of(resident_megabytes(dashboard.pid())?);
    let woken = Sample::of(f64::from(after.0 - before.0));
    let used = Sample::of(after.1.saturating_sub(before.1).as_secs_f64() * 1000.0);

    bench.progress("watching a dashboard with one tab");
    let tab = read_on(dashboard.open_stream(OVERVIEW)?);
    thread::sleep(Duration::from_secs(1));
    let (began, before) = (Instant::now(), cpu(dashboard.pid())?);
    thread::sleep(SPAN);
    let percent =
        cpu(dashboard.pid())?.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    dashboard.stop()?;
    tab.join().expect("the thread does not panic")?;

    report.section(&format!("An idle dashboard, for {} s", SPAN.as_secs()));
    report.line("no client: wake-ups", &woken, Unit::Count, Bar::AtMost(MAX_WAKE_UPS));
    report.line("no client: CPU time", &used, Unit::Milliseconds, Bar::None);
    report.line("no client: resident memory", &resident, Unit::Megabytes, Bar::AtMost(MAX_MEGABYTES));
    let percent = Sample::of(percent);
    report.line(
        "the overview is open: share of one core",
        &percent,
        Unit::Percent,
        Bar::AtMost(MAX_TAB_PERCENT),
    );
    Ok(())
}

/// How often the threads of a process have been given a processor.
fn wake_ups(pid: Pid) -> Result<u32> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        for label in ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"] {
            let line = status.lines().find_map(|line| line.strip_prefix(label));
            sum += line.context("the kernel counts no switches")?.trim().parse::<u32>()?;
        }
    }
    Ok(sum)
}

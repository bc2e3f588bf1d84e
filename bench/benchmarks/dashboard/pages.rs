//! The pages in chromium: how soon they show their numbers, how soon they show a change, and how much they load.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::{Pid, test_kill_process};
use serde_json::json;

use crate::Bench;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::browser::{Browser, Tab};
use crate::rig::dashboard::Dashboard;
use crate::rig::running::{RunningProcess, wait_for};
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs;
use crate::rig::workspace::Home;

const JOBS: u32 = 10_000;
const TAIL: f64 = 0.95;
const MAX_PAINT_MILLISECONDS: f64 = 150.0;
/// The same with a processor that is so many times slower.
const SLOWER: u32 = 6;
const MAX_SLOW_PAINT_MILLISECONDS: f64 = 800.0;
const MAX_FIRST_VISIT_KILOBYTES: f64 = 120.0;
const MAX_REQUESTS: f64 = 6.0;
const MAX_LINE_MILLISECONDS: f64 = 300.0;
const MAX_CANCEL_MILLISECONDS: f64 = 250.0;
const MAX_STATE_MILLISECONDS: f64 = 1_000.0;
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// When the browser first painted the content of the page, with all its numbers: the server wrote them into it.
const FIRST_PAINT: &str = "new Promise((resolve) => new PerformanceObserver((list) => list.getEntriesByName('first-contentful-paint').forEach((entry) => resolve(entry.startTime))).observe({ type: 'paint', buffered: true }))";
/// Bytes of bodies as they came, and requests, without the stream.
const LOADED: &str = "(() => { const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((one) => !one.name.includes('/live?')); return [all.reduce((sum, one) => sum + one.encodedBodySize, 0), all.length]; })()";

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let home = bench.workspace.home("dashboard-pages")?;
    tiny_jobs::enqueue(&home, "true", JOBS)?;
    let dashboard = Dashboard::start(&home, &[])?;
    let mut browser = Browser::start(&home)?;
    report.section("The pages in chromium, on the same machine");
    paint(bench, report, &mut browser)?;
    changes(bench, report, &mut browser, &home)?;
    drop(browser);
    dashboard.stop()
}

fn paint(bench: &Bench, report: &mut Report, browser: &mut Browser) -> Result<()> {
    let rounds = if bench.quick { 10 } else { 40 };
    bench.progress("opening pages");
    let tab = browser.tab()?;
    browser.call(&tab, "Network.enable", &json!({}))?;
    browser.call(&tab, "Network.clearBrowserCache", &json!({}))?;
    browser.open(&tab, "/")?;
    let loaded = browser.eval(&tab, LOADED)?;
    let (bytes, requests) = (loaded[0].as_f64().unwrap_or(f64::NAN), loaded[1].as_f64().unwrap_or(f64::NAN));
    for (page, path) in [("Overview", "/"), ("Jobs", "/jobs")] {
        let sample = paints(browser, &tab, path, rounds)?;
        let most = Bar::AtMost(MAX_PAINT_MILLISECONDS);
        report.line(
            &format!("{page}: first paint, with its numbers"),
            &sample,
            Unit::Milliseconds,
            Bar::None,
        );
        report.line(
            &format!("{page}: first paint, 95th percentile"),
            &sample.at(TAIL),
            Unit::Milliseconds,
            most,
        );
    }
    browser.call(&tab, "Emulation.setCPUThrottlingRate", &json!({ "rate": SLOWER }))?;
    let slow = paints(browser, &tab, "/", rounds / 2)?.at(TAIL);
    let most = Bar::AtMost(MAX_SLOW_PAINT_MILLISECONDS);
    report.line(&format!("Overview: the same, processor {SLOWER} × slower"), &slow, Unit::Milliseconds, most);
    browser.close(&tab)?;
    let kilobytes = Sample::of(bytes / 1024.0);
    report.line(
        "first visit: KiB that are loaded",
        &kilobytes,
        Unit::Count,
        Bar::AtMost(MAX_FIRST_VISIT_KILOBYTES),
    );
    report.line("first visit: requests", &Sample::of(requests), Unit::Count, Bar::AtMost(MAX_REQUESTS));
    Ok(())
}

fn paints(browser: &mut Browser, tab: &Tab, path: &str, rounds: u32) -> Result<Sample> {
    let mut sample = Sample::default();
    for _ in 0..rounds {
        browser.open(tab, path)?;
        sample.push(browser.number(tab, FIRST_PAINT)?);
    }
    Ok(sample)
}

/// From a printed line to the screen, and from a click on cancel to its effect.
fn changes(bench: &Bench, report: &mut Report, browser: &mut Browser, home: &Home) -> Result<()> {
    let rounds = if bench.quick { 5 } else { 20 };
    bench.progress("following a log, and cancelling jobs");
    let fifo = home.path().join("lines");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status()?;
    anyhow::ensure!(made.success(), "mkfifo failed");
    let follow = format!("exec cat {}", fifo.display());
    home.queuectl(&["enqueue", "-q", "--id", "tail", "--queue", "shown", "--command", &follow])?.run()?;
    for number in 0..rounds {
        let id = format!("sleep-{number}");
        let pid = home.path().join(&id);
        let command = format!("echo $$ > {}; exec sleep 600", pid.display());
        home.queuectl(&["enqueue", "-q", "--id", &id, "--queue", "shown", "--command", &command])?.run()?;
    }
    let slots = (rounds + 1).to_string();
    let words = ["worker", "run", "-q", "--queue", "shown", "--concurrency", &slots];
    let worker = RunningProcess::start(&home.queuectl(&words)?)?;
    let lines = lines(browser, &fifo, rounds)?;
    let (shown, gone) = cancels(browser, home, rounds)?;
    home.queuectl(&["worker", "stop", "-q", "--now"])?.run().ok();
    drop(worker);
    let line = |report: &mut Report, what: &str, sample: &Sample, most: f64| {
        report.line(what, sample, Unit::Milliseconds, Bar::None);
        let tail = format!("{what}, 95th percentile");
        report.line(&tail, &sample.at(TAIL), Unit::Milliseconds, Bar::AtMost(most));
    };
    line(report, "from a printed line to the screen", &lines, MAX_LINE_MILLISECONDS);
    line(report, "from the click on cancel until the process is gone", &gone, MAX_CANCEL_MILLISECONDS);
    line(report, "from the click on cancel until the page shows it", &shown, MAX_STATE_MILLISECONDS);
    Ok(())
}

fn lines(browser: &mut Browser, fifo: &std::path::Path, rounds: u32) -> Result<Sample> {
    use std::io::Write;
    let tab = browser.tab()?;
    browser.open(&tab, "/jobs/tail")?;
    browser.wait(&tab, "document.querySelector('[data-log=follow][aria-pressed=true]')")?;
    let mut out = std::fs::OpenOptions::new().write(true).open(fifo)?;
    let mut sample = Sample::default();
    for number in 0..rounds {
        let text = format!("line {number} of many");
        let seen = format!(
            "new Promise((resolve) => {{ const look = () => document.querySelector('#log .log').textContent.includes('{text}') ? resolve(true) : requestAnimationFrame(look); look(); }})"
        );
        let pending = browser.begin(&tab, &seen)?;
        std::thread::sleep(Duration::from_millis(150));
        let began = Instant::now();
        writeln!(out, "{text}")?;
        browser.finish(pending)?;
        sample.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    browser.close(&tab)?;
    Ok(sample)
}

fn cancels(browser: &mut Browser, home: &Home, rounds: u32) -> Result<(Sample, Sample)> {
    let (mut shown, mut gone) = (Sample::default(), Sample::default());
    let tab = browser.tab()?;
    for number in 0..rounds {
        let id = format!("sleep-{number}");
        let file = home.path().join(&id);
        let pid = wait_for("a job to run", POLL_INTERVAL, || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            Ok(text.trim().parse().ok().and_then(Pid::from_raw))
        })?;
        browser.open(&tab, &format!("/jobs/{id}"))?;
        browser.wait(&tab, "document.querySelector('#age.live')")?;
        browser.eval(&tab, "[...document.querySelectorAll('#job button')].find((one) => one.textContent === 'cancel').click()")?;
        browser.wait(&tab, "document.querySelector('dialog[open] button[value=yes]')")?;
        let click = "(() => { const began = performance.now(); document.querySelector('dialog button[value=yes]').click(); return new Promise((resolve) => { const look = () => document.querySelector('#job h1').textContent.includes('cancelled') ? resolve(performance.now() - began) : requestAnimationFrame(look); look(); }); })()";
        let began = Instant::now();
        let pending = browser.begin(&tab, click)?;
        wait_for("the process to be gone", POLL_INTERVAL, || Ok(test_kill_process(pid).err()))?;
        gone.push(began.elapsed().as_secs_f64() * 1000.0);
        shown.push(browser.finish(pending)?.as_f64().unwrap_or(f64::NAN));
    }
    browser.close(&tab)?;
    Ok((shown, gone))
}

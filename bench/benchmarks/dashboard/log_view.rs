//! The view of an output in chromium: scrolling through a million lines, and following for long.

use anyhow::Result;
use serde_json::json;

use crate::Bench;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::browser::{Browser, Tab};
use crate::rig::dashboard::Dashboard;
use crate::rig::running::RunningProcess;
use crate::rig::sample::Sample;
use crate::rig::workspace::Home;

const MAX_ROWS: f64 = 200.0;
/// Frames of a tab that scrolls, relative to those of one that stands still.
const MIN_FRAMES: f64 = 0.95;
const MAX_HEAP_MEGABYTES: f64 = 80.0;
/// What the collector leaves differs a little from time to time.
const MAX_GROWTH: f64 = 1.05;
const BYTES_PER_MEGABYTE: f64 = 1024.0 * 1024.0;
/// A followed output has about 16 MiB, in so many portions.
const PORTIONS: u32 = 32;
const LINES_PER_PORTION: u32 = 8_192;

/// Scrolls by so many pixels before each frame; answers with frames per second, most rows, and lines that were passed.
const SCROLL: &str = "(async (pixels, frames) => {
    const list = document.querySelector('#log .log');
    const line = () => Number(document.querySelector('#log li[id]').id.slice(1));
    const from = line(), began = performance.now();
    let most = 0, blank = 0;
    for (let frame = 0; frame < frames; frame += 1) {
        await new Promise(requestAnimationFrame);
        list.scrollTop += pixels;
        const rows = list.children;
        most = Math.max(most, rows.length);
        const top = list.scrollTop, last = rows[rows.length - 1];
        if (rows[0].offsetTop > top + list.clientHeight || last.offsetTop + last.offsetHeight < top) blank += 1;
    }
    return [frames * 1000 / (performance.now() - began), most, Math.abs(line() - from), blank];
})";

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let home = bench.workspace.home("dashboard-log")?;
    home.queuectl(&["enqueue", "-q", "--id", "long", "--command", "seq 1000000"])?.run()?;
    home.queuectl(&["worker", "run", "-q", "--until-empty"])?.run()?;
    let dashboard = Dashboard::start(&home, &[])?;
    let mut browser = Browser::start(&home)?;
    report.section("The output of a job in chromium");
    scroll(bench, report, &mut browser)?;
    heap(bench, report, &mut browser, &home)?;
    drop(browser);
    dashboard.stop()
}

fn scroll(bench: &Bench, report: &mut Report, browser: &mut Browser) -> Result<()> {
    let rounds = if bench.quick { 3 } else { 9 };
    bench.progress("scrolling through a million lines");
    let tab = browser.tab()?;
    browser.open(&tab, "/jobs/long")?;
    browser.wait(&tab, "document.querySelector('#age.live') && document.querySelector('#log li')")?;
    let (mut frames, mut ratios, mut rows, mut blank) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default());
    for round in 0..rounds {
        // From anywhere, up and down, as fast as a wheel turns.
        let pixels = if round % 2 == 0 { 90 } else { -90 };
        browser.eval(
            &tab,
            "(() => { const list = document.querySelector('#log .log'); list.scrollTop = list.scrollHeight / 2 })()",
        )?;
        browser.wait(&tab, "Math.abs(document.querySelector('#log li[id]').id.slice(1) - 500000) < 10000")?;
        let still = browser.eval(&tab, &format!("{SCROLL}(0, 120)"))?;
        let moving = browser.eval(&tab, &format!("{SCROLL}({pixels}, 300)"))?;
        let value = |of: &serde_json::Value, at: usize| of[at].as_f64().unwrap_or(f64::NAN);
        anyhow::ensure!(value(&moving, 2) > 500.0, "the page did not scroll: {moving}");
        frames.push(value(&moving, 0));
        ratios.push(value(&moving, 0) / value(&still, 0));
        rows.push(value(&moving, 1));
        blank.push(value(&moving, 3));
    }
    browser.close(&tab)?;
    report.line("1,000,000 lines: frames per second while scrolling", &frames, Unit::Count, Bar::None);
    report.line(
        "the same, relative to a page that stands still",
        &ratios,
        Unit::Ratio,
        Bar::AtLeast(MIN_FRAMES),
    );
    report.line("most rows in the document", &rows.at(1.0), Unit::Count, Bar::AtMost(MAX_ROWS));
    report.line("frames of 300 without a line in view", &blank, Unit::Count, Bar::AtMost(0.0));
    Ok(())
}

/// The heap of a tab that follows a fixed amount of output.
fn heap(bench: &Bench, report: &mut Report, browser: &mut Browser, home: &Home) -> Result<()> {
    let portions = if bench.quick { PORTIONS / 4 } else { PORTIONS };
    bench.progress("following an output");
    let go = home.path().join("go");
    // 64 bytes a line, half a megabyte a portion; each portion waits for its file.
    let command = format!(
        "for n in $(seq {portions}); do while [ ! -e {}$n ]; do sleep 0.01; done; yes \"$n $(printf %050d 0) followed\" | head -n {LINES_PER_PORTION}; echo end of $n; done",
        go.display()
    );
    home.queuectl(&["enqueue", "-q", "--id", "flood", "--command", &command])?.run()?;
    let worker = RunningProcess::start(&home.queuectl(&["worker", "run", "-q", "--until-empty"])?)?;
    let tab = browser.tab()?;
    browser.open(&tab, "/jobs/flood")?;
    browser.wait(&tab, "document.querySelector('[data-log=follow][aria-pressed=true]')")?;
    browser.call(&tab, "HeapProfiler.enable", &json!({}))?;
    let (mut first, mut last, mut all) = (Sample::default(), Sample::default(), Sample::default());
    for portion in 1..=portions {
        std::fs::write(format!("{}{portion}", go.display()), "")?;
        browser.wait(
            &tab,
            &format!("document.querySelector('#log .log').textContent.includes('end of {portion}')"),
        )?;
        let used = used(browser, &tab)?;
        all.push(used);
        if portion <= portions / 4 {
            first.push(used);
        } else if portion > portions - portions / 4 {
            last.push(used);
        }
    }
    browser.close(&tab)?;
    worker.wait()?;
    let lines = portions * LINES_PER_PORTION;
    report.line(
        &format!("heap of a tab that follows {} MiB", lines / (1 << 14)),
        &all,
        Unit::Megabytes,
        Bar::AtMost(MAX_HEAP_MEGABYTES),
    );
    let growth = Sample::of(last.median() / first.median());
    report.line("last quarter, relative to the first", &growth, Unit::Ratio, Bar::AtMost(MAX_GROWTH));
    Ok(())
}

/// What is left after a collection, in megabytes.
fn used(browser: &mut Browser, tab: &Tab) -> Result<f64> {
    browser.call(tab, "HeapProfiler.collectGarbage", &json!({}))?;
    let usage = browser.call(tab, "Runtime.getHeapUsage", &json!({}))?;
    Ok(usage["usedSize"].as_f64().unwrap_or(f64::NAN) / BYTES_PER_MEGABYTE)
}

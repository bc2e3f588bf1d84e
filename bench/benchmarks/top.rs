//! `queuectl top`: how soon it shows the queue, what a frame of a large screen takes, and what it uses while it is open.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Bench;
use crate::output::figure;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::filled::{Shape, filled_home};
use crate::rig::sample::Sample;
use crate::rig::terminal::Terminal;
use crate::rig::tiny_jobs;
use crate::rig::usage::{cpu, resident_megabytes};
use crate::rig::workspace::Home;

const MAX_START_MILLISECONDS: f64 = 60.0;
const MAX_FRAME_MILLISECONDS: f64 = 8.0;
const MAX_PERCENT: f64 = 1.0;
const JOBS: u32 = 10_000;
const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 60);
/// The header shows it as soon as the queue was read.
const LIVE: &str = "live";
/// The last word of a whole frame, in its footer.
const LAST_WORD: &str = "quit";
/// The tab that lists jobs, with the job under the cursor and its output.
const JOBS_TAB: &str = "2";

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let home = filled_home(bench, "top", JOBS, Shape::Plain)?;
    let rounds = if bench.quick { 10 } else { 50 };
    bench.progress("starting top");
    let starts = (0..rounds).map(|_| start(&home)).collect::<Result<Sample>>()?;
    bench.progress("drawing frames of 200 columns and 60 rows");
    let (frames, frame_cpu) = draw(&home, rounds * 4)?;
    bench.progress("watching top while a job is added each second");
    let span = Duration::from_secs(if bench.quick { 5 } else { 20 });
    let (percent, memory) = watch(&home, span)?;

    report.section(&format!("`queuectl top` on a queue of {} jobs", figure::count(JOBS)));
    let unit = Unit::Milliseconds;
    report.line(
        "from its start to the queue on the screen",
        &starts,
        unit,
        Bar::AtMost(MAX_START_MILLISECONDS),
    );
    report.line("a whole frame of 200 × 60", &frames, unit, Bar::AtMost(MAX_FRAME_MILLISECONDS));
    report.line("a whole frame of 200 × 60: CPU time", &frame_cpu, unit, Bar::AtMost(MAX_FRAME_MILLISECONDS));
    let share = "share of one core, with a change each second";
    report.line(share, &percent, Unit::Percent, Bar::AtMost(MAX_PERCENT));
    report.line("resident memory", &memory, Unit::Megabytes, Bar::None);
    Ok(())
}

fn top(home: &Home, size: (u16, u16)) -> Result<Terminal> {
    let arguments = [OsStr::new("--home"), home.path().as_os_str(), OsStr::new("top")];
    Terminal::start(home.program(), &arguments, size)
}

fn quit(mut terminal: Terminal) -> Result<()> {
    terminal.press("q")?;
    terminal.end()
}

/// The milliseconds until the queue is on the screen.
fn start(home: &Home) -> Result<f64> {
    let began = Instant::now();
    let mut terminal = top(home, SMALL)?;
    terminal.wait(LIVE)?;
    let took = milliseconds(began.elapsed());
    quit(terminal)?;
    Ok(took)
}

/// The milliseconds of each frame from the change of size to its last word, and the CPU time of one.
fn draw(home: &Home, frames: u32) -> Result<(Sample, Sample)> {
    let mut terminal = top(home, LARGE)?;
    terminal.wait(LIVE)?;
    terminal.press(JOBS_TAB)?;
    terminal.watch(Duration::from_secs(1))?;
    let (before, mut times) = (cpu(terminal.pid())?, Sample::default());
    for number in 0..frames {
        let began = Instant::now();
        let rows = LARGE.1 - u16::from(number % 2 == 0);
        terminal.resize(LARGE.0, rows)?;
        terminal.wait(LAST_WORD)?;
        times.push(milliseconds(began.elapsed()));
    }
    let used = cpu(terminal.pid())?.saturating_sub(before);
    quit(terminal)?;
    Ok((times, Sample::of(milliseconds(used) / f64::from(frames))))
}

/// The share of a core, and the resident memory.
fn watch(home: &Home, span: Duration) -> Result<(Sample, Sample)> {
    let mut terminal = top(home, LARGE)?;
    terminal.wait(LIVE)?;
    terminal.press(JOBS_TAB)?;
    terminal.watch(Duration::from_secs(1))?;
    let (began, before) = (Instant::now(), cpu(terminal.pid())?);
    while began.elapsed() < span {
        tiny_jobs::enqueue(home, "true", 1)?;
        terminal.watch(Duration::from_secs(1))?;
    }
    let used = cpu(terminal.pid())?.saturating_sub(before);
    let percent = Sample::of(100.0 * used.as_secs_f64() / began.elapsed().as_secs_f64());
    let memory = Sample::of(resident_megabytes(terminal.pid())?);
    quit(terminal)?;
    Ok((percent, memory))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

//! What a worker with nothing to do uses.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Pid;

use crate::pool::Pool;
use crate::report::{Bar, Report, Unit};
use crate::sample::Sample;
use crate::{Bench, tiny_jobs};

const MOST_PERCENT: f64 = 0.1;
const MOST_MEGABYTES: f64 = 8.0;
const SLOTS: u32 = 4;
const WARM_UP_JOBS: u32 = 40;
/// For what the last job left to do.
const SETTLE: Duration = Duration::from_secs(1);

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let span = Duration::from_secs(if bench.quick { 3 } else { 10 });
    let pool = Pool::start(bench.workspace.home("idle")?, 1, SLOTS)?;
    tiny_jobs::enqueue(&pool.home, WARM_UP_JOBS)?;
    pool.wait_for_completed(WARM_UP_JOBS)?;
    thread::sleep(SETTLE);

    let (worker, guardian) = (pool.worker()?, pool.guardian());
    let (began, before) = (Instant::now(), (cpu(worker)?, cpu(guardian)?));
    thread::sleep(span);
    let (passed, after) = (began.elapsed(), (cpu(worker)?, cpu(guardian)?));
    let percent = |before: Duration, after: Duration| {
        Sample::of(100.0 * after.saturating_sub(before).as_secs_f64() / passed.as_secs_f64())
    };
    let (worker_cpu, guardian_cpu) = (percent(before.0, after.0), percent(before.1, after.1));
    let (worker_rss, guardian_rss) = (resident(worker)?, resident(guardian)?);
    pool.stop()?;

    Report::section(&format!("A worker with {SLOTS} slots, idle for {} s", span.as_secs()));
    report.line("worker: part of a core", &worker_cpu, Unit::Percent, Bar::AtMost(MOST_PERCENT));
    report.line("guardian: part of a core", &guardian_cpu, Unit::Percent, Bar::None);
    report.line("worker: resident", &worker_rss, Unit::Megabytes, Bar::AtMost(MOST_MEGABYTES));
    report.line("guardian: resident", &guardian_rss, Unit::Megabytes, Bar::None);
    Ok(())
}

/// The time that all threads of a process have run, by its own clock: the ticks of `/proc/PID/stat` are too coarse.
#[expect(unsafe_code, reason = "there is no safe wrapper for clock_getcpuclockid(3)")]
fn cpu(pid: Pid) -> Result<Duration> {
    let mut clock = 0;
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for writing.
    let error = unsafe { libc::clock_getcpuclockid(pid.as_raw_pid(), &raw mut clock) };
    ensure!(error == 0, "process {pid} has no clock: {}", io::Error::from_raw_os_error(error));
    // SAFETY: the pointer is valid for writing; what it points to is read only after success.
    let time = unsafe {
        ensure!(libc::clock_gettime(clock, time.as_mut_ptr()) == 0, io::Error::last_os_error());
        time.assume_init()
    };
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

fn resident(pid: Pid) -> Result<Sample> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a process has memory")?;
    let kilobytes: u32 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(Sample::of(f64::from(kilobytes) / 1024.0))
}

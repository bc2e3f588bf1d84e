//! How soon a job runs again after its worker was killed during an attempt.
//!
//! Every kill is the first one of a new pool, because the supervisor replaces a worker that crashes repeatedly ever
//! more slowly.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use rustix::process::{Signal, kill_process};

use crate::Bench;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::pool::Pool;
use crate::rig::running::wait_for;
use crate::rig::sample::Sample;

const MAX_MILLISECONDS: f64 = 1000.0;
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const JOB: &str = "interrupted";
/// How long the command runs before the benchmark kills its worker.
const RUN_MILLISECONDS: std::ops::Range<u64> = 50..150;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rounds = if bench.quick { 3 } else { 10 };
    let (mut pending_again, mut runs_again) = (Sample::default(), Sample::default());
    for round in 1..=rounds {
        bench.progress(&format!("kill -9 of a worker, round {round} of {rounds}"));
        let pool = Pool::start(bench.workspace.home("recovery")?, 1, 1)?;
        let (reaped, restarted) = kill_during_attempt(&pool).context("failed to measure a recovery")?;
        pool.stop()?;
        pending_again.push(reaped.as_secs_f64() * 1000.0);
        runs_again.push(restarted.as_secs_f64() * 1000.0);
    }
    report.section(&format!("kill -9 of a worker during a job, {rounds} times"));
    let unit = Unit::Milliseconds;
    report.line("until the job is pending again", &pending_again, unit, Bar::None);
    report.line("until the job is pending again, maximum", &pending_again.at(1.0), unit, Bar::None);
    report.line("until a new worker claims it", &runs_again, unit, Bar::None);
    let worst = runs_again.at(1.0);
    report.line("until a new worker claims it, maximum", &worst, unit, Bar::AtMost(MAX_MILLISECONDS));
    Ok(())
}

/// The times from the kill until the job is pending, and until it is processing again.
fn kill_during_attempt(pool: &Pool) -> Result<(Duration, Duration)> {
    let id: JobId = JOB.parse()?;
    pool.home.queuectl(&["enqueue", "-q", "--id", JOB, "--", "sleep", "60"])?.run()?;
    wait_until(pool, &id, |job| job.life.state.name() == StateName::Processing)?;
    thread::sleep(Duration::from_millis(fastrand::u64(RUN_MILLISECONDS)));

    let worker = pool.worker()?;
    let killed = Instant::now();
    kill_process(worker, Signal::KILL)?;
    wait_until(pool, &id, |job| job.life.state.name() == StateName::Pending || job.life.attempts > 1)?;
    let reaped = killed.elapsed();
    wait_until(pool, &id, |job| job.life.attempts > 1)?;
    Ok((reaped, killed.elapsed()))
}

fn wait_until(pool: &Pool, id: &JobId, holds: impl Fn(&Job) -> bool) -> Result<()> {
    wait_for("a job to be recovered", POLL_INTERVAL, || {
        let job = pool.store.find(id)?.context("the job does not exist")?;
        Ok(holds(&job).then_some(()))
    })
}

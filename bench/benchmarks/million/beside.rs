//! Processes that use a queue while a worker drains it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::rig::sample::Sample;
use crate::rig::workspace::Home;

const ENQUEUE: &str = "enqueue";
/// The command line of each process.
const VERBS: [(&str, &[&str]); 3] =
    [(ENQUEUE, &["enqueue", "-q", "--", "true"]), ("list", &["list"]), ("status", &["status"])];
const CALL_INTERVAL: Duration = Duration::from_millis(250);

/// The calls of one verb: start in seconds since the beginning, and duration in milliseconds.
pub(super) struct Calls {
    pub(super) verb: &'static str,
    calls: Vec<(f64, f64)>,
}

/// Runs `act` while other processes call every verb repeatedly, and returns the latency of the calls.
pub(super) fn with_concurrent_calls<T>(
    home: &Home,
    act: impl FnOnce() -> Result<T>,
) -> Result<(T, Vec<Calls>)> {
    let (began, is_over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        let others = VERBS.map(|(verb, arguments)| {
            let is_over = &is_over;
            scope.spawn(move || call(home, verb, arguments, began, is_over))
        });
        let done = act();
        is_over.store(true, Ordering::Relaxed);
        let calls: Result<Vec<Calls>> =
            others.into_iter().map(|other| other.join().expect("the thread does not panic")).collect();
        Ok((done?, calls?))
    })
}

fn call(
    home: &Home,
    verb: &'static str,
    arguments: &[&str],
    began: Instant,
    is_over: &AtomicBool,
) -> Result<Calls> {
    let program = home.queuectl(arguments)?;
    let mut calls = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let called = began.elapsed().as_secs_f64();
        let run = program.run().with_context(|| format!("failed to call {verb}"))?;
        calls.push((called, run.wall.as_secs_f64() * 1000.0));
        thread::sleep(CALL_INTERVAL.saturating_sub(run.wall));
    }
    Ok(Calls { verb, calls })
}

/// The number of jobs that these calls enqueued.
pub(super) fn enqueued(calls: &[Calls]) -> Result<u32> {
    let added: usize =
        calls.iter().filter(|calls| calls.verb == ENQUEUE).map(|calls| calls.calls.len()).sum();
    Ok(u32::try_from(added)?)
}

impl Calls {
    pub(super) fn times(&self) -> Sample {
        self.calls.iter().map(|(_, milliseconds)| *milliseconds).collect()
    }

    /// The highest latency in each of `parts` equal parts of the time.
    pub(super) fn worst_over_time(&self, parts: u32) -> Vec<(f64, f64)> {
        let last = self.calls.last().map_or(0.0, |(called, _)| *called);
        let width = last / f64::from(parts);
        let part = |number: u32| {
            let (begin, end) = (width * f64::from(number), width * f64::from(number + 1));
            let within = self.calls.iter().filter(|(called, _)| (begin..end).contains(called));
            within.map(|(_, waited)| *waited).reduce(f64::max).map(|worst| (begin, worst))
        };
        (0..parts).filter_map(part).collect()
    }
}

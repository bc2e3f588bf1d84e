//! Very many streams that all learn of two events a second.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use store::Store;

use crate::Bench;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::dashboard::Dashboard;
use crate::rig::sample::Sample;
use crate::rig::usage::{cpu, resident_megabytes};

const STREAMS: u32 = 1_000;
const MAX_MEGABYTES: f64 = 40.0;
const MAX_PERCENT: f64 = 5.0;
const MAX_DELAY_MILLISECONDS: f64 = 500.0;
const TAIL: f64 = 0.99;
const EVENT_INTERVAL: Duration = Duration::from_millis(500);
/// An event that has not arrived by then counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);
const FIRST_MESSAGE: &[u8] = b"event: event\n";
/// The end of what was read before, in which an event may begin.
const KEPT_BYTES: usize = 64;

/// A client that reads a stream without blocking.
struct Listener {
    stream: TcpStream,
    kept: Vec<u8>,
    is_open: bool,
}

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let home = bench.workspace.home("dashboard-streams")?;
    let store = home.open()?;
    let dashboard = Dashboard::start(&home, &["--max-streams", &STREAMS.to_string()])?;
    bench.progress(&format!("opening {} streams", count(STREAMS)));
    let mut listeners: Vec<Listener> =
        (0..STREAMS).map(|_| Listener::new(&dashboard)).collect::<Result<_>>()?;
    let events = if bench.quick { 10 } else { 60 };
    bench.progress(&format!("waiting until {} streams have begun", count(STREAMS)));
    listeners.iter_mut().try_for_each(Listener::wait_for_state)?;
    deliver(store.as_ref(), &mut listeners, "ready-", 0)?;
    let (began, before) = (Instant::now(), cpu(dashboard.pid())?);
    let mut delays = Sample::default();
    for number in 0..events {
        let sent = Instant::now();
        delays.append(deliver(store.as_ref(), &mut listeners, "tick-", number)?);
        thread::sleep(EVENT_INTERVAL.saturating_sub(sent.elapsed()));
    }
    let percent =
        cpu(dashboard.pid())?.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    let resident = Sample::of(resident_megabytes(dashboard.pid())?);
    let dropped: u32 = listeners.iter().map(|listener| u32::from(!listener.is_open)).sum();
    drop(listeners);
    dashboard.stop()?;

    report.section(&format!("{} streams, two events a second", count(STREAMS)));
    report.line("resident memory", &resident, Unit::Megabytes, Bar::AtMost(MAX_MEGABYTES));
    report.line("share of one core", &Sample::of(percent), Unit::Percent, Bar::AtMost(MAX_PERCENT));
    report.line("from the change to its event", &delays, Unit::Milliseconds, Bar::None);
    let most = Bar::AtMost(MAX_DELAY_MILLISECONDS);
    report.line("from the change to its event, 99th percentile", &delays.at(TAIL), Unit::Milliseconds, most);
    report.line("streams that were dropped", &Sample::of(f64::from(dropped)), Unit::Count, Bar::AtMost(0.0));
    Ok(())
}

impl Listener {
    fn new(dashboard: &Dashboard) -> Result<Self> {
        let stream = dashboard.open_stream("/api/v1/stream?topics=events")?;
        Ok(Self { stream, kept: Vec::new(), is_open: true })
    }

    /// Reads up to the first message, which has the whole state. From then on it reads without blocking.
    fn wait_for_state(&mut self) -> Result<()> {
        let mut piece = [0; 1 << 14];
        while !self.kept.windows(FIRST_MESSAGE.len()).any(|part| part == FIRST_MESSAGE) {
            let read = self.stream.read(&mut piece)?;
            ensure!(read > 0, "a stream ended: {}", String::from_utf8_lossy(&self.kept));
            self.kept.extend_from_slice(&piece[..read]);
        }
        self.kept.clear();
        Ok(self.stream.set_nonblocking(true)?)
    }

    /// Reads what has arrived, and says whether the mark is in it.
    fn finds(&mut self, mark: &[u8]) -> bool {
        let mut piece = [0; 1 << 14];
        loop {
            match self.stream.read(&mut piece) {
                Ok(read) if read > 0 => self.kept.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => {
                    self.is_open = false;
                    break;
                }
            }
        }
        let is_found = self.kept.windows(mark.len()).any(|part| part == mark);
        self.kept.drain(..self.kept.len().saturating_sub(KEPT_BYTES));
        is_found
    }
}

/// Changes the store, and returns the milliseconds until each stream had the event.
fn deliver(store: &dyn Store, listeners: &mut [Listener], name: &str, number: u32) -> Result<Sample> {
    let mark = format!("{name}{number}.");
    let began = Instant::now();
    store.note("bench", "bench", &mark)?;
    let mut left: Vec<&mut Listener> = listeners.iter_mut().filter(|listener| listener.is_open).collect();
    let mut delays = Sample::default();
    while !left.is_empty() {
        ensure!(began.elapsed() < PATIENCE, "{} streams never got an event", left.len());
        wait_for_any(&left)?;
        left.retain_mut(|listener| {
            let is_found = listener.finds(mark.as_bytes());
            if is_found {
                delays.push(began.elapsed().as_secs_f64() * 1000.0);
            }
            !is_found && listener.is_open
        });
    }
    Ok(delays)
}

fn wait_for_any(listeners: &[&mut Listener]) -> Result<()> {
    let mut waited: Vec<PollFd<'_>> =
        listeners.iter().map(|listener| PollFd::new(&listener.stream, PollFlags::IN)).collect();
    poll(&mut waited, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }))?;
    Ok(())
}

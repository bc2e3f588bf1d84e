//! A logical worker: it asks of the store what a worker process asks, at the same times, but runs no commands. It has two
//! sessions of its own, and a thread while it works.

use std::process;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use domain::settings::Settings;
use domain::values::name::WorkerId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use store::{Exchange, LeaseRef, NewWorker, Pace, ServedJobs, Settlement, Store, StoreError, Wake};
use sys::bell;
use sys::host::{HostKey, Origin};

use crate::rig::filled::success;
use crate::rig::sample::Sample;
use crate::rig::workspace::Home;

/// As in a worker process: how soon it reads its orders after it has settled a job, and how often it looks for work while
/// it is not notified.
const TICK_INTERVAL: Duration = Duration::from_millis(500);
const WORK_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failure.
const BACKOFF: Duration = Duration::from_millis(100);
const WORKERS_PER_MACHINE: u32 = 10;

pub(super) struct LogicalWorker {
    store: Box<dyn Store>,
    wake: Box<dyn Wake>,
    id: WorkerId,
    machine_id: String,
    /// It reads the beats of all workers for its machine.
    is_observer: bool,
    slots: usize,
    heartbeat_interval: Duration,
    /// The jobs that it has claimed, and when their commands would end.
    running: Vec<(LeaseRef, Instant)>,
    timers: Timers,
    hint: Option<u8>,
}

struct Timers {
    heartbeat: Instant,
    tick: Instant,
    poll: Instant,
}

/// How the workers work for a while.
pub(super) struct Phase {
    pub(super) until: Instant,
    /// How long each command would run.
    pub(super) span: Duration,
    /// When the last job was enqueued, until a worker has claimed it.
    pub(super) enqueued: Mutex<Option<Instant>>,
}

/// What a worker has done in a phase. Times are in milliseconds.
#[derive(Default)]
pub(super) struct Log {
    pub(super) turns: Sample,
    pub(super) heartbeats: Sample,
    pub(super) ticks: Sample,
    /// From the call of `enqueue` to the claim.
    pub(super) starts: Sample,
    /// By how much heartbeats came too late.
    pub(super) delays: Sample,
    pub(super) claimed: u32,
    pub(super) failures: u32,
    pub(super) last_failure: Option<String>,
}

impl Log {
    pub(super) fn append(&mut self, other: Self) {
        self.turns.append(other.turns);
        self.heartbeats.append(other.heartbeats);
        self.ticks.append(other.ticks);
        self.starts.append(other.starts);
        self.delays.append(other.delays);
        self.claimed += other.claimed;
        self.failures += other.failures;
        self.last_failure = other.last_failure.or(self.last_failure.take());
    }

    fn note_failure(&mut self, error: StoreError) {
        self.failures += 1;
        self.last_failure = Some(format!("{:#}", anyhow::Error::new(error)));
    }
}

impl LogicalWorker {
    pub(super) fn open(home: &Home, number: u32, slots: u32) -> Result<Self> {
        let store = home.open()?;
        let machine = number / WORKERS_PER_MACHINE;
        let machine_id = format!("machine-{machine}");
        let key = HostKey {
            machine_id: machine_id.clone(),
            boot_id: format!("boot-{machine}"),
            home_id: format!("home-{machine}"),
        };
        let worker = NewWorker {
            id: format!("logical-{number}").parse()?,
            host: machine_id.clone(),
            origin: Origin { key, ..Origin::default() },
            pid: process::id(),
            supervisor_pid: None,
            served: ServedJobs::All,
            concurrency: slots,
            folder: "/".into(),
            stop_seen: None,
        };
        let wake = store.listen(&worker)?;
        store.register(&worker)?;
        let heartbeat_interval = Settings::default_on_server().heartbeat_interval;
        // Workers that start at different times.
        let first = || Instant::now() + heartbeat_interval.mul_f64(fastrand::f64());
        Ok(Self {
            store,
            wake,
            id: worker.id,
            machine_id,
            is_observer: number.is_multiple_of(WORKERS_PER_MACHINE),
            slots: slots as usize,
            heartbeat_interval,
            running: Vec::new(),
            timers: Timers { heartbeat: first(), tick: first(), poll: Instant::now() },
            hint: None,
        })
    }

    /// Works until the phase is over.
    pub(super) fn work(&mut self, phase: &Phase) -> Log {
        let mut log = Log::default();
        // No worker is blamed for the time between two phases.
        let first = Instant::now() + self.heartbeat_interval.mul_f64(fastrand::f64());
        self.timers.heartbeat = self.timers.heartbeat.max(first);
        while Instant::now() < phase.until {
            let result = self.heartbeat_if_due(&mut log).and_then(|()| self.tick_if_due(&mut log));
            if let Err(error) = result.and_then(|()| self.turn_if_due(phase, &mut log)) {
                log.note_failure(error);
                thread::sleep(BACKOFF);
            }
            self.sleep(phase.until);
        }
        log
    }

    fn heartbeat_if_due(&mut self, log: &mut Log) -> Result<(), StoreError> {
        let began = Instant::now();
        if self.timers.heartbeat > began {
            return Ok(());
        }
        log.delays.push(milliseconds(began - self.timers.heartbeat));
        let leases: Vec<LeaseRef> = self.running.iter().map(|(lease, _)| lease.clone()).collect();
        self.store.extend(&self.id, &leases)?;
        log.heartbeats.push(milliseconds(began.elapsed()));
        self.timers.heartbeat = began + self.heartbeat_interval;
        Ok(())
    }

    /// Reads its orders, and looks for dead workers.
    fn tick_if_due(&mut self, log: &mut Log) -> Result<(), StoreError> {
        let began = Instant::now();
        if self.timers.tick > began {
            return Ok(());
        }
        self.store.orders(&self.id)?;
        if self.is_observer {
            self.store.neighbours_and_beats(&self.machine_id)?;
        } else {
            self.store.neighbours(&self.machine_id)?;
        }
        log.ticks.push(milliseconds(began.elapsed()));
        self.timers.tick = began
            + match self.store.pace() {
                Pace::Polling => TICK_INTERVAL,
                Pace::Listening => self.heartbeat_interval,
            };
        Ok(())
    }

    fn turn_if_due(&mut self, phase: &Phase, log: &mut Log) -> Result<(), StoreError> {
        let began = Instant::now();
        let ended = self.running.iter().filter(|(_, end)| *end <= began);
        let settlements: Vec<Settlement> = ended.map(|(lease, _)| success(lease.clone())).collect();
        let want = self.slots - (self.running.len() - settlements.len());
        let is_woken = self.hint.is_some() || self.timers.poll <= began;
        if settlements.is_empty() && (want == 0 || !is_woken) {
            return Ok(());
        }
        let hint = self.hint.take();
        let request = Exchange { worker: &self.id, settlements: &settlements, want, want_limited: 0 };
        let exchanged = self.store.exchange(&request)?;
        log.turns.push(milliseconds(began.elapsed()));
        self.running.retain(|(_, end)| *end > began);
        let now = Instant::now();
        let claimed = exchanged.claimed.len();
        self.running.extend(exchanged.claimed.into_iter().map(|claim| (claim.lease, now + phase.span)));
        if claimed > 0 {
            log.claimed += u32::try_from(claimed).unwrap_or(u32::MAX);
            let enqueued = phase.enqueued.lock().unwrap_or_else(PoisonError::into_inner).take();
            log.starts.extend(enqueued.map(|at| milliseconds(now - at)));
        }
        if !settlements.is_empty() {
            self.timers.tick = self.timers.tick.min(now + TICK_INTERVAL);
        }
        if hint.is_some() && claimed == want {
            self.wake.pass_on(bell::MAX_HOPS);
        }
        let pause = match self.store.pace() {
            Pace::Polling => WORK_POLL_INTERVAL,
            Pace::Listening => self.heartbeat_interval,
        };
        let due = exchanged.next_due.map(|due| self.store.now().map(|now| due.since(now))).transpose()?;
        self.timers.poll = now + due.map_or(pause, |due| due.min(pause));
        Ok(())
    }

    fn sleep(&mut self, until: Instant) {
        let mut moments = vec![self.timers.heartbeat, self.timers.tick, until];
        moments.extend(self.running.iter().map(|(_, end)| *end));
        if self.running.len() < self.slots {
            moments.push(self.timers.poll);
        }
        let wait = moments.into_iter().min().unwrap_or(until).saturating_duration_since(Instant::now());
        if wait.is_zero() {
            return;
        }
        let mut descriptors = [
            PollFd::from_borrowed_fd(self.wake.orders(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.wake.work(), PollFlags::IN),
        ];
        let wait = Timespec::try_from(wait).ok();
        // An interrupted wait ends early, and the worker waits again.
        let _ = poll(&mut descriptors, wait.as_ref());
        if !descriptors[0].revents().is_empty() && self.wake.take_orders().has_orders {
            self.timers.tick = Instant::now();
        }
        self.hint = self.wake.take_work().or(self.hint);
    }
}

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

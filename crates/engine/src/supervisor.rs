//! The supervisor: starts workers, watches them, and cleans up after one that died, before it starts the next.
//!
//! It has one thread and does little, so that it has little to die of. Whatever a dead worker left behind becomes its
//! child, sessions of its own included; so when a worker has ended, every child that is not a living worker is killed.
//! Only then are the worker's jobs given back, and only then does another take its place. Where something cannot be
//! killed, another takes its place all the same, and the jobs are left to the reapers of the workers: see `strays`.
//!
//! Only the supervisor gets the terminal's signals; it tells its workers in signals of its own, so that one Ctrl-C counts
//! once however many processes heard it.

pub(crate) mod pool;
pub(crate) mod restarts;
pub(crate) mod watchdog;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, getpid, set_child_subreaper};

use super::attempt::slot_records;
use super::duties::reaper::{Obstacle, leave, shows_life, started};
use super::error::EngineError;
use super::journal::Journal;
use super::orphans::strays::{Strays, kill_all};
use super::supervisor::pool::{Pool, WorkerStart, start_worker};
use super::supervisor::restarts::{Crash, Restarts};
use super::supervisor::watchdog::Watchdog;
use super::worker::files;
use super::worker::files::Folder;
use super::worker::{Farewell, OpenStore};
use domain::values::name::{JobIdSequence, WorkerId};
use domain::values::timestamp::Timestamp;
use store::{Store, StoreError, Worker, settings};
use sys::clock::{Clock, SystemClock};
use sys::fs::liveness_lock::{LivenessLock, Role};
use sys::guards;
use sys::guards::Guard;
use sys::process;
use sys::process::spawn;
use sys::process::spawn::ChildProcess;
use sys::process::{Children, ProcessHandle};
use sys::signal::interrupts::{Interrupts, timespec};
use sys::{cgroup, failpoint, signal};

/// A worker that lived this long was well: its crash is the first again.
const WELL: Duration = Duration::from_secs(30);
/// How soon to try again where the store failed.
const STORE_PAUSE: Duration = Duration::from_millis(250);

/// Runs a pool until its workers have ended for good. Says whether it has `begun` as soon as that is known: when all
/// workers are up for the first time, or when it is given up; then those that are up still finish what they run.
pub fn run(pool: &Pool, open: OpenStore<'_>, begun: &mut dyn FnMut(bool)) -> Result<(), EngineError> {
    let children = Children::open().map_err(|_| EngineError::NoChildrenList)?;
    signal::keep_ended_children();
    signal::survive_closed_pipe();
    let signals = Interrupts::catch(&[Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT])
        .map_err(EngineError::system("failed to take over signals"))?;
    spawn::keep_descriptors_to_ourselves().map_err(EngineError::system("failed to mark descriptors"))?;
    set_child_subreaper(Some(getpid()))
        .map_err(|error| EngineError::system("failed to become a subreaper")(error.into()))?;
    // Where there is none, limits are kept in other ways.
    let _ = cgroup::prepare();
    Supervisor::new(pool, open, signals, children)?.guard(begun)
}

struct Supervisor<'a> {
    pool: &'a Pool,
    open: OpenStore<'a>,
    /// Opened when it is needed for the first time.
    store: Option<Box<dyn Store>>,
    signals: Interrupts,
    children: Children,
    journal: Journal,
    folder: Folder,
    seats: Vec<Seat>,
    ids: JobIdSequence,
    /// What the first worker learned about stops, and all who come later are told.
    stop_seen: Option<u64>,
    is_stopping: bool,
    was_up: bool,
    watchdog: Watchdog,
    strays: Strays,
    failure: Option<EngineError>,
}

/// The place of one worker.
enum Seat {
    /// To be filled at this moment.
    Free {
        at: Instant,
        restarts: Restarts,
    },
    Taken(Member),
    /// Its worker died, and what it left behind is not cleaned up yet.
    Dead {
        member: Member,
        at: Instant,
    },
    /// Not to be filled again.
    Closed,
}

struct Member {
    id: WorkerId,
    pid: Pid,
    handle: ProcessHandle,
    /// Where the worker says that it is up; gone when it has said so, or died.
    report: Option<OwnedFd>,
    is_up: bool,
    since: Instant,
    /// Crashes of those who had this seat before.
    restarts: Restarts,
    _liveness_lock: LivenessLock,
}

impl<'a> Supervisor<'a> {
    fn new(
        pool: &'a Pool,
        open: OpenStore<'a>,
        signals: Interrupts,
        children: Children,
    ) -> Result<Self, EngineError> {
        let now = Instant::now();
        let who = format!("supervisor-{}", std::process::id());
        Ok(Self {
            pool,
            open,
            store: None,
            signals,
            children,
            journal: Journal::open(&pool.home, &who, pool.echo),
            folder: Folder::create(&pool.home)?,
            seats: (0..pool.count).map(|_| Seat::Free { at: now, restarts: Restarts::default() }).collect(),
            ids: JobIdSequence::default(),
            stop_seen: None,
            is_stopping: false,
            was_up: false,
            watchdog: Watchdog::new(now),
            strays: Strays::default(),
            failure: None,
        })
    }

    fn guard(mut self, begun: &mut dyn FnMut(bool)) -> Result<(), EngineError> {
        loop {
            for at in 0..self.seats.len() {
                self.attend(at);
            }
            self.strays.reap_ended();
            self.kill_hung();
            self.journal.flush();
            if !self.was_up && self.failure.is_some() {
                begun(false);
            }
            if self.seats.iter().all(|seat| matches!(seat, Seat::Closed)) {
                return self.failure.map_or(Ok(()), Err);
            }
            self.wait();
            self.heed_signals();
            self.read_reports();
            if !self.was_up && self.all_are_up() {
                self.was_up = true;
                begun(true);
            }
        }
    }

    /// Does what is due about one seat.
    fn attend(&mut self, at: usize) {
        let now = Instant::now();
        let seat = std::mem::replace(&mut self.seats[at], Seat::Closed);
        self.seats[at] = match seat {
            Seat::Free { .. } if self.is_stopping || self.failure.is_some() => Seat::Closed,
            // There is nothing to work on, and nothing to give jobs back to.
            Seat::Free { .. } | Seat::Dead { .. } if self.folder.is_gone() => Seat::Closed,
            // The first one learns which stops are not meant for this pool; the others wait for that.
            Seat::Free { .. } if at > 0 && self.stop_seen.is_none() => seat,
            Seat::Free { at, restarts } if at <= now => self.fill(restarts),
            Seat::Taken(member) if member.handle.ends_within(Duration::ZERO).unwrap_or(false) => {
                self.take_leave(member)
            }
            Seat::Dead { member, at } if at <= now => self.bury(member),
            Seat::Free { .. } | Seat::Taken(_) | Seat::Dead { .. } | Seat::Closed => seat,
        };
    }

    fn fill(&mut self, restarts: Restarts) -> Seat {
        match self.start(restarts) {
            Ok(member) => Seat::Taken(member),
            Err(error) => {
                self.journal.trouble(&error);
                self.after_crash(restarts.after(Crash::Idle))
            }
        }
    }

    fn start(&mut self, restarts: Restarts) -> std::io::Result<Member> {
        let id = self.next_id();
        let liveness_lock = LivenessLock::hold(self.folder.path(), id.as_str(), Role::Supervisor)?;
        let start =
            WorkerStart { id: id.clone(), supervisor_pid: std::process::id(), stop_seen: self.stop_seen };
        let (ChildProcess { pid, handle }, report) = start_worker(self.pool, &start)?;
        failpoint::hit("supervisor.after_start");
        let since = Instant::now();
        Ok(Member {
            id,
            pid,
            handle,
            report: Some(report),
            is_up: false,
            since,
            restarts,
            _liveness_lock: liveness_lock,
        })
    }

    /// Names of workers sort by the time they were made, as ids of jobs do.
    fn next_id(&mut self) -> WorkerId {
        let now = Timestamp::from_millis(SystemClock.wall_millis());
        let id = self.ids.next(now, fastrand::u64(..));
        format!("w-{id}").parse().expect("letters, digits and a dash")
    }

    /// A worker has ended: well, or in a way that leaves something to clean up.
    fn take_leave(&mut self, member: Member) -> Seat {
        let Some(ended) = process::reap(member.pid).ok().flatten() else {
            // Only this process reaps its children, so there is something to reap.
            return Seat::Dead { member, at: Instant::now() };
        };
        if ended.status.success() {
            self.kill_orphans();
            files::remove(self.folder.path(), &member.id);
            return Seat::Closed;
        }
        if ended.status.code() == Some(Farewell::LEFT_BEHIND.into()) {
            // It has noted itself what it could not kill.
            self.kill_orphans();
            return Seat::Closed;
        }
        self.journal.worker_crashed(&member.id, ended.status);
        self.bury(member)
    }

    /// Kills what a dead worker left behind, gives its jobs back, and frees its seat; in this order.
    fn bury(&mut self, member: Member) -> Seat {
        self.kill_orphans();
        failpoint::hit("supervisor.before_reap");
        let traces = slot_records::read(self.folder.path(), member.id.as_str()).unwrap_or_default();
        let left = self.strays.left_by(member.pid, member.since, &traces);
        let buried = if left.is_empty() {
            self.give_back(&member.id)
        } else {
            self.leave(&member.id, &Obstacle::of(&left, &traces))
        };
        if let Err(error) = buried {
            self.journal.trouble(&error);
            self.store = None;
            return Seat::Dead { member, at: Instant::now() + STORE_PAUSE };
        }
        failpoint::hit("supervisor.after_reap");
        let restarts = self.restarts_after(&member);
        if let Ok(groups) = cgroup::DelegatedGroup::find() {
            // By its group also such a process is killed as may not be signalled.
            groups.remove_leftovers(&format!("{}-", member.id));
        }
        if left.is_empty() {
            files::remove(self.folder.path(), &member.id);
        }
        self.after_crash(restarts)
    }

    /// Notes what could not be killed, and gives back the other jobs. When the supervisor gives up its lock on the dead worker,
    /// the rest is left to the reapers, who wait until nothing of it lives.
    fn leave(&mut self, worker: &WorkerId, obstacle: &Obstacle) -> Result<(), StoreError> {
        self.store()?;
        if let Some(store) = &self.store {
            leave(store.as_ref(), self.folder.path(), worker, &obstacle.unkillable, &self.journal)?;
            self.journal.cannot_recover(worker, &obstacle.why);
        }
        Ok(())
    }

    fn restarts_after(&self, member: &Member) -> Restarts {
        let has_worked = slot_records::were_used(self.folder.path(), member.id.as_str());
        let was_well = member.since.elapsed() >= WELL;
        let before = if was_well { Restarts::default() } else { member.restarts };
        before.after(if has_worked { Crash::AfterWork } else { Crash::Idle })
    }

    fn give_back(&mut self, worker: &WorkerId) -> Result<(), StoreError> {
        let started = started(self.folder.path(), worker);
        match self.store()?.reap(worker, started.as_deref()) {
            Ok(leases) => self.journal.reaped(worker, "died", &leases),
            // It died before it could register, so it holds nothing.
            Err(StoreError::NoSuchWorker(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A pool that was up is not given up while any of its workers is: that one runs what can be run.
    fn after_crash(&mut self, restarts: Restarts) -> Seat {
        let is_any_up = self.was_up && self.members().any(|member| member.is_up);
        if let Some(crashes) = restarts.too_many(self.was_up).filter(|_| !is_any_up) {
            self.give_up(if self.was_up {
                EngineError::GaveUp { crashes }
            } else {
                EngineError::CannotStart { said: String::new() }
            });
            return Seat::Closed;
        }
        Seat::Free { at: Instant::now() + restarts.pause(), restarts }
    }

    /// The other workers may finish what they run.
    fn give_up(&mut self, error: EngineError) {
        self.journal.trouble(&error);
        self.failure.get_or_insert(error);
        self.tell_workers(Signal::USR1);
    }

    /// Every child that is not a living worker was left behind by one that is dead.
    fn kill_orphans(&mut self) {
        if guards::is_off(Guard::Sweep) {
            return;
        }
        let left = kill_all(&self.children, |pid| self.is_member(pid), &self.strays);
        let lives = |member: &&Member| !member.handle.ends_within(Duration::ZERO).unwrap_or(false);
        let living = self.members().filter(lives).map(|member| member.pid).collect();
        self.strays.note(&left, &living);
    }

    fn is_member(&self, pid: Pid) -> bool {
        self.members().any(|member| member.pid == pid)
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.seats.iter().filter_map(|seat| match seat {
            Seat::Taken(member) => Some(member),
            Seat::Free { .. } | Seat::Dead { .. } | Seat::Closed => None,
        })
    }

    fn all_are_up(&self) -> bool {
        self.seats.iter().all(|seat| matches!(seat, Seat::Taken(member) if member.is_up))
    }

    fn store(&mut self) -> Result<&dyn Store, StoreError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => (self.open)()?,
        };
        Ok(&**self.store.insert(store))
    }

    // A worker that holds its leases past their time hangs: it is killed, and then it is one that died.

    fn kill_hung(&mut self) {
        let now = Instant::now();
        if !self.watchdog.is_due(now) || self.members().next().is_none() {
            return;
        }
        match self.hung() {
            Ok((lease, hung)) => {
                if self.watchdog.may_judge(now, lease) {
                    for member in self.members().filter(|member| hung.contains(&member.id)) {
                        self.journal.worker_hangs(&member.id);
                        let _ = member.handle.signal(Signal::KILL);
                    }
                }
            }
            Err(error) => {
                self.journal.trouble(&error);
                self.store = None;
                self.watchdog = Watchdog::new(now);
            }
        }
    }

    fn hung(&mut self) -> Result<(Duration, Vec<WorkerId>), StoreError> {
        let store = self.store()?;
        let lease = settings::in_force(store)?.lease;
        let hangs = |worker: &Worker| worker.overdue && !shows_life(worker, lease);
        let workers = store.workers()?.into_iter();
        Ok((lease, workers.filter(hangs).map(|worker| worker.id).collect()))
    }

    // Waiting, and what one wakes up for

    fn wait(&self) {
        let mut watched = vec![PollFd::new(&self.signals, PollFlags::IN)];
        for member in self.members() {
            watched.push(PollFd::new(&member.handle, PollFlags::IN));
            watched.extend(member.report.iter().map(|report| PollFd::new(report, PollFlags::IN)));
        }
        let now = Instant::now();
        let due = self.seats.iter().filter_map(|seat| match seat {
            Seat::Free { at, .. } | Seat::Dead { at, .. } => Some(*at),
            Seat::Taken(_) | Seat::Closed => None,
        });
        // Where nobody is there to be judged, no look is due.
        let next_look = self.members().next().map(|_| self.watchdog.next());
        let wake_in = due.chain(next_look).min().map(|at| at.saturating_duration_since(now));
        let timeout = wake_in.map(timespec);
        // An interrupted sleep is a short one.
        let _ = poll(&mut watched, timeout.as_ref());
    }

    fn heed_signals(&mut self) {
        while let Some(signal) = self.signals.take() {
            let is_gentle = signal == Signal::HUP || (signal != Signal::QUIT && !self.is_stopping);
            self.is_stopping = true;
            self.journal.told_to_stop(is_gentle);
            self.tell_workers(if is_gentle { Signal::USR1 } else { Signal::USR2 });
        }
    }

    fn tell_workers(&self, signal: Signal) {
        for member in self.members() {
            let _ = member.handle.signal(signal);
        }
    }

    /// A worker that is up says so, with the number of the newest stop that it knows.
    fn read_reports(&mut self) {
        for seat in &mut self.seats {
            let Seat::Taken(member) = seat else {
                continue;
            };
            let Some(report) = member.report.take() else {
                continue;
            };
            match read_report(&report) {
                Report::NotYet => member.report = Some(report),
                Report::Up { stop_seen } => {
                    member.is_up = true;
                    self.stop_seen = self.stop_seen.or(Some(stop_seen));
                }
                // It has died, or is about to.
                Report::Closed => {}
            }
        }
    }
}

enum Report {
    NotYet,
    Up { stop_seen: u64 },
    Closed,
}

fn read_report(report: &OwnedFd) -> Report {
    let mut watched = [PollFd::new(report, PollFlags::IN)];
    if !matches!(poll(&mut watched, Some(&timespec(Duration::ZERO))), Ok(1..)) {
        return Report::NotYet;
    }
    let mut buffer = [0; 32];
    let read = rustix::io::read(report, &mut buffer).unwrap_or(0);
    let number = std::str::from_utf8(&buffer[..read]).ok().and_then(|text| text.trim().parse().ok());
    number.map_or(Report::Closed, |stop_seen| Report::Up { stop_seen })
}

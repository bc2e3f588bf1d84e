//! What a worker does between its beginning and its end.
//!
//! It sleeps until something happens: an attempt finished, somebody rang, a signal came, or time passed. What can wait
//! is done every half second: reading orders, looking after dead workers, forgetting what is old. A schedule is fired when
//! it is due. A bell is a hint and may get lost; looking for work once a second stays.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::dispatcher::{Interrupt, Load};
use super::files::HomeFate;
use super::ledger::{Ledger, Tools, Turn};
use super::prefetch;
use super::wake::Event;
use super::{Phase, Worker, rules};
use crate::error::EngineError;
use crate::journal::Chain;
use domain::settings::Settings;
use store::{Orders, ServedJobs, StoreError, WorkerState};
use sys::bell;
use sys::guards;
use sys::guards::Guard;

/// How often orders are read and dead workers looked for.
const TICK: Duration = Duration::from_millis(500);
/// The same by a worker that has nothing to do and nobody to look after.
const LONE_TICK: Duration = Duration::from_secs(1);
/// How often work is looked for although nobody rang.
const LOOK: Duration = Duration::from_secs(1);
/// What is due within this time is done now, so that an idle worker wakes up less often.
const SLACK: Duration = Duration::from_millis(100);
/// How long a worker that could do nothing about a ring leaves the bell to others.
const MUTE: Duration = Duration::from_millis(20);
/// A worker shows that it lives so many times in the time of a lease.
const SIGNS_PER_LEASE: u32 = 4;
/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(3_600);
/// How long a store that just failed is left alone.
const STORE_PAUSE: Duration = Duration::from_millis(250);

/// How long to wait before something is looked at again that may have been missed.
fn every(span: Duration) -> Duration {
    if guards::is_off(Guard::Polling) { NEVER } else { span }
}

/// Why a worker stopped working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Drained,
    /// There is nothing left to record anything in.
    HomeDeleted,
}

/// What the events of one sleep ask for.
#[derive(Clone, Copy, Debug, Default)]
struct Reason {
    /// There may be work.
    look: bool,
    /// How often the ring may be passed on, if somebody rang.
    hops: Option<u8>,
}

impl Worker<'_> {
    pub(crate) fn work(&mut self) -> Result<End, EngineError> {
        let mut reason = Reason::default();
        loop {
            self.keep_time()?;
            match self.home_fate {
                HomeFate::Kept => {}
                // Its open files still work, so the worker finishes and records its running attempts.
                HomeFate::Moved => self.drain(None),
                HomeFate::Deleted => {
                    self.abandon(Interrupt::ReleaseAtOnce);
                    return Ok(End::HomeDeleted);
                }
            }
            reason.look |= self.times.look <= Instant::now() + SLACK;
            self.turn(reason)?;
            self.journal.flush();
            if self.is_done() {
                return Ok(End::Drained);
            }
            reason = self.sleep()?;
        }
    }

    /// The ledger, and what it works with.
    fn books(&mut self) -> (&mut Ledger, Tools<'_>) {
        let tools = Tools {
            store: self.store.as_ref(),
            desk: &self.desk,
            slots: &self.around.slots,
            journal: &self.journal,
        };
        (&mut self.ledger, tools)
    }

    /// To be called before the store is: where it is slow, a heartbeat may come too late for a lease, and still nobody is
    /// to take this worker for one that hangs.
    fn show_life(&mut self) {
        let now = Instant::now();
        if self.times.sign <= now {
            self.files.touch();
            self.times.sign = now + self.settings.lease / SIGNS_PER_LEASE;
        }
    }

    /// Tells others what is in the way, or that it is no longer.
    fn complain(&mut self) {
        if let Some(news) = self.health.news(self.ledger.obstacle(), Instant::now()) {
            self.files.say(news);
        }
    }

    /// Does what is due because time has passed.
    fn keep_time(&mut self) -> Result<(), EngineError> {
        self.show_life();
        self.complain();
        self.replace_given_up();
        let now = Instant::now();
        if let Phase::Draining { kill_at: Some(at) } = self.phase
            && at <= now
        {
            self.end_attempts();
        }
        if Ledger::recall_at(&self.desk).is_some_and(|at| at <= now) {
            let (ledger, tools) = self.books();
            ledger.recall_ahead(&tools, now.checked_sub(prefetch::PATIENCE).unwrap_or(now));
        }
        if self.times.store > now {
            return Ok(());
        }
        if !self.unkillable.is_empty() {
            let noted = self.store.record_unkillable(&self.unkillable);
            if self.note_failure(noted)?.is_some() {
                self.unkillable.clear();
            }
        }
        if self.times.beat <= now + SLACK {
            let beaten = self.beat();
            if self.note_failure(beaten)?.is_some() {
                self.times.beat = now + self.settings.heartbeat_interval;
            }
        }
        // Also where nothing can be written: what is in the way may be a worker that hangs, which is killed here.
        if self.times.tick <= now + SLACK {
            self.show_life();
            let ticked = self.tick();
            self.note_failure(ticked)?;
            let pause = if self.is_at_leisure() { LONE_TICK } else { TICK };
            self.times.tick = now + every(pause);
            if self.times.look + SLACK < now + pause {
                // Too early, but so it does not wake up once more for this.
                self.times.look = now;
            }
        }
        let told = self.tell_hooks();
        self.note_failure(told)?;
        Ok(())
    }

    /// A slot whose command cannot be killed is replaced, and others are told.
    fn replace_given_up(&mut self) {
        let unkillable = self.desk.take_unkillable();
        if unkillable.is_empty() {
            return;
        }
        for found in &unkillable {
            self.journal.unkillable(found);
        }
        self.unkillable.extend(unkillable);
        if let Err(error) = self.adopt_concurrency() {
            self.journal.trouble(&error);
        }
    }

    /// Whether a tick would hardly find anything: whoever wants something rings.
    fn is_at_leisure(&self) -> bool {
        self.phase == Phase::Working
            && self.is_idle()
            && !self.ends_when_idle()
            && self.reaper.is_alone()
            && self.pruner.rests()
            && self.next_delivery.is_none()
            && self.messenger.is_idle()
    }

    fn tick(&mut self) -> Result<(), StoreError> {
        self.home_fate = self.files.fate_of_home();
        self.around.adopted.reap_ended();
        // Those that could not be started when they were needed.
        if let Err(error) = self.start_missing_slots() {
            self.journal.trouble(&error);
        }
        let orders = self.take_orders()?;
        self.follow(orders);
        self.show_slots()?;
        let store = self.store.as_ref();
        self.reaper.run_once(store, Some(&self.plan.id), &self.settings, &self.journal)?;
        if self.phase == Phase::Working {
            self.pruner.run_once(store, &self.settings, &self.around.logs, &self.plan.id)?;
        }
        Ok(())
    }

    /// What is due by a schedule is enqueued first, so that it is among what the orders are about.
    fn take_orders(&mut self) -> Result<Orders, StoreError> {
        let orders = self.store.orders(&self.plan.id)?;
        self.scheduler.note(orders.next_fire);
        if self.phase != Phase::Working || !self.scheduler.is_due(self.store.now()?) {
            return Ok(orders);
        }
        self.scheduler.run_once(self.store.as_ref(), &self.journal)?;
        self.store.orders(&self.plan.id)
    }

    fn follow(&mut self, orders: Orders) {
        self.next_delivery = orders.next_delivery;
        if !orders.cancelled.is_empty() {
            let (ledger, tools) = self.books();
            ledger.cancel(&tools, &orders.cancelled);
        }
        if orders.settings != self.settings {
            self.adopt(orders.settings);
        }
        if orders.drain {
            let now = self.store.now().ok();
            let left = orders.kill_at.zip(now).map(|(at, now)| at.since(now));
            self.drain(left);
        }
        if orders.idle && self.ends_when_idle() && self.is_idle() && !self.has_news() {
            self.drain(None);
        }
    }

    fn adopt(&mut self, settings: Settings) {
        self.times.beat = self.times.beat.min(Instant::now() + settings.heartbeat_interval);
        self.desk.set_rules(rules(&settings));
        self.settings = settings;
        if let Err(error) = self.adopt_concurrency() {
            self.journal.trouble(&error);
        }
    }

    pub(crate) fn ends_when_idle(&self) -> bool {
        match self.plan.served {
            ServedJobs::Job(_) => true,
            ServedJobs::All | ServedJobs::InOrder(_) => self.plan.until_empty,
        }
    }

    // One turn

    fn turn(&mut self, reason: Reason) -> Result<(), EngineError> {
        if self.times.store > Instant::now() {
            // Nothing can be recorded yet, but the bell of what has ended must not keep this thread awake.
            let (ledger, tools) = self.books();
            ledger.collect(&tools);
            self.messenger.collect();
            return Ok(());
        }
        self.show_life();
        let slots = if self.phase == Phase::Working { self.slots() } else { 0 };
        let (ledger, tools) = self.books();
        let turn = ledger.turn(&tools, slots, reason.look);
        let Some(turn) = self.note_failure(turn)? else {
            return Ok(());
        };
        if turn.is_retired {
            self.abandon(Interrupt::Lost);
            return Err(EngineError::DeclaredDead);
        }
        if reason.look {
            self.times.look = Instant::now() + every(LOOK);
        }
        if let Some(hops) = reason.hops {
            self.pass_on(hops, turn);
        }
        if turn.has_settled {
            // The orders say whether this was the end, or a hook is to be told.
            let ends = self.is_idle() && self.ends_when_idle();
            self.times.tick =
                self.times.tick.min(Instant::now() + if ends { Duration::ZERO } else { every(TICK) });
        }
        Ok(())
    }

    /// One worker was woken. If it left work behind, or serves other queues than the one that was rung for, another has
    /// to look; how often that may go on is part of the ring, so that one for a queue that nobody serves dies away. Where
    /// nobody else listens it comes back as it was passed on, and dies sooner.
    fn pass_on(&mut self, hops: u8, turn: Turn) {
        let is_for_others = turn.claimed == 0 && self.plan.served != ServedJobs::All;
        if turn.may_be_more {
            self.work_bell.ring(bell::MAX_HOPS);
        } else if is_for_others && hops > 1 && self.passed.goes_on(hops) {
            self.times.muted_until = Instant::now() + MUTE;
            self.work_bell.ring(hops - 1);
        }
    }

    /// Lets the worker live with a store that fails: what is not recorded yet is kept and tried again.
    fn note_failure<T>(&mut self, result: Result<T, StoreError>) -> Result<Option<T>, EngineError> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        self.journal.trouble(&error);
        self.health.note_store(Chain(&error).to_string(), Instant::now());
        self.files.touch();
        self.times.store = Instant::now() + STORE_PAUSE;
        if let StoreError::NoSuchWorker(_) = error {
            self.abandon(Interrupt::Lost);
            return Err(EngineError::DeclaredDead);
        }
        if let StoreError::TooNew { .. } = error {
            // Nothing of what runs could ever be recorded: a worker of the newer program takes it back and runs it again.
            self.abandon(Interrupt::ReleaseAtOnce);
            return Err(error.into());
        }
        if let StoreError::OutcomeUnknown { .. } = error {
            // Nothing is believed of what this connection knows. What was claimed without our learning of it is given
            // back by the next heartbeat, which tells the store what we have.
            if let Ok(store) = (self.open)() {
                self.store = store;
                // With the lease it learns how long it may wait for others. The orders themselves are read again soon.
                let _ = self.store.orders(&self.plan.id);
            }
            self.times.beat = Instant::now();
        }
        Ok(None)
    }

    fn beat(&mut self) -> Result<(), StoreError> {
        let (ledger, tools) = self.books();
        ledger.beat(&tools)
    }

    fn recall(&mut self) {
        let (ledger, tools) = self.books();
        ledger.recall(&tools);
    }

    // Stopping

    /// Claims nothing more, and lets finish what runs, for this long at most.
    fn drain(&mut self, patience: Option<Duration>) {
        let kill_at = patience.and_then(|patience| Instant::now().checked_add(patience));
        match self.phase {
            Phase::Working => {
                self.recall();
                // Only for show: the worker knows that it drains.
                let _ = self.store.set_worker_state(&self.plan.id, WorkerState::Draining);
                self.journal.worker_draining();
                self.phase = Phase::Draining { kill_at };
            }
            Phase::Draining { kill_at: before } => {
                self.phase = Phase::Draining { kill_at: before.into_iter().chain(kill_at).min() };
            }
            Phase::Ending => {}
        }
    }

    /// Kills what runs and gives it back; with grace the first time, without when it is asked for again.
    fn end_attempts(&mut self) {
        let how = match self.phase {
            Phase::Working | Phase::Draining { .. } => Interrupt::Release,
            Phase::Ending => Interrupt::ReleaseAtOnce,
        };
        self.drain(None);
        self.phase = Phase::Ending;
        self.journal.worker_ends_attempts();
        self.desk.interrupt_all(how);
    }

    fn heed(&mut self, signal: Signal) {
        let is_working = self.phase == Phase::Working;
        match signal {
            // From the supervisor, or because it died.
            Signal::USR1 | Signal::HUP => self.drain(self.settings.shutdown_grace),
            Signal::TERM | Signal::INT if is_working => self.drain(self.settings.shutdown_grace),
            _ => self.end_attempts(),
        }
    }

    fn is_idle(&self) -> bool {
        self.desk.load() == Load::default() && self.ledger.is_settled()
    }

    fn is_done(&self) -> bool {
        let is_over = self.ledger.is_settled() && self.unkillable.is_empty() && self.desk.is_over();
        self.phase != Phase::Working && is_over
    }

    // Sleeping

    fn sleep(&mut self) -> Result<Reason, EngineError> {
        let system = EngineError::system("failed to watch for work");
        self.wake.watch_work(&self.work_bell, self.listens()).map_err(system)?;
        let mut reason = Reason::default();
        let mut events = self.wake.wait(self.wake_in());
        if events == [Event::Finished] && self.desk.is_well_stocked() {
            // No slot waits for this commit, so let more share it.
            events = self.wake.wait(prefetch::GATHER);
        }
        for event in events {
            match event {
                Event::Signal => {
                    while let Some(signal) = self.signals.take() {
                        self.heed(signal);
                    }
                }
                Event::Orders => {
                    let rings = self.own_bell.take_numbered();
                    self.desk.note_readers(&rings.numbers);
                    if rings.is_plain {
                        self.times.tick = Instant::now();
                    }
                }
                Event::Work => reason.hops = self.work_bell.take(),
                // They are taken from the desk and from the messenger in the next turn.
                Event::Finished | Event::Told => {}
            }
        }
        reason.look |= reason.hops.is_some() || self.is_something_due();
        if self.fire_in().is_some_and(|wait| wait.is_zero()) {
            self.times.tick = Instant::now();
        }
        Ok(reason)
    }

    /// Whether a ring for anybody is for this worker.
    fn listens(&self) -> bool {
        let Load { running, waiting, limited: _, is_reserved } = self.desk.load();
        let now = Instant::now();
        let has_room = running + waiting < self.slots() && !is_reserved;
        let may_claim =
            self.times.muted_until <= now && self.times.store <= now && !self.ledger.is_hindered();
        self.phase == Phase::Working && has_room && may_claim
    }

    fn is_something_due(&self) -> bool {
        let due_in = self.due_in();
        due_in.is_some_and(|wait| wait.is_zero())
    }

    /// How long until the next job that waits for its time becomes due.
    fn due_in(&self) -> Option<Duration> {
        let at = self.ledger.next_due()?;
        Some(at.since(self.store.now().ok()?))
    }

    /// How long until the next schedule is due.
    fn fire_in(&self) -> Option<Duration> {
        if self.phase != Phase::Working {
            return None;
        }
        self.scheduler.due_in(self.store.now().ok()?)
    }

    fn wake_in(&self) -> Duration {
        let now = Instant::now();
        let mut moments = vec![self.times.tick, self.times.beat];
        moments.extend(Ledger::recall_at(&self.desk));
        if self.phase == Phase::Working {
            moments.push(self.times.look);
        }
        if let Phase::Draining { kill_at: Some(at) } = self.phase {
            moments.push(at);
        }
        if self.times.muted_until > now {
            moments.push(self.times.muted_until);
        }
        let wait = moments.into_iter().map(|at| at.saturating_duration_since(now)).min().unwrap_or(TICK);
        let wait = if self.listens() { self.due_in().map_or(wait, |due| due.min(wait)) } else { wait };
        let wait = self.fire_in().map_or(wait, |due| due.min(wait));
        // While the store is left alone, nothing that is due can be done.
        wait.max(self.times.store.saturating_duration_since(now))
    }
}

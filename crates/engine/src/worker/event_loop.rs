//! The main loop of a worker.
//!
//! It sleeps until something happens: an attempt finished, a bell rang, a signal arrived, or a timer expired. Every
//! half second it reads its orders, recovers dead workers, prunes old history and counts the jobs. It fires a schedule
//! when that is due. A bell is a hint that may get lost, so the worker also polls for work once a second. If the store says
//! that its hints do not get lost, it does all of this once a heartbeat.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::dispatcher::{Interrupt, Load};
use super::files::HomeState;
use super::lease_keeper::{CUT_OFF, LeaseKeeper};
use super::ledger::TurnResult;
use super::prefetch;
use super::store_backoff::StoreBackoff;
use super::wake::Event;
use super::{Phase, Worker, WorkerExit, rules};
use crate::duties::{beats, scheduler};
use crate::error::EngineError;
use crate::journal::chain;
use domain::settings::Settings;
use store::{LeaseRef, Orders, Pace, ServedJobs, StoreError, WorkerState};
use sys::bell;
use sys::guards;
use sys::guards::Guard;

/// How often a worker reads its orders and looks for dead workers.
const TICK_INTERVAL: Duration = Duration::from_millis(500);
/// The same for a worker that is idle and alone.
const IDLE_TICK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a worker looks for work although no bell rang.
const WORK_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A timer that expires within this time runs now, so that an idle worker wakes up less often.
const TIMER_SLACK: Duration = Duration::from_millis(100);
/// How long a worker that found no work after a ring stops listening to the bell, so that other workers hear it.
const BELL_MUTE_TIME: Duration = Duration::from_millis(20);
/// How many times per lease a worker touches its lock file.
const TOUCHES_PER_LEASE: u32 = 4;
/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(3_600);

/// The interval of a poll, which the guard can switch off.
fn every(span: Duration) -> Duration {
    if guards::is_off(Guard::Polling) { NEVER } else { span }
}

/// The duties of a worker that woke up.
#[derive(Clone, Copy, Debug, Default)]
struct WakeReason {
    /// There may be work.
    poll: bool,
    /// How often the ring may be forwarded, if the shared bell rang.
    hops: Option<u8>,
}

impl Worker<'_> {
    /// Works until the worker has ended.
    pub(crate) fn work(&mut self) -> Result<WorkerExit, EngineError> {
        let mut reason = WakeReason::default();
        loop {
            self.run_timers()?;
            match self.home_state {
                HomeState::Kept => {}
                // Its open files still work, so the worker finishes and records its running attempts.
                HomeState::Moved => self.drain(None),
                // Nothing can be recorded.
                HomeState::Deleted => {
                    self.abandon(Interrupt::ReleaseAtOnce);
                    return Ok(WorkerExit::Stopped);
                }
            }
            reason.poll |= self.timers.poll <= Instant::now() + TIMER_SLACK;
            self.turn(reason)?;
            self.journal.flush();
            if self.is_done() {
                return self.end();
            }
            reason = self.sleep()?;
        }
    }

    /// Must be called before the store: when that is slow, a heartbeat may come too late for a lease, and other
    /// processes must not take this worker for hung.
    fn touch_if_due(&mut self) {
        let now = Instant::now();
        if self.timers.touch <= now {
            self.files.liveness_lock.touch();
            self.timers.touch = now + self.settings.lease / TOUCHES_PER_LEASE;
        }
    }

    /// Publishes the worker's current problem, or that it is over.
    fn publish_health(&mut self) {
        if let Some(change) = self.health.take_change(self.ledger.obstacle(), Instant::now()) {
            self.files.liveness_lock.report_problem(change);
        }
    }

    /// Runs the timers that have expired.
    fn run_timers(&mut self) -> Result<(), EngineError> {
        self.touch_if_due();
        self.publish_health();
        self.replace_given_up();
        let now = Instant::now();
        if let Phase::Draining { kill_at: Some(at) } = self.phase
            && at <= now
        {
            self.end_attempts();
        }
        if self.ledger.recall_at().is_some_and(|at| at <= now) {
            self.ledger.recall_prefetched(now.checked_sub(prefetch::MAX_CLAIM_WAIT).unwrap_or(now));
        }
        if self.timers.store > now {
            return Ok(());
        }
        if !self.unkillable.is_empty() {
            let noted = self.store.record_unkillable(&self.unkillable);
            if self.note_failure(noted)?.is_some() {
                self.unkillable.clear();
            }
        }
        if self.timers.heartbeat <= now + TIMER_SLACK {
            let extended = self.ledger.heartbeat(self.store.as_ref());
            if let Some(sent) = self.note_failure(extended)? {
                if let Some(keeper) = &self.lease_keeper {
                    keeper.note_renewal(sent);
                }
                self.timers.heartbeat = now + self.settings.heartbeat_interval;
            }
        }
        self.tick_if_worker_died();
        // Also when nothing can be written: a hung worker may hold the lock, and the reaper kills it here.
        if self.timers.tick <= now + TIMER_SLACK {
            self.touch_if_due();
            let ticked = self.tick();
            self.note_failure(ticked)?;
            let pause = self.tick_interval();
            self.timers.tick = now + every(pause);
            if self.timers.poll + TIMER_SLACK < now + pause {
                // A little early, but it saves one wake-up.
                self.timers.poll = now;
            }
        }
        let delivered = self.deliver_to_hooks();
        self.note_failure(delivered)?;
        Ok(())
    }

    /// Replaces slots whose commands cannot be killed, and notes those commands.
    fn replace_given_up(&mut self) {
        let unkillable = self.dispatcher.take_unkillable();
        if unkillable.is_empty() {
            return;
        }
        for found in &unkillable {
            self.journal.unkillable(found);
        }
        self.unkillable.extend(unkillable);
        if let Err(error) = self.apply_concurrency() {
            self.journal.error(&error);
        }
    }

    /// How long until the orders are read again and dead workers are looked for.
    fn tick_interval(&self) -> Duration {
        let pause = match self.store.pace() {
            Pace::Polling if self.may_tick_slowly() => IDLE_TICK_INTERVAL,
            Pace::Polling => TICK_INTERVAL,
            Pace::Listening => beats::read_interval(&self.settings),
        };
        self.pruner.rest(self.store.as_ref()).map_or(pause, |rest| rest.min(pause))
    }

    /// How long until the worker looks for work again although no bell rang.
    fn work_poll_interval(&self) -> Duration {
        match self.store.pace() {
            Pace::Polling => WORK_POLL_INTERVAL,
            Pace::Listening => self.settings.heartbeat_interval,
        }
    }

    /// While ticks are rare, only the locks of the other workers on this machine are checked as often as otherwise.
    fn checks_locks(&self) -> bool {
        self.store.pace() == Pace::Listening && !self.reaper.is_alone()
    }

    fn tick_if_worker_died(&mut self) {
        let now = Instant::now();
        if self.timers.locks <= now && self.checks_locks() {
            self.timers.locks = now + TICK_INTERVAL;
            if self.reaper.suspects_death() {
                self.timers.tick = now;
            }
        }
    }

    /// Whether ticks can be rare: the worker is idle, and any change rings a bell.
    fn may_tick_slowly(&self) -> bool {
        self.phase == Phase::Working
            && self.is_idle()
            && !self.ends_when_idle()
            && self.reaper.is_alone()
            && self.pruner.is_idle()
            && self.next_delivery.is_none()
            && self.deliveries.is_idle()
    }

    fn tick(&mut self) -> Result<(), StoreError> {
        self.home_state = self.files.home_state();
        self.context.orphans.reap_ended();
        // Also starts slots that could not be started when they were needed.
        if let Err(error) = self.apply_concurrency() {
            self.journal.error(&error);
        }
        let orders = self.take_orders()?;
        let paused = orders.paused.clone();
        // Only a worker that ends when idle asks whether it is: that sums up the whole store.
        let may_end = self.phase == Phase::Working && (self.ends_when_idle() || self.plan.until_idle);
        let has_no_jobs = may_end && self.store.is_idle(&self.plan.id)?;
        self.apply_orders(orders, has_no_jobs);
        self.apply_pauses(&paused)?;
        self.publish_slots()?;
        self.publish_problem()?;
        if self.is_outdated {
            return Ok(());
        }
        let store = self.store.as_ref();
        self.reaper.run_once(store, Some(&self.plan.id), &self.settings, &self.journal)?;
        if self.phase == Phase::Working {
            self.pruner.run_once(store, &self.settings, &self.context.logs, &self.plan.id)?;
            self.sampler.run_once(store)?;
        }
        Ok(())
    }

    /// Fires due schedules first, so that the orders take the new jobs into account.
    fn take_orders(&mut self) -> Result<Orders, StoreError> {
        let orders = self.store.orders(&self.plan.id)?;
        self.next_fire = orders.next_fire;
        if !self.fire_in().is_some_and(|wait| wait.is_zero()) {
            return Ok(orders);
        }
        self.next_fire = scheduler::run_once(self.store.as_ref(), &self.journal)?;
        self.store.orders(&self.plan.id)
    }

    fn apply_orders(&mut self, orders: Orders, has_no_jobs: bool) {
        self.next_delivery = orders.next_delivery;
        if !orders.cancelled.is_empty() {
            self.ledger.cancel(&orders.cancelled);
        }
        if orders.settings != self.settings {
            self.apply_settings(orders.settings);
        }
        if orders.drain {
            let now = self.store.now().ok();
            let left = orders.kill_at.zip(now).map(|(at, now)| at.since(now));
            self.drain(left);
        }
        if has_no_jobs && self.ends_when_idle() && self.is_idle() && !self.has_deliveries() {
            self.drain(None);
        }
        if self.plan.until_idle && self.phase == Phase::Working {
            self.end_after_idle_time(has_no_jobs);
        }
    }

    /// A worker that stops waits for its attempts to end, which paused ones never do, so it continues them.
    fn apply_pauses(&self, paused: &[LeaseRef]) -> Result<(), StoreError> {
        let stops = self.phase != Phase::Working;
        self.dispatcher.set_paused(if stops { &[] } else { paused });
        if stops && !paused.is_empty() {
            self.store.resume_all(&self.plan.id)?;
        }
        Ok(())
    }

    fn apply_settings(&mut self, settings: Settings) {
        self.timers.heartbeat = self.timers.heartbeat.min(Instant::now() + settings.heartbeat_interval);
        self.dispatcher.set_rules(rules(&settings));
        if let Some(keeper) = &self.lease_keeper {
            keeper.set_limits(&settings);
        }
        self.settings = settings;
        if let Err(error) = self.apply_concurrency() {
            self.journal.error(&error);
        }
    }

    pub(crate) fn ends_when_idle(&self) -> bool {
        self.plan.until_empty || !self.plan.served.takes_new_jobs()
    }

    // One turn

    fn turn(&mut self, reason: WakeReason) -> Result<(), EngineError> {
        if self.timers.store > Instant::now() {
            // Nothing can be recorded yet, but the bell must be cleared, or this thread would spin.
            self.ledger.collect();
            self.deliveries.collect();
            return Ok(());
        }
        self.touch_if_due();
        // A worker that is cut off could not start what it claims.
        let slots = if self.phase == Phase::Working && !self.is_cut_off() { self.slots() } else { 0 };
        let turn = self.ledger.turn(self.store.as_ref(), slots, reason.poll);
        let Some(turn) = self.note_failure(turn)? else {
            return Ok(());
        };
        self.refused_since = None;
        if turn.is_retired {
            self.abandon(Interrupt::Lost);
            return Err(EngineError::DeclaredDead);
        }
        if reason.poll {
            self.timers.poll = Instant::now() + every(self.work_poll_interval());
        }
        if let Some(hops) = reason.hops {
            self.pass_on(hops, turn);
        }
        if turn.has_settled {
            // The orders say whether this was the last job, or whether a delivery is due.
            let ends = self.is_idle() && self.ends_when_idle();
            self.timers.tick = self
                .timers
                .tick
                .min(Instant::now() + if ends { Duration::ZERO } else { every(TICK_INTERVAL) });
        }
        Ok(())
    }

    /// Forwards a ring to another worker. A ring wakes only one worker; if that one left work, or does not serve the
    /// queue of the new job, another must look. The ring carries a hop count, so that a ring for a queue without
    /// workers dies out. If no other worker listens, the ring returns unchanged, and `Relay` drops it sooner.
    fn pass_on(&mut self, hops: u8, turn: TurnResult) {
        let is_for_others = turn.claimed == 0 && self.plan.served != ServedJobs::All;
        if turn.may_be_more {
            self.hints.pass_on(bell::MAX_HOPS);
        } else if is_for_others && hops > 1 && self.relay.should_forward(hops) {
            self.timers.muted_until = Instant::now() + BELL_MUTE_TIME;
            self.hints.pass_on(hops - 1);
        }
    }

    /// Keeps the worker running when the store fails: unrecorded results are kept and tried again.
    fn note_failure<T>(&mut self, result: Result<T, StoreError>) -> Result<Option<T>, EngineError> {
        let error = match result {
            Ok(value) => {
                self.store_backoff.note_success();
                return Ok(Some(value));
            }
            Err(error) => error,
        };
        self.journal.error(&error);
        if let StoreError::TooNew { .. } = error
            && self.finish_as_outdated()
        {
            return Ok(None);
        }
        let delay = if self.store.spans_machines() {
            self.store_backoff.after_server_failure(self.settings.lease, fastrand::f64())
        } else {
            StoreBackoff::after_file_failure()
        };
        self.timers.store = Instant::now() + delay;
        self.note_store_problem(&error);
        self.files.liveness_lock.touch();
        if let StoreError::NoSuchWorker(_) = error {
            self.abandon(Interrupt::Lost);
            return Err(EngineError::DeclaredDead);
        }
        if let StoreError::TooNew { .. } = error {
            // The running attempts could never be recorded: a worker of the newer program reaps them and runs them
            // again.
            self.abandon(Interrupt::ReleaseAtOnce);
            return Err(error.into());
        }
        if let StoreError::NotAllowed { .. } = error
            && self.refused_since.get_or_insert_with(Instant::now).elapsed() >= self.settings.lease
        {
            // Its leases are over, and it has ended its commands.
            self.abandon(Interrupt::ReleaseAtOnce);
            return Err(error.into());
        }
        if let StoreError::OutcomeUnknown { .. } = error {
            // The state of this connection is not trusted. If the commit claimed jobs, the next heartbeat releases
            // them, because it sends the store the leases that this worker knows. A store on a server has lost its
            // session, and opens another by itself.
            if !self.store.spans_machines()
                && let Ok(store) = (self.open)()
            {
                self.store = store;
                // Reading the orders tells the store the lease, which bounds its busy timeout; the result is not
                // needed.
                let _ = self.store.orders(&self.plan.id);
            }
            self.timers.heartbeat = Instant::now();
        }
        Ok(None)
    }

    /// Lets the running attempts finish although a newer program has migrated the store, if the new schema allows that.
    fn finish_as_outdated(&mut self) -> bool {
        if self.is_outdated || !self.store.finish_under_newer_schema().unwrap_or(false) {
            return false;
        }
        self.is_outdated = true;
        self.drain(self.settings.shutdown_grace);
        true
    }

    fn is_cut_off(&self) -> bool {
        self.lease_keeper.as_ref().is_some_and(LeaseKeeper::is_cut_off)
    }

    /// Other processes on this machine read it from the lock file, even if they cannot reach the store either.
    fn note_store_problem(&mut self, error: &StoreError) {
        let problem = match chain(error) {
            why if self.is_cut_off() => format!("{CUT_OFF}, so it ended its commands: {why}"),
            why => why,
        };
        self.health.note_store(problem, self.timers.store);
    }

    // Stopping

    /// Claims nothing more, and lets running attempts finish within `timeout`.
    pub(crate) fn drain(&mut self, timeout: Option<Duration>) {
        let kill_at = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        match self.phase {
            Phase::Working => {
                self.ledger.recall();
                // Only for display: the worker itself goes by its phase.
                let _ = self.store.set_worker_state(&self.plan.id, WorkerState::Draining);
                self.journal.note(format_args!("worker draining: it claims no more jobs"));
                self.phase = Phase::Draining { kill_at };
            }
            Phase::Draining { kill_at: before } => {
                self.phase = Phase::Draining { kill_at: before.into_iter().chain(kill_at).min() };
            }
            Phase::Ending => {}
        }
    }

    /// Ends and releases running attempts: with grace the first time, without grace when asked again.
    fn end_attempts(&mut self) {
        let how = match self.phase {
            Phase::Working | Phase::Draining { .. } => Interrupt::Release,
            Phase::Ending => Interrupt::ReleaseAtOnce,
        };
        self.drain(None);
        self.phase = Phase::Ending;
        self.journal
            .note(format_args!("worker releasing its attempts: they are killed and become pending again"));
        self.dispatcher.interrupt_all(how);
    }

    fn handle_signal(&mut self, signal: Signal) {
        let is_working = self.phase == Phase::Working;
        match signal {
            // From the supervisor, or because it died.
            Signal::USR1 | Signal::HUP => self.drain(self.settings.shutdown_grace),
            Signal::TERM | Signal::INT if is_working => self.drain(self.settings.shutdown_grace),
            _ => self.end_attempts(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.dispatcher.load() == Load::default() && self.ledger.is_settled()
    }

    fn is_done(&self) -> bool {
        let is_over = self.ledger.is_settled() && self.unkillable.is_empty() && self.dispatcher.is_drained();
        self.phase != Phase::Working && is_over
    }

    // Sleeping

    fn sleep(&mut self) -> Result<WakeReason, EngineError> {
        let system = EngineError::system("failed to watch for work");
        self.wake.watch_work(self.hints.work(), self.listens()).map_err(system)?;
        let mut reason = WakeReason::default();
        let mut events = self.wake.wait(self.wake_in());
        if events == [Event::AttemptFinished] && self.dispatcher.has_enough_claims() {
            // No slot waits for this commit, so more attempts may share it.
            events = self.wake.wait(prefetch::COMMIT_DELAY);
        }
        for event in events {
            match event {
                Event::Signal => {
                    while let Some(signal) = self.signals.take() {
                        self.handle_signal(signal);
                    }
                }
                Event::Orders => {
                    let hints = self.hints.take_orders();
                    self.dispatcher.note_readers(&hints.readers);
                    if let Some(spool) = self.context.spool.as_ref().filter(|_| !hints.readers.is_empty()) {
                        spool.follow(&hints.readers);
                    }
                    if hints.has_orders {
                        self.timers.tick = Instant::now();
                    }
                }
                Event::Work => reason.hops = self.hints.take_work(),
                // The next turn takes them from the dispatcher and from the delivery pool.
                Event::AttemptFinished | Event::DeliveryFinished => {}
            }
        }
        reason.poll |= reason.hops.is_some() || self.is_something_due();
        if self.fire_in().is_some_and(|wait| wait.is_zero()) {
            self.timers.tick = Instant::now();
        }
        Ok(reason)
    }

    /// Whether this worker listens to the shared bell.
    fn listens(&self) -> bool {
        let Load { running, waiting, limited: _, is_reserved } = self.dispatcher.load();
        let now = Instant::now();
        let has_room = running + waiting < self.slots() && !is_reserved;
        let may_claim =
            self.timers.muted_until <= now && self.timers.store <= now && !self.ledger.is_backing_off();
        self.phase == Phase::Working && has_room && may_claim
    }

    fn is_something_due(&self) -> bool {
        let due_in = self.due_in();
        due_in.is_some_and(|wait| wait.is_zero())
    }

    /// How long until the next delayed job becomes due.
    fn due_in(&self) -> Option<Duration> {
        let at = self.ledger.next_due()?;
        Some(at.since(self.store.now().ok()?))
    }

    /// How long until the next schedule is due.
    fn fire_in(&self) -> Option<Duration> {
        if self.phase != Phase::Working {
            return None;
        }
        Some(self.next_fire?.since(self.store.now().ok()?))
    }

    fn wake_in(&self) -> Duration {
        let now = Instant::now();
        let mut moments = vec![self.timers.tick, self.timers.heartbeat];
        moments.extend(self.ledger.recall_at());
        if self.phase == Phase::Working {
            moments.push(self.timers.poll);
        }
        if let Phase::Draining { kill_at: Some(at) } = self.phase {
            moments.push(at);
        }
        if self.checks_locks() {
            moments.push(self.timers.locks);
        }
        if self.timers.muted_until > now {
            moments.push(self.timers.muted_until);
        }
        let wait =
            moments.into_iter().map(|at| at.saturating_duration_since(now)).min().unwrap_or(TICK_INTERVAL);
        let wait = if self.listens() { self.due_in().map_or(wait, |due| due.min(wait)) } else { wait };
        let wait = self.fire_in().map_or(wait, |due| due.min(wait));
        // While the store is not used after a failure, nothing that is due can be done.
        wait.max(self.timers.store.saturating_duration_since(now))
    }
}

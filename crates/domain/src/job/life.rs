//! The life cycle of a job: its states, the events that can happen to it, and the resulting transitions.
//!
//! ```text
//!              claim               success
//!   pending ─────────▶ processing ─────────▶ completed
//!    ▲  ▲                │  │  │
//!    │  └── lost, released  │  └─ too many failures or losses ─▶ dead
//!    │                      ▼
//!    └── retry            failed ── claim, when it is due ──▶ processing
//!
//!   pending, failed ── cancel ──▶ cancelled     processing ── cancel ──▶ marked; its worker stops it
//!                                               processing ◀─ pause, resume ─▶ paused; it keeps its lease and its slot
//! ```
//!
//! [`transition`] makes all these decisions. It is pure: stores call it inside a transaction and apply the result with an
//! update that is guarded by the attempt number.

mod state;
pub mod when;

use super::backoff::Backoff;
use super::outcome::Outcome;
use super::retry_rules::RetryRules;
use crate::values::name::WorkerId;
use crate::values::signal::Signal;
use crate::values::timestamp::Timestamp;

pub use self::state::{CancelReason, DeadReason, Lease, State, StateName};

/// The part of a job that determines its transitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    pub state: State,
    /// The requested start time: no attempt starts earlier.
    pub run_at: Option<Timestamp>,
    /// When the next attempt may start, or the current one could. It also determines the position in the claim order.
    pub due_at: Timestamp,
    /// The number of the latest attempt. It never decreases, because it is the fencing token.
    pub attempts: u32,
    pub max_retries: u32,
    /// Attempts since the last `retry` that used up a retry.
    pub failures: u32,
    pub losses: Losses,
}

/// Consecutive losses within one boot: a reboot of the machine is not the job's fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses {
    pub count: u32,
    pub boot: Option<String>,
}

/// Whether a dead worker was running other attempts when it lost this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossContext {
    /// It ran no other attempt: this attempt or an external cause killed the worker.
    Alone,
    /// It ran other attempts, any of which may have killed the worker.
    Others,
}

/// The boot of an attempt that was interrupted through no fault of its own, for example by a restore of the queue. Its
/// loss is not counted.
pub const NO_BOOT: &str = "";

impl Losses {
    fn with_one_more(&self, boot: String) -> Option<Self> {
        let count = if self.boot.as_ref() == Some(&boot) { self.count + 1 } else { 1 };
        (boot != NO_BOOT).then_some(Self { count, boot: Some(boot) })
    }
}

/// An event in the life of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A worker claims it.
    Claim { worker: WorkerId, until: Timestamp },
    /// Its worker lengthens the lease.
    Extend { attempt: u32, until: Timestamp },
    /// Its worker, or a reaper on behalf of a dead worker, records how the attempt ended. `boot` is the boot in which it
    /// ran; `loss_context` matters only for a loss.
    Settle { attempt: u32, outcome: Outcome, boot: String, loss_context: LossContext },
    /// A user cancels it. If it runs, its worker sends this signal first, or SIGTERM.
    Cancel { signal: Option<Signal> },
    /// A user stops its command for a while.
    Pause,
    /// A user, or a worker that has to stop, continues it.
    Resume,
    /// Its schedule replaces it with a newer run.
    Replace,
    /// A user retries it; `blocked_by` of its dependencies are still unfinished.
    Retry { blocked_by: u32 },
    /// A dependency completed, or failed and the job runs regardless.
    DependencyMet,
    /// A dependency is dead or cancelled, and the job does not run without it.
    DependencyFailed,
}

/// The settings that decide what follows a failure, read when the attempt fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    pub backoff: Backoff,
    pub crash_limit: u32,
    /// The job's own rules, otherwise those of its queue.
    pub retry: RetryRules,
    /// Random in `0..1`: decides the jitter.
    pub roll: f64,
}

/// The result of an event: the previous state and the new life.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub from: StateName,
    pub life: Life,
}

/// Why an event changes nothing. This is a normal result, which the caller reports or ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("attempt {attempt} is not the current one")]
    Stale { attempt: u32 },
    #[error("it is not due yet")]
    NotDue,
    #[error("it is waiting for other jobs")]
    Blocked,
    #[error("it is {}", .0.name())]
    WrongState(StateName),
    #[error("it is being cancelled")]
    Cancelling,
}

/// The index in which a job waits for its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitIndex {
    /// It can be claimed now.
    Ready,
    /// It is not due yet.
    Waiting,
    /// It is processing, blocked or finished.
    None,
}

impl Life {
    /// How many of its `max_retries + 1` tries the job has used: those that failed, and the one that is running or has
    /// succeeded.
    pub fn tries(&self) -> u64 {
        let has_current_try = match self.state {
            State::Processing(_) | State::Completed { .. } => true,
            State::Pending { .. } | State::Failed | State::Dead { .. } | State::Cancelled { .. } => false,
        };
        u64::from(self.failures) + u64::from(has_current_try)
    }

    /// The life of a newly enqueued job.
    pub fn begin(run_at: Option<Timestamp>, max_retries: u32, blocked_by: u32, now: Timestamp) -> Self {
        Self {
            state: State::Pending { blocked_by },
            run_at,
            due_at: run_at.map_or(now, |at| at.max(now)),
            attempts: 0,
            max_retries,
            failures: 0,
            losses: Losses::default(),
        }
    }

    /// Whether its next attempt must be the only one of its worker: one more loss may make the job dead, which requires
    /// certainty that no other job killed the worker.
    pub fn runs_alone(&self, crash_limit: u32) -> bool {
        self.losses.count > 0 && self.losses.count + 1 >= crash_limit
    }

    pub fn wait_index(&self, now: Timestamp) -> WaitIndex {
        match self.state.name() {
            StateName::Pending | StateName::Failed if self.state.blocked_by() > 0 => WaitIndex::None,
            StateName::Pending | StateName::Failed if self.is_due(now) => WaitIndex::Ready,
            StateName::Pending | StateName::Failed => WaitIndex::Waiting,
            StateName::Processing | StateName::Completed | StateName::Dead | StateName::Cancelled => {
                WaitIndex::None
            }
        }
    }

    /// Whether an attempt may start. A pending job waits only for `run_at`: if the clock is set back, a ready job stays
    /// ready although its `due_at` is then in the future.
    fn is_due(&self, now: Timestamp) -> bool {
        let is_pending = matches!(self.state, State::Pending { .. });
        self.due_at <= now || (is_pending && self.run_at.is_none_or(|at| at <= now))
    }
}

/// Decides how `event` changes a job with this `life`.
pub fn transition(life: &Life, event: Event, policy: &Policy, now: Timestamp) -> Result<Transition, Refusal> {
    let next = match event {
        Event::Claim { worker, until } => claim(life, worker, until, now)?,
        Event::Extend { attempt, until } => extend(life, attempt, until)?,
        Event::Settle { attempt, outcome, boot, loss_context } => {
            let losses = life.losses.with_one_more(boot);
            settle(life, attempt, outcome, Loss { losses, loss_context }, policy, now)?
        }
        Event::Cancel { signal } => cancel(life, CancelReason::User, signal, now)?,
        Event::Pause => pause(life, now)?,
        Event::Resume => resume(life)?,
        Event::Replace => cancel(life, CancelReason::Replaced, None, now)?,
        Event::Retry { blocked_by } => retry(life, blocked_by, now)?,
        Event::DependencyMet => unblock(life, now)?,
        Event::DependencyFailed => cancel_blocked(life, now)?,
    };
    Ok(Transition { from: life.state.name(), life: next })
}

fn claim(life: &Life, worker: WorkerId, until: Timestamp, now: Timestamp) -> Result<Life, Refusal> {
    match life.state {
        State::Pending { blocked_by: 0 } | State::Failed => {}
        State::Pending { .. } => return Err(Refusal::Blocked),
        State::Processing(_) | State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } => {
            return Err(Refusal::WrongState(life.state.name()));
        }
    }
    if !life.is_due(now) {
        return Err(Refusal::NotDue);
    }
    let lease = Lease::new(worker, now, until);
    Ok(Life { state: State::Processing(lease), attempts: life.attempts + 1, ..life.clone() })
}

fn extend(life: &Life, attempt: u32, until: Timestamp) -> Result<Life, Refusal> {
    let lease = current_lease(life, attempt)?;
    let lease = Lease { until, ..lease.clone() };
    Ok(with_state(life, State::Processing(lease)))
}

fn settle(
    life: &Life,
    attempt: u32,
    outcome: Outcome,
    loss: Loss,
    policy: &Policy,
    now: Timestamp,
) -> Result<Life, Refusal> {
    let cancel_requested = current_lease(life, attempt)?.cancel_requested;
    let settled = match outcome {
        Outcome::Success => {
            Life { losses: Losses::default(), ..with_state(life, State::Completed { finished_at: now }) }
        }
        Outcome::Failure { exit_code } if !policy.retry.retries(exit_code) => fail_for_good(life, now),
        Outcome::Failure { .. } | Outcome::Signal { .. } | Outcome::Timeout | Outcome::SpawnError => {
            fail(life, policy, now)
        }
        Outcome::Lost => lose(life, loss, policy, now),
        Outcome::Released => with_state(life, State::Pending { blocked_by: 0 }),
        Outcome::Cancelled => {
            with_state(life, cancelled(cancel_requested.unwrap_or(CancelReason::User), now))
        }
    };
    // A requested cancel decides every end but a success: a job that would be dead is cancelled too.
    let has_succeeded = settled.state.name() == StateName::Completed;
    match cancel_requested {
        Some(reason) if !has_succeeded => Ok(with_state(&settled, cancelled(reason, now))),
        Some(_) | None => Ok(settled),
    }
}

/// Counts one more failure.
fn with_failure(life: &Life) -> Life {
    let failures = life.failures.saturating_add(1);
    Life { failures, losses: Losses::default(), ..life.clone() }
}

fn fail_for_good(life: &Life, now: Timestamp) -> Life {
    let failed = with_failure(life);
    // If no retry was left, the exit code made no difference.
    let is_last = failed.failures > life.max_retries;
    let reason = if is_last { DeadReason::RetriesExhausted } else { DeadReason::NotRetried };
    with_state(&failed, dead(reason, now))
}

fn fail(life: &Life, policy: &Policy, now: Timestamp) -> Life {
    let failed = with_failure(life);
    if failed.failures > life.max_retries {
        return with_state(&failed, dead(DeadReason::RetriesExhausted, now));
    }
    Life {
        due_at: now.saturating_add(policy.backoff.wait(failed.failures, policy.roll)),
        ..with_state(&failed, State::Failed)
    }
}

/// The losses that a loss would add up to, or `None` if it is not counted, and the circumstances of the loss.
struct Loss {
    losses: Option<Losses>,
    loss_context: LossContext,
}

fn lose(life: &Life, loss: Loss, policy: &Policy, now: Timestamp) -> Life {
    let Some(losses) = loss.losses else {
        return with_state(life, State::Pending { blocked_by: 0 });
    };
    let is_at_limit = losses.count >= policy.crash_limit;
    let counted = Life { losses, ..life.clone() };
    match loss.loss_context {
        LossContext::Alone if is_at_limit => with_state(&counted, dead(DeadReason::CrashLimit, now)),
        // A job that kills its workers must not delay other jobs: it queues after those that are due.
        LossContext::Alone | LossContext::Others => {
            Life { due_at: life.due_at.max(now), ..with_state(&counted, State::Pending { blocked_by: 0 }) }
        }
    }
}

fn cancel(
    life: &Life,
    reason: CancelReason,
    signal: Option<Signal>,
    now: Timestamp,
) -> Result<Life, Refusal> {
    let state = match &life.state {
        State::Pending { .. } | State::Failed => cancelled(reason, now),
        State::Processing(lease) => {
            // Keep the first request's reason.
            let cancel_requested = lease.cancel_requested.or(Some(reason));
            // A later request may send another signal to a command that ignored the first.
            let cancel_signal = signal.or(lease.cancel_signal);
            // Its worker continues a paused command, so that the command can handle the signal.
            State::Processing(Lease { cancel_requested, cancel_signal, paused_at: None, ..lease.clone() })
        }
        State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } => {
            return Err(Refusal::WrongState(life.state.name()));
        }
    };
    Ok(with_state(life, state))
}

/// A job that is paused already stays paused since then.
fn pause(life: &Life, now: Timestamp) -> Result<Life, Refusal> {
    let lease = life.state.lease().ok_or(Refusal::WrongState(life.state.name()))?;
    if lease.cancel_requested.is_some() {
        return Err(Refusal::Cancelling);
    }
    let paused_at = lease.paused_at.or(Some(now));
    Ok(with_state(life, State::Processing(Lease { paused_at, ..lease.clone() })))
}

fn resume(life: &Life) -> Result<Life, Refusal> {
    let lease = life.state.lease().ok_or(Refusal::WrongState(life.state.name()))?;
    Ok(with_state(life, State::Processing(Lease { paused_at: None, ..lease.clone() })))
}

fn retry(life: &Life, blocked_by: u32, now: Timestamp) -> Result<Life, Refusal> {
    match life.state {
        State::Failed | State::Dead { .. } | State::Cancelled { .. } | State::Completed { .. } => {}
        State::Pending { .. } | State::Processing(_) => {
            return Err(Refusal::WrongState(life.state.name()));
        }
    }
    Ok(Life {
        due_at: life.run_at.map_or(now, |at| at.max(now)),
        failures: 0,
        losses: Losses::default(),
        ..with_state(life, State::Pending { blocked_by })
    })
}

fn unblock(life: &Life, now: Timestamp) -> Result<Life, Refusal> {
    match life.state.blocked_by() {
        0 => Err(Refusal::WrongState(life.state.name())),
        blocked_by => Ok(Life {
            // It becomes due when its last dependency ends, not when it was enqueued.
            due_at: if blocked_by == 1 { life.due_at.max(now) } else { life.due_at },
            ..with_state(life, State::Pending { blocked_by: blocked_by - 1 })
        }),
    }
}

fn cancel_blocked(life: &Life, now: Timestamp) -> Result<Life, Refusal> {
    match life.state.blocked_by() {
        0 => Err(Refusal::WrongState(life.state.name())),
        1.. => Ok(with_state(life, cancelled(CancelReason::Dependency, now))),
    }
}

fn current_lease(life: &Life, attempt: u32) -> Result<&Lease, Refusal> {
    life.state.lease().filter(|_| life.attempts == attempt).ok_or(Refusal::Stale { attempt })
}

fn with_state(life: &Life, state: State) -> Life {
    Life { state, ..life.clone() }
}

fn cancelled(reason: CancelReason, now: Timestamp) -> State {
    State::Cancelled { finished_at: now, reason }
}

fn dead(reason: DeadReason, now: Timestamp) -> State {
    State::Dead { finished_at: now, reason }
}

#[cfg(test)]
mod tests;

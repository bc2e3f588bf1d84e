//! One attempt, top to bottom: prepare, write the record, start, watch, and report the outcome.

pub mod capture;
pub(crate) mod child;
pub(crate) mod command;
pub(crate) mod cookie;
pub(crate) mod input;
pub(crate) mod last_line;
pub(crate) mod limits;
pub(crate) mod log_file;
pub(crate) mod pause;
pub(crate) mod pipes;
pub(crate) mod program;
pub(crate) mod slot_records;
mod traces;
pub(crate) mod variables;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use self::capture::{Capture, CapturedOutput};
use self::child::{Cause, Child, Start, Supervision};
use super::orphans::containment::{Containment, SlotGroup};
use super::orphans::reparented::{OrphanFilter, Orphans};

use self::command::SpawnProblem;
use self::cookie::Cookie;
use self::limits::AttemptLimits;
use self::slot_records::Slots;
use self::traces::AttemptTrace;
use super::error::EngineError;
use super::journal::Journal;
use super::worker::dispatcher::{Dispatcher, Interrupt, SlotBell, SlotReport};
use super::worker::lease_keeper::CUT_OFF;
use super::worker::spool::Spool;
use domain::job::Usage;
use domain::job::limits::ExceededLimit;
use domain::job::outcome::{Outcome, error_line, exceeded_limit_line};
use domain::log;
use domain::settings::Traces;
use domain::values::signal::Signal;
use store::{Claim, Settlement};
use sys::cgroup::Group;
use sys::failpoint;
use sys::process::ChildExit;
use sys::process::spawn::GroupError;

/// The data that all attempts of a worker share.
#[derive(Debug)]
pub(super) struct AttemptContext {
    pub(super) command: command::Context,
    pub(super) logs: PathBuf,
    /// If the store keeps the output of attempts.
    pub(super) spool: Option<Arc<Spool>>,
    pub(super) slots: Slots,
    pub(super) orphans: Orphans,
    pub(super) containment: Containment,
    /// Whether this worker was ever short of descriptors, processes or memory.
    pub(super) was_short: AtomicBool,
    /// A caller is following this worker's only job.
    pub(super) is_followed: bool,
}

/// The slot in which an attempt runs.
#[derive(Debug)]
pub(super) struct SlotContext<'a> {
    pub(super) bell: &'a SlotBell,
    pub(super) journal: &'a Journal,
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) number: usize,
    /// The group of its commands; `None` if this worker cannot make groups.
    pub(super) group: Option<SlotGroup<'a>>,
}

impl SlotContext<'_> {
    fn group(&self) -> Option<&Group> {
        self.group.as_ref()?.group()
    }
}

/// The settings that apply to an attempt that starts now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) kill_grace: Duration,
    pub(super) log_max_bytes: u64,
    pub(super) traces: Traces,
}

/// An attempt that has ended.
#[derive(Debug)]
pub(super) struct FinishedAttempt {
    pub(super) began: Instant,
    /// `None` if the lease was lost: nothing may be recorded.
    pub(super) settlement: Option<Settlement>,
    /// The index of its slot record, if the command was started.
    pub(super) record: Option<u64>,
    /// Why this worker cannot start any command now. That is not the job's fault, so the job is released.
    pub(super) obstacle: Option<EngineError>,
}

pub(super) fn run(
    claim: &Claim,
    rules: Rules,
    context: &AttemptContext,
    slot: &mut SlotContext<'_>,
) -> FinishedAttempt {
    let began = Instant::now();
    let path = context.logs.join(log::file_name(claim.number, claim.lease.attempt));
    let mut capture = Capture::new(path, rules.log_max_bytes);
    if let Some(spool) = &context.spool {
        spool.begin(&claim.lease, claim.number);
    }
    if context.is_followed {
        capture.watch();
    }
    let trace = AttemptTrace::of(claim, &context.command, rules.traces == Traces::File);
    let (record, ending) = match start(claim, trace.as_ref(), context, slot) {
        Ok(RunningAttempt { record, child, limits }) => {
            slot.journal.started(claim);
            let attempt = claim.lease.attempt.to_string();
            let owner = [(variables::JOB_ID, claim.lease.job.as_str()), (variables::ATTEMPT, &attempt)];
            let supervision = Supervision {
                timeout: claim.timeout,
                kill_grace: rules.kill_grace,
                bell: slot.bell,
                orphans: &context.orphans,
                filter: OrphanFilter {
                    leader: child.pid,
                    cookie: Cookie { worker: &context.command.worker_id, owner: &owner },
                    record_lock: Some(&context.slots.lock(record)),
                    group: slot.group.as_ref(),
                },
                limits: limits.as_ref(),
                report: Some(SlotReport {
                    dispatcher: slot.dispatcher,
                    slot: slot.number,
                    lease: &claim.lease,
                }),
            };
            let (cause, ended) = child.run(supervision, &mut capture);
            let exceeded = limits.zip(slot.group()).and_then(|(limits, group)| limits.exceeded_by(group));
            (Some(record), ending(cause, ended, exceeded))
        }
        Err(StartFailure::Job(problem)) => (None, Ending::failed_to_start(problem)),
        Err(StartFailure::Worker(obstacle)) => {
            context.was_short.store(true, Ordering::Relaxed);
            return released(claim, began, obstacle);
        }
    };
    failpoint::hit("attempt.before_settle");
    let captured = if context.spool.is_some() { capture.finish_in_place() } else { capture.finish() };
    let settlement = settlement(claim, ending, captured, began);
    if let (Traces::File, Some(trace), Some(settlement)) = (rules.traces, &trace, &settlement)
        && let Err(error) = trace.record(&context.command, claim, settlement)
    {
        slot.journal.note_repeatable(format!("failed to write traces.jsonl: {error}"));
    }
    if let Some(spool) = context.spool.as_ref().filter(|_| settlement.is_none()) {
        spool.lose(&claim.lease);
    }
    FinishedAttempt { began, settlement, record, obstacle: None }
}

/// A command that was started.
struct RunningAttempt {
    /// The index of its slot record.
    record: u64,
    child: Child,
    limits: Option<AttemptLimits>,
}

/// Why a command was not started.
enum StartFailure {
    /// The job's command cannot be started.
    Job(String),
    /// This worker cannot start any command: without a record no other process would know that it runs.
    Worker(EngineError),
}

fn released(claim: &Claim, began: Instant, obstacle: EngineError) -> FinishedAttempt {
    let settlement = Settlement::never_started(claim.lease.clone());
    FinishedAttempt { began, settlement: Some(settlement), record: None, obstacle: Some(obstacle) }
}

/// Starts the command. From then on only the command and its descendants hold the lock on its record.
fn start(
    claim: &Claim,
    trace: Option<&AttemptTrace>,
    context: &AttemptContext,
    slot: &mut SlotContext<'_>,
) -> Result<RunningAttempt, StartFailure> {
    let of_job = |problem: SpawnProblem| StartFailure::Job(problem.to_string());
    let plan = command::prepare(claim, trace, &context.command).map_err(of_job)?;
    let limits = AttemptLimits::prepare(claim, &context.containment).map_err(of_job)?;
    let bounds = limits.as_ref().map(AttemptLimits::bounds).unwrap_or_default();
    if let Some(group) = &mut slot.group {
        group.prepare(bounds).map_err(|error| StartFailure::Worker(cannot_make_group(error)))?;
    }
    let cannot_write = EngineError::system("failed to write the record of an attempt");
    let record = context.slots.begin(&claim.lease).map_err(|e| StartFailure::Worker(cannot_write(e)))?;
    failpoint::hit("attempt.before_spawn");
    let at_start = limits.as_ref().map(AttemptLimits::at_start).unwrap_or_default();
    let stdin = claim.stdin.as_deref().map(input::readable).transpose();
    let stdin = stdin.map_err(|error| StartFailure::Worker(cannot_start(error)))?;
    let start = |group: Option<&Group>| {
        let input = stdin.as_ref().map(AsFd::as_fd);
        Child::start(Start { plan: &plan, input, record: Some(&record), limits: at_start, group })
    };
    let mut started = start(slot.group());
    if started.as_ref().is_err_and(is_group_error)
        && slot.group.as_mut().is_some_and(|group| group.renew(bounds).is_ok())
    {
        started = start(slot.group());
    }
    match started {
        Ok(child) => {
            context.orphans.add_leader(child.pid);
            failpoint::hit("attempt.after_record");
            if let Some(limits) = &limits {
                limits.has_started(child.pid);
            }
            Ok(RunningAttempt { record: record.index(), child, limits })
        }
        Err(error) => {
            context.slots.clear_record(record.index());
            Err(if is_resource_shortage(&error) || is_group_error(&error) {
                StartFailure::Worker(cannot_start(error))
            } else {
                StartFailure::Job(command::start_problem(&plan, &error))
            })
        }
    }
}

fn cannot_make_group(error: io::Error) -> EngineError {
    EngineError::system("failed to create the cgroup of a slot")(error)
}

fn cannot_start(error: io::Error) -> EngineError {
    EngineError::system("failed to start a command")(error)
}

/// Whether the system is out of descriptors, processes or memory, which is not the job's fault.
fn is_resource_shortage(error: &io::Error) -> bool {
    let scarce = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|errno| scarce.contains(&errno))
}

/// Whether the group of the slot accepts no process, which is not the job's fault either.
fn is_group_error(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<GroupError>()).is_some()
}

/// How an attempt ended.
struct Ending {
    /// `None` if its lease was lost.
    outcome: Option<Outcome>,
    /// The error of the worker, if it failed to start or watch the command.
    problem: Option<String>,
    /// The limit that it exceeded.
    exceeded: Option<ExceededLimit>,
    /// The worker ended it because it could not renew its lease.
    is_cut_off: bool,
    usage: Usage,
}

impl Ending {
    fn failed_to_start(problem: String) -> Self {
        Self {
            outcome: Some(Outcome::SpawnError),
            problem: Some(problem),
            exceeded: None,
            is_cut_off: false,
            usage: Usage::default(),
        }
    }
}

fn ending(cause: Option<Cause>, ended: io::Result<ChildExit>, exceeded: Option<ExceededLimit>) -> Ending {
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return Ending::failed_to_start(format!("failed to read its exit status: {error}")),
    };
    let outcome = match cause {
        None => Some(outcome_of(ended.status)),
        Some(Cause::LimitExceeded(_)) => Some(Outcome::Signal { signal: Signal::KILL }),
        Some(Cause::Timeout) => Some(Outcome::Timeout),
        Some(Cause::Interrupt(Interrupt::Cancel(_))) => Some(Outcome::Cancelled),
        Some(Cause::Interrupt(
            Interrupt::Release | Interrupt::ReleaseAtOnce | Interrupt::CutOff | Interrupt::CutOffAtOnce,
        )) => Some(Outcome::Released),
        Some(Cause::Interrupt(Interrupt::Lost)) => None,
    };
    let exceeded = match cause {
        Some(Cause::LimitExceeded(seen)) => Some(seen),
        Some(Cause::Timeout | Cause::Interrupt(_)) | None => exceeded,
    };
    let usage = Usage { cpu: Some(ended.cpu), max_rss_bytes: ended.max_rss_bytes };
    let is_cut_off = matches!(cause, Some(Cause::Interrupt(Interrupt::CutOff | Interrupt::CutOffAtOnce)));
    Ending { outcome, problem: None, exceeded, is_cut_off, usage }
}

pub(super) fn outcome_of(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal().and_then(Signal::from_number)) {
        (Some(0), _) => Outcome::Success,
        (Some(exit_code), _) => Outcome::Failure { exit_code },
        (None, Some(signal)) => Outcome::Signal { signal },
        // Not reachable: a wait status has an exit code or a signal.
        (None, None) => Outcome::Failure { exit_code: status.into_raw() },
    }
}

fn settlement(claim: &Claim, ending: Ending, captured: CapturedOutput, began: Instant) -> Option<Settlement> {
    let ended = Instant::now();
    let outcome = ending.outcome?;
    let last_words = ending.problem.or(captured.last_error_line);
    Some(Settlement {
        lease: claim.lease.clone(),
        outcome,
        error: match ending.exceeded {
            Some(_) | None if ending.is_cut_off => Some(CUT_OFF.to_owned()),
            Some(exceeded) => exceeded_limit_line(outcome, exceeded, last_words.as_deref()),
            None => error_line(outcome, last_words.as_deref()),
        },
        duration: ended.duration_since(began),
        ended: Some(ended),
        usage: ending.usage,
        log_bytes: captured.log_bytes,
        output: captured.output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_shortage_is_distinguished_from_a_fault_of_the_job() {
        let is_resource_shortage =
            |errno: Errno| is_resource_shortage(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!(
            [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN].into_iter().all(is_resource_shortage)
        );
        assert!(
            ![Errno::NOENT, Errno::ACCESS, Errno::TOOBIG, Errno::NOTDIR]
                .into_iter()
                .any(is_resource_shortage)
        );
    }
}

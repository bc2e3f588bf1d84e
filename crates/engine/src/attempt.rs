//! One attempt, top to bottom: prepare, write down, start, watch to its end, say what came of it.

pub mod capture;
pub(crate) mod child;
pub(crate) mod command;
pub(crate) mod cookie;
pub(crate) mod last_line;
pub(crate) mod limits;
pub(crate) mod log_file;
pub(crate) mod pipes;
pub(crate) mod program;
pub(crate) mod slot_records;
pub(crate) mod variables;

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::attempt::capture::Capture;
use super::attempt::child::{Cause, Child, Oversight};
use super::orphans::reparented::Adopted;

use super::attempt::cookie::{Bearer, Cookie};
use super::attempt::limits::{Confinement, Means};
use super::attempt::slot_records::Slots;
use super::error::EngineError;
use super::journal::Journal;
use super::worker::dispatcher::{Desk, Interrupt, SlotBell, SlotReport};
use domain::job::Usage;
use domain::job::limits::Excess;
use domain::job::outcome::{Outcome, error_line, excess_line};
use domain::log;
use domain::values::signal::Signal;
use store::{Claim, LeaseRef, Settlement};
use sys::failpoint;
use sys::process::ChildExit;
use sys::process::brand::Brand;

/// What all attempts of a worker share.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) command: command::Context,
    pub(super) logs: PathBuf,
    pub(super) slots: Slots,
    pub(super) adopted: Adopted,
    pub(super) means: Means,
    /// A caller is following this worker's only job.
    pub(super) has_reader: bool,
}

/// The slot in which an attempt runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) bell: &'a SlotBell,
    /// What everything bears that is started here, where that is allowed.
    pub(super) brand: Option<Brand>,
    pub(super) journal: &'a Journal,
    pub(super) desk: &'a Desk,
    pub(super) number: usize,
}

/// What the settings say about an attempt that starts now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) kill_grace: Duration,
    pub(super) log_max_bytes: u64,
}

/// An attempt that is over.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) began: Instant,
    /// `None` where the lease was lost: nothing of it may be recorded.
    pub(super) settlement: Option<Settlement>,
    /// The record that says that it was started, if it was.
    pub(super) record: Option<u64>,
    /// Why this worker cannot start anything now, if so: no fault of the job, which is given back.
    pub(super) obstacle: Option<EngineError>,
}

pub(super) fn run(claim: &Claim, rules: Rules, around: &Surroundings, place: Place<'_>) -> Finished {
    let began = Instant::now();
    let path = around.logs.join(log::file_name(claim.number, claim.lease.attempt));
    let mut capture = Capture::new(path, rules.log_max_bytes);
    if around.has_reader {
        capture.watch();
    }
    let (record, ending) = match start(claim, around) {
        Ok(Running { record, child, confinement }) => {
            place.journal.started(claim);
            let LeaseRef { job, attempt } = claim.lease.clone();
            let of = Bearer::Attempt { job, attempt };
            let cookie = Cookie { worker: around.command.worker_id.clone(), of };
            let oversight = Oversight {
                timeout: claim.timeout,
                kill_grace: rules.kill_grace,
                bell: place.bell,
                brand: place.brand,
                adopted: &around.adopted,
                cookie: &cookie,
                mark: &around.slots.mark(record),
                confinement: confinement.as_ref(),
                report: SlotReport { desk: place.desk, slot: place.number, lease: &claim.lease },
            };
            let (cause, ended) = child.run(oversight, &mut capture);
            let excess = confinement.and_then(Confinement::end);
            (Some(record), ending(cause, ended, excess))
        }
        Err(NotStarted::Job(problem)) => (None, Ending::failed_to_start(problem)),
        Err(NotStarted::Worker(obstacle)) => return given_back(claim, began, obstacle),
    };
    failpoint::hit("attempt.before_settle");
    let settlement = settlement(claim, ending, capture, began);
    Finished { began, settlement, record, obstacle: None }
}

/// A command that was started.
struct Running {
    /// The number of its record.
    record: u64,
    child: Child,
    confinement: Option<Confinement>,
}

/// Why a command was not started.
enum NotStarted {
    /// It cannot be.
    Job(String),
    /// Whatever it is, this worker could not: without a record nobody would know that it runs.
    Worker(EngineError),
}

fn given_back(claim: &Claim, began: Instant, obstacle: EngineError) -> Finished {
    let settlement = Settlement::never_started(claim.lease.clone());
    Finished { began, settlement: Some(settlement), record: None, obstacle: Some(obstacle) }
}

/// Starts the command. From here on only it and what it starts hold the lock on its record.
fn start(claim: &Claim, around: &Surroundings) -> Result<Running, NotStarted> {
    let plan =
        command::prepare(claim, &around.command).map_err(|problem| NotStarted::Job(problem.to_string()))?;
    let confinement = Confinement::prepare(claim, &around.means, around.command.worker_id.as_str())
        .map_err(|unkept| NotStarted::Job(unkept.to_string()))?;
    let limits = confinement.as_ref().map(Confinement::at_start).unwrap_or_default();
    let cannot_write = EngineError::system("failed to write down what is about to be started");
    let record = around.slots.begin(&claim.lease).map_err(|e| NotStarted::Worker(cannot_write(e)))?;
    failpoint::hit("attempt.before_spawn");
    match Child::start(&plan, &record, limits) {
        Ok(child) => {
            around.adopted.began(child.pid);
            failpoint::hit("attempt.after_record");
            if let Some(confinement) = &confinement {
                confinement.has_started(child.pid);
            }
            Ok(Running { record: record.index(), child, confinement })
        }
        Err(error) => {
            around.slots.give_back(record.index());
            Err(if is_scarcity(&error) {
                NotStarted::Worker(cannot_start(error))
            } else {
                // If it is the folder, an error that names it says more.
                let cwd = command::check_cwd(plan.cwd()).err();
                NotStarted::Job(cwd.map_or(error.to_string(), |problem| problem.to_string()))
            })
        }
    }
}

fn cannot_start(error: io::Error) -> EngineError {
    EngineError::system("failed to start a command")(error)
}

/// Whether this says that there are no more descriptors, processes or memory to be had: no job is to blame for that.
fn is_scarcity(error: &io::Error) -> bool {
    let scarce = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|errno| scarce.contains(&errno))
}

/// How an attempt ended.
struct Ending {
    /// `None`: its lease was lost.
    outcome: Option<Outcome>,
    /// What went wrong on our side of it.
    problem: Option<String>,
    /// Which limit it was killed for.
    excess: Option<Excess>,
    usage: Usage,
}

impl Ending {
    fn failed_to_start(problem: String) -> Self {
        Self {
            outcome: Some(Outcome::SpawnError),
            problem: Some(problem),
            excess: None,
            usage: Usage::default(),
        }
    }
}

fn ending(cause: Option<Cause>, ended: io::Result<ChildExit>, excess: Option<Excess>) -> Ending {
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return Ending::failed_to_start(format!("how it ended is unknown: {error}")),
    };
    let outcome = match cause {
        None => Some(outcome_of(ended.status)),
        Some(Cause::Excess(_)) => Some(Outcome::Signal { signal: Signal::KILL }),
        Some(Cause::Timeout) => Some(Outcome::Timeout),
        Some(Cause::Interrupt(Interrupt::Cancel)) => Some(Outcome::Cancelled),
        Some(Cause::Interrupt(Interrupt::Release | Interrupt::ReleaseAtOnce)) => Some(Outcome::Released),
        Some(Cause::Interrupt(Interrupt::Lost)) => None,
    };
    let excess = match cause {
        Some(Cause::Excess(seen)) => Some(seen),
        Some(Cause::Timeout | Cause::Interrupt(_)) | None => excess,
    };
    let usage = Usage { cpu: Some(ended.cpu), max_rss_bytes: ended.max_rss_bytes };
    Ending { outcome, problem: None, excess, usage }
}

pub(super) fn outcome_of(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal().and_then(Signal::from_number)) {
        (Some(0), _) => Outcome::Success,
        (Some(exit_code), _) => Outcome::Failure { exit_code },
        (None, Some(signal)) => Outcome::Signal { signal },
        // A wait status is one or the other.
        (None, None) => Outcome::Failure { exit_code: status.into_raw() },
    }
}

fn settlement(claim: &Claim, ending: Ending, capture: Capture, began: Instant) -> Option<Settlement> {
    let ended = Instant::now();
    let captured = capture.finish();
    let outcome = ending.outcome?;
    let last_words = ending.problem.or(captured.last_error_line);
    Some(Settlement {
        lease: claim.lease.clone(),
        outcome,
        error: match ending.excess {
            Some(excess) => excess_line(outcome, excess, last_words.as_deref()),
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
    fn what_there_is_not_enough_of_is_told_from_what_a_job_lacks() {
        let is_scarcity = |errno: Errno| is_scarcity(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!([Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN].into_iter().all(is_scarcity));
        assert!(![Errno::NOENT, Errno::ACCESS, Errno::TOOBIG, Errno::NOTDIR].into_iter().any(is_scarcity));
    }
}

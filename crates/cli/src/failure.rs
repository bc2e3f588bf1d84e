//! Failures as the user sees them: one line, a hint where one helps, and an exit code.

use std::io::{self, Write};
use sys::program::ExitCode;

use clap::ColorChoice;
use serde::Serialize;

use super::context::{notes, width_of_notes, write_json_line};
use super::render::text::{printable, wrap_after_label};
use domain::values::name::JobId;
use engine::EngineError;
use ops::OpError;
use ops::error::{Kind, chain, judge, without_os_codes};
use ops::home::ownership::advice;
use proof::ProofError;
use store::StoreError;
use sys::fs::ownership::OwnershipError;

/// The exit codes of the program, except 0 and the codes of commands that `run` passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exit {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
    Unavailable = 5,
    Unknown = 6,
    Corrupt = 7,
    TimedOut = 124,
}

/// For what is only said after a change that is stored: a store that cannot be reached any more is then no failure.
pub(crate) fn unless_cut_off(said: Result<(), Failure>) -> Result<(), Failure> {
    match said {
        Err(failure) if failure.exit == Exit::Unavailable => Ok(()),
        said => said,
    }
}

impl From<Kind> for Exit {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Failed | Kind::HookFailed => Self::Failed,
            Kind::Usage | Kind::Malformed => Self::Usage,
            Kind::NotFound | Kind::Gone => Self::NotFound,
            Kind::Conflict => Self::Conflict,
            Kind::Busy | Kind::Full | Kind::Unavailable => Self::Unavailable,
            Kind::Unknown => Self::Unknown,
            Kind::Corrupt => Self::Corrupt,
            Kind::TimedOut => Self::TimedOut,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    message: String,
    hint: Option<String>,
    /// Jobs that may or may not have been stored.
    ids: Vec<JobId>,
}

/// Longer messages are truncated: they may quote input of any length.
const MAX_MESSAGE_CHARS: usize = 1_000;

impl Failure {
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self { exit, message: without_os_codes(&message), hint: None, ids: Vec::new() }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds a hint to the one that there may be.
    pub(super) fn with_further_hint(self, further: String) -> Self {
        let hint = match &self.hint {
            Some(hint) => format!("{hint}; {further}"),
            None => further,
        };
        self.with_hint(hint)
    }

    /// Whether the store could not be used, so that the next call would fail in the same way.
    pub(super) fn is_of_store(&self) -> bool {
        matches!(self.exit, Exit::Unavailable | Exit::Unknown)
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Converts clap's error: its first paragraph becomes the message, the usage line the hint.
    pub(super) fn from_usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let message: Vec<&str> = message.lines().map(str::trim).collect();
        let message = message.join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
        let hint = usage.map(|usage| format!("usage: {usage}"));
        Self { hint, ..Self::usage(message) }
    }
}

impl Failure {
    /// Appends to the hint.
    pub(super) fn and_hint(self, more: Option<String>) -> Self {
        let hints: Vec<String> = self.hint.into_iter().chain(more).collect();
        Self { hint: (!hints.is_empty()).then(|| hints.join("; ")), ..self }
    }
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Self {
        let ((kind, hint), ids) = (judge(&error), error.unacknowledged().to_vec());
        Self { hint, ids, ..Self::new(kind.into(), chain(&error)) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        OpError::from(error).into()
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::WorkerLives { .. } => Self::new(Exit::Conflict, chain(&error))
                .with_hint("`queuectl worker stop` stops workers after they finish their running jobs"),
            EngineError::CannotForget { .. } => Self::new(Exit::Conflict, chain(&error)).with_hint(
                "a worker releases them once those processes have ended; `queuectl status` shows the details",
            ),
            EngineError::System { ref source, .. } | EngineError::CannotMake { ref source, .. }
                if refused_file(source).is_some() =>
            {
                let hint = refused_file(source).map(advice);
                Self { hint, ..Self::new(Exit::Unavailable, chain(&error)) }
            }
            EngineError::System { .. }
            | EngineError::CannotMake { .. }
            | EngineError::NoChildrenList
            | EngineError::NoSupervisor
            | EngineError::DeclaredDead
            | EngineError::CannotStart { .. }
            | EngineError::GaveUp { .. } => Self::new(Exit::Failed, chain(&error)),
        }
    }
}

/// The file that was not opened because of its owner or its kind.
fn refused_file(error: &io::Error) -> Option<&OwnershipError> {
    error.get_ref()?.downcast_ref()
}

impl From<ProofError> for Failure {
    fn from(error: ProofError) -> Self {
        Self::new(Exit::Failed, chain(&error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Failed, format!("failed to write the output ({error})"))
    }
}

/// The exit code of `doctor` when it found an error: that of any other verb if the store cannot be used, else 1.
pub(super) fn exit_of_diagnosis(refusal: Option<&OpError>) -> Exit {
    let exit = refusal.map(|error| Exit::from(judge(error).0));
    exit.filter(|exit| matches!(exit, Exit::Unavailable | Exit::Corrupt)).unwrap_or(Exit::Failed)
}

#[derive(Serialize)]
struct FailureJson<'a> {
    error: &'a str,
    exit_code: u8,
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ids: Vec<&'a str>,
}

/// Prints the failure on standard error and returns its exit code.
pub(super) fn report(failure: &Failure, as_json: bool, color: ColorChoice) -> ExitCode {
    // An error here means that standard error is closed, and there is nowhere left to report it.
    let _ = if as_json { report_json(failure) } else { report_text(failure, color) };
    failure.exit.into()
}

fn truncate(message: &str) -> String {
    let mut kept: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    if kept.len() < message.len() {
        kept.push('…');
    }
    kept
}

fn report_json(failure: &Failure) -> io::Result<()> {
    let hint = failure.hint.as_deref().map(truncate);
    let value = FailureJson {
        error: &truncate(&failure.message),
        exit_code: failure.exit as u8,
        hint: hint.as_deref(),
        // Never truncated: the caller has no other way to learn generated ids.
        ids: failure.ids.iter().map(JobId::as_str).collect(),
    };
    write_json_line(&mut io::stderr().lock(), &value)
}

fn report_text(failure: &Failure, color: ColorChoice) -> io::Result<()> {
    let mut out = notes(color);
    let (red, dim) = (anstyle::AnsiColor::Red.on_default().bold(), anstyle::Style::new().dimmed());
    let after = |label: &str, text: &str| {
        wrap_after_label(&printable(&truncate(text)), label.len(), width_of_notes())
    };
    writeln!(out, "{red}error:{red:#} {}", after("error: ", &failure.message))?;
    if let Some(hint) = &failure.hint {
        writeln!(out, "{dim}hint: {}{dim:#}", after("hint: ", hint))?;
    }
    Ok(())
}

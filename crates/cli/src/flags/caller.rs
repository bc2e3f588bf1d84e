//! The working directory and environment that a new job inherits from the process that enqueues it.

use std::io::{self, Read};
use std::sync::Arc;

use crate::context::Context;
use crate::failure::Failure;
use domain::job::trace::{TraceContext, VARIABLES};
use ops::OpError;
use ops::home::location::StoreAddress;
use ops::jobs::enqueue::Caller;

/// The most standard input that a job can have: it is kept in the database, and in the memory of the worker that runs it.
const MAX_STDIN_BYTES: u64 = 16 << 20;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CallerFlags {
    /// If a job with this id exists, return it instead of failing
    #[arg(long, help_heading = "Duplicates")]
    if_absent: bool,
    #[command(flatten)]
    capture: CaptureFlags,
    /// Read standard input (at most 16 MiB), keep it with the job, and give it to every attempt
    #[arg(long, help_heading = "Job")]
    stdin: bool,
}

/// Which environment a job gets.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct CaptureFlags {
    /// Run with the worker's environment instead of the current one
    #[arg(long, help_heading = "Job")]
    no_env_capture: bool,
    /// Run with the current environment; the default unless the queue is in PostgreSQL
    #[arg(long, help_heading = "Job", conflicts_with = "no_env_capture")]
    env_capture: bool,
}

impl CaptureFlags {
    /// The directory and the environment of this process, as far as a new job inherits them. A queue on a server has workers
    /// on other machines, where the directory may not exist and the environment means something else.
    pub(crate) fn caller(self, context: &Context) -> Result<Caller, Failure> {
        let location = context.location()?;
        let runs_elsewhere = match &location.store {
            StoreAddress::Sqlite(_) => false,
            StoreAddress::Postgres(_) => true,
        };
        let captures = self.env_capture || !self.no_env_capture && !runs_elsewhere;
        Ok(Caller {
            cwd: working_directory(),
            runs_elsewhere,
            environment: captures.then(|| Arc::new(location.environment())),
            trace: trace(),
            ..Caller::default()
        })
    }
}

impl CallerFlags {
    pub(crate) fn passes_input(&self) -> bool {
        self.stdin
    }

    /// For a call that makes several jobs, or none from the flags.
    pub(crate) fn refuse_stdin(&self) -> Result<(), Failure> {
        if !self.stdin {
            return Ok(());
        }
        Err(Failure::usage("--stdin gives standard input to one job")
            .with_hint("write `queuectl enqueue --stdin COMMAND`; jobs of a list can read files"))
    }

    pub(crate) fn caller(&self, context: &Context) -> Result<Caller, Failure> {
        Ok(Caller {
            stdin: if self.stdin { read_stdin()? } else { None },
            if_absent: self.if_absent,
            ..self.capture.caller(context)?
        })
    }
}

/// `None` if it is empty.
fn read_stdin() -> Result<Option<Arc<[u8]>>, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|source| OpError::CannotRead { path: "standard input".into(), source })?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(Failure::usage(
            "standard input is larger than 16 MiB, which is the most that --stdin keeps",
        )
        .with_hint("write it to a file, and let the command read that: `queuectl run 'COMMAND < FILE'`"));
    }
    Ok((!bytes.is_empty()).then(|| bytes.into()))
}

/// The caller's working directory; none if it was deleted or its path is not UTF-8.
fn working_directory() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}

/// The trace that this process is in. Without the first variable nothing more is read.
fn trace() -> Option<Box<TraceContext>> {
    let [parent, state, baggage] = VARIABLES;
    let read = |name| std::env::var(name).ok();
    let values = [(parent, Some(read(parent)?)), (state, read(state)), (baggage, read(baggage))];
    let value_of = |name| values.iter().find(|(known, _)| *known == name)?.1.as_deref();
    TraceContext::read(value_of).map(Box::new)
}

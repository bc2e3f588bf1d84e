//! `queuectl service`: one file per verb.

mod install;
mod logs;
mod restart;
mod status;
mod uninstall;

use sys::program::ExitCode;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use ops::error::chain;
use ops::worker::service::{Scope, ServiceError, ServiceKind, ServiceName};
use sys::process::user;

/// Run workers or the dashboard as a systemd service, from boot on
///
/// Without --user or --system, root manages a service of the machine, and every other user a service of their own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl service install --concurrency 4
  sudo queuectl service install --account queuectl
  queuectl service install --dashboard
  queuectl service status
  queuectl service logs -f
  queuectl service restart")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ServiceVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ServiceVerb {
    Install(install::Args),
    Uninstall(uninstall::Args),
    Restart(restart::Args),
    Status(status::Args),
    Logs(logs::Args),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    match &args.verb {
        ServiceVerb::Install(args) => install::run(args, context)?,
        ServiceVerb::Uninstall(args) => uninstall::run(args, context)?,
        ServiceVerb::Restart(args) => restart::run(args, context)?,
        ServiceVerb::Status(args) => return status::run(args, context),
        ServiceVerb::Logs(args) => logs::run(args, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Which service a verb is about.
#[derive(Clone, Debug, clap::Args)]
struct WhichService {
    /// The service of this user; the user's own systemd runs it
    #[arg(long, conflicts_with = "system")]
    user: bool,
    /// The service of the machine
    #[arg(long)]
    system: bool,
    /// One of several services; each can have its own queues or home [default: the unit queuectl-worker]
    #[arg(long, value_name = "NAME")]
    name: Option<ServiceName>,
    /// The dashboard instead of workers; a browser starts it
    #[cfg(feature = "dashboard")]
    #[arg(long)]
    dashboard: bool,
}

impl WhichService {
    fn scope(&self) -> Scope {
        let is_system = self.system || (!self.user && user::number() == user::ROOT);
        if is_system { Scope::System } else { Scope::User }
    }

    /// Says this about workers, for whose jobs the verb waits.
    fn note(&self, context: &Context, text: &str) -> Result<(), Failure> {
        match self.kind() {
            ServiceKind::Workers => context.note(text),
            ServiceKind::Dashboard => Ok(()),
        }
    }

    fn name(&self) -> ServiceName {
        self.name.clone().unwrap_or_default().of(self.kind())
    }

    #[cfg(feature = "dashboard")]
    fn kind(&self) -> ServiceKind {
        if self.dashboard { ServiceKind::Dashboard } else { ServiceKind::Workers }
    }

    #[cfg(not(feature = "dashboard"))]
    #[expect(clippy::unused_self, reason = "the feature decides")]
    fn kind(&self) -> ServiceKind {
        ServiceKind::Workers
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let (exit, hint) = match &error {
            ServiceError::NoSystemd => {
                (Exit::Failed, "start workers with `queuectl worker start`, or with your service manager")
            }
            ServiceError::NotInstalled(_) => (Exit::NotFound, "install it with `queuectl service install`"),
            ServiceError::NotRoot => {
                (Exit::Failed, "use sudo, or leave out --system: a service of your own needs no rights")
            }
            ServiceError::Password => (
                Exit::Usage,
                "put the address into config.toml in the home (mode 0600), or the password into ~/.pgpass",
            ),
            ServiceError::Refused { .. } => (Exit::Failed, "`queuectl service logs` shows its last lines"),
            ServiceError::NotText(_)
            | ServiceError::NotADirectory(_)
            | ServiceError::HiddenByPrivateTmp(_)
            | ServiceError::NoConfigFolder => {
                return Self::new(Exit::Usage, chain(&error));
            }
            ServiceError::NoAccount(_)
            | ServiceError::CannotWrite { .. }
            | ServiceError::CannotRun { .. } => return Self::new(Exit::Failed, chain(&error)),
        };
        Self::new(exit, chain(&error)).with_hint(hint)
    }
}

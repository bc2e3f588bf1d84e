//! `queuectl service install`

use std::io::Write;
use std::path::{Path, PathBuf};

use super::WhichService;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
#[cfg(feature = "dashboard")]
use crate::verbs::workers::dashboard::entrance::failure;
use crate::verbs::workers::worker::PoolFlags;
use ops::home::location::{LocationArgs, StoreAddress, absolute_path, locate, named_home, named_store};
use ops::worker::service::examples::examples;
use ops::worker::service::install::{Installed, UnitChange, install};
use ops::worker::service::systemd::is_booted;
use ops::worker::service::unit::{socket_unit, unit};
use ops::worker::service::{Scope, Service, ServiceError, ServiceKind};

/// The home of a service with an account of its own, unless another is named.
const HOME_OF_ACCOUNT: &str = "/var/lib/queuectl";

/// What [`PoolFlags::words`] says where none was given.
const NO_POOL_FLAGS: [&str; 2] = ["--count", "1"];

/// Write a systemd unit for workers, enable it and start it
///
/// The service starts with the machine and again after a crash. A stop lets the running jobs finish. Installing again
/// replaces the unit and restarts the service when its jobs have finished. Without systemd, examples for other service
/// managers are printed. With --dashboard, systemd opens the sockets, and starts the dashboard when a browser connects.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl service install --concurrency auto
  queuectl service install --name mail --queue mail
  sudo queuectl service install --account queuectl --writable /srv/reports
  queuectl service install --dashboard --listen 127.0.0.1:8000
  queuectl service install --dry-run")]
pub(super) struct Args {
    #[command(flatten)]
    which: WhichService,
    #[command(flatten)]
    pool: PoolFlags,
    /// Run jobs as this account, in a sandbox; a missing account is created [its default home: /var/lib/queuectl]
    #[arg(long, value_name = "USER", conflicts_with = "user")]
    account: Option<String>,
    /// Another directory in which jobs may write
    #[arg(long, value_name = "DIR", requires = "account")]
    writable: Vec<PathBuf>,
    /// The program that the service runs [default: this one]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Where the dashboard listens: IP:PORT or unix:PATH; repeatable [default: 127.0.0.1:7878 and the same port of ::1]
    #[cfg(feature = "dashboard")]
    #[arg(long, value_name = "ADDRESS", requires = "dashboard")]
    listen: Vec<web::ListenAddress>,
    /// Print the unit, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let service = service(args, context)?;
    if args.dry_run {
        return print_units(&service, context);
    }
    if !is_booted() {
        print_examples(&service, context)?;
        return Err(ServiceError::NoSystemd.into());
    }
    let installed = install(&service)?;
    report(&service, &installed, context)
}

fn print_units(service: &Service, context: &Context) -> Result<(), Failure> {
    let (text, socket) = (unit(service)?, socket_unit(service)?);
    let Some(socket) = socket else {
        return context.print(&serde_json::json!({ "unit": text }), |out| out.write_all(text.as_bytes()));
    };
    let name = &service.name;
    context.print(&serde_json::json!({ "unit": text, "socket": socket }), |out| {
        write!(out, "# {name}.socket\n{socket}\n# {name}.service\n{text}")
    })
}

fn service(args: &Args, context: &Context) -> Result<Service, Failure> {
    let flags = context.location_flags();
    let scope = if args.account.is_some() { Scope::System } else { args.which.scope() };
    let home = match (&args.account, named_home(flags)) {
        (Some(_), named) => absolute_path(&named.unwrap_or_else(|| HOME_OF_ACCOUNT.into()))?,
        (None, _) => context.location()?.absolute()?.home,
    };
    let mut writable: Vec<PathBuf> =
        args.writable.iter().map(|path| absolute_path(path)).collect::<Result<_, _>>()?;
    let store = match named_store(flags)? {
        Some(StoreAddress::Postgres(address)) if address.has_password() => {
            return Err(ServiceError::Password.into());
        }
        Some(StoreAddress::Sqlite(path)) => {
            let path = absolute_path(&path)?;
            // SQLite puts files of its own beside the database.
            writable.extend(path.parent().map(Path::to_owned));
            Some(path.display().to_string())
        }
        Some(store @ StoreAddress::Postgres(_)) => Some(store.to_string()),
        None => None,
    };
    let program = match &args.program {
        Some(program) => absolute_path(program)?,
        None => std::env::current_exe()
            .map_err(|source| ServiceError::CannotRun { command: "queuectl".to_owned(), source })?,
    };
    let name = args.which.name();
    if name.kind() == ServiceKind::Dashboard && args.pool.words() != NO_POOL_FLAGS {
        return Err(Failure::usage(
            "--count, --concurrency and --queue are for workers, not for a dashboard",
        ));
    }
    let location = LocationArgs { home: Some(home.clone()), ..flags.clone() };
    // A home that this user cannot read may be on a server.
    let is_on_server = locate(&location).map_or(true, |at| matches!(at.store, StoreAddress::Postgres(_)));
    Ok(Service {
        scope,
        name,
        listen: args.listen()?,
        program,
        home,
        store,
        is_on_server,
        worker_flags: args.pool.words(),
        account: args.account.clone(),
        writable,
    })
}

impl Args {
    #[cfg(feature = "dashboard")]
    fn listen(&self) -> Result<Vec<String>, Failure> {
        let addresses =
            if self.listen.is_empty() { &web::ListenAddress::loopback(None)[..] } else { &self.listen };
        match addresses.iter().find(|address| address.is_remote()) {
            // The dashboard would refuse the socket when its first client connects.
            Some(address) => Err(failure(web::ServeError::Remote { address: address.to_string() })
                .with_further_hint(
                    "`systemctl edit` can add such flags to the ExecStart= of a unit".to_owned(),
                )),
            None => Ok(addresses.iter().map(ToString::to_string).collect()),
        }
    }

    #[cfg(not(feature = "dashboard"))]
    #[expect(clippy::unused_self, reason = "the feature decides")]
    #[expect(clippy::unnecessary_wraps, reason = "the feature decides")]
    fn listen(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

fn report(service: &Service, installed: &Installed, context: &Context) -> Result<(), Failure> {
    let name = service.name.to_string();
    let what = match installed.change {
        UnitChange::New => "installed and started",
        UnitChange::Replaced => "updated and restarted",
        UnitChange::None => "was already installed; it runs",
    };
    report_change(context, &name, installed, &format!("Service {name} {what}"))?;
    if installed.lingers == Some(false) {
        context
            .hint("it runs only while you are logged in; `sudo loginctl enable-linger $USER` changes that")?;
    }
    if service.name.kind() == ServiceKind::Dashboard {
        return context.hint("`queuectl dashboard link` prints a link that logs a browser in");
    }
    match &service.account {
        Some(account) => context.hint(&format!(
            "enqueue with `sudo -u {account} queuectl --home {} enqueue -- COMMAND`",
            service.home.display()
        )),
        None if service.scope == Scope::System => {
            context.hint("its jobs run as root; `--account USER` runs them as an account of their own")
        }
        None => Ok(()),
    }
}

fn print_examples(service: &Service, context: &Context) -> Result<(), Failure> {
    if context.quiet || context.json {
        return Ok(());
    }
    let mut out = context.out();
    for example in examples(service)? {
        writeln!(out, "# {}: {}\n{}", example.manager, example.file, example.text)?;
    }
    Ok(out.flush()?)
}

//! `queuectl dashboard` without a verb: the server.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use crate::context::{Context, catch};
use crate::failure::{Exit, Failure};
use crate::flags::whole_number::whole_number;
use ops::error::chain;
use sys::signal;
use web::{BasePath, HeaderName, HostName, ListenAddress, Ready, ServeError, ServerOptions, TlsFiles};

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct ServeArgs {
    /// Where to listen: IP:PORT, a port, or unix:PATH; can be repeated [default: 127.0.0.1:7878 and the same port of ::1]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<ListenAddress>,
    /// The port on the loopback addresses [default: 7878]
    #[arg(long, value_name = "PORT", conflicts_with = "listen", value_parser = whole_number::<u16>(0..=65_535))]
    port: Option<u16>,
    /// Let other machines connect; needs TLS or --behind-proxy
    #[arg(long)]
    allow_remote: bool,
    /// The certificate chain, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of the server ends TLS; it may run as another user
    #[arg(long)]
    behind_proxy: bool,
    /// Answer also for this host name; can be repeated
    #[arg(long, value_name = "HOST")]
    host: Vec<HostName>,
    /// Permit no change; no token or session can override it
    #[arg(long)]
    read_only: bool,
    /// The path below which a proxy serves the dashboard
    #[arg(long, value_name = "BASE", default_value = "", hide_default_value = true)]
    base_path: BasePath,
    /// A proxy names its user in this header; it must run on this machine
    #[arg(long, value_name = "HEADER", requires = "behind_proxy")]
    user_header: Option<HeaderName>,
    /// Open streams at most
    #[arg(long, value_name = "N", default_value = "64", value_parser = whole_number::<u16>(1..=10_000))]
    max_streams: u16,
    /// Open the login link in a browser
    #[arg(long)]
    open: bool,
}

pub(super) fn run(args: &ServeArgs, context: &Context) -> Result<(), Failure> {
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    // A client that goes away must not end the server.
    signal::survive_closed_pipe();
    context.store_or_new()?.tidy();
    let options = args.options(context)?;
    web::run(options, &interrupts, |ready| {
        // A server without a terminal serves all the same.
        let _ = report(args, context, ready);
    })
    .map_err(failure)?;
    Ok(())
}

impl ServeArgs {
    fn options(&self, context: &Context) -> Result<ServerOptions, Failure> {
        let listen = if self.listen.is_empty() {
            ListenAddress::loopback(self.port).to_vec()
        } else {
            self.listen.clone()
        };
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        Ok(ServerOptions {
            location: context.location()?.absolute()?,
            location_args: context.location_flags().clone(),
            listen,
            allow_remote: self.allow_remote,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            behind_proxy: self.behind_proxy,
            hosts: self.host.clone(),
            read_only: self.read_only,
            base_path: self.base_path.clone(),
            user_header: self.user_header.clone(),
            max_streams: self.max_streams.into(),
        })
    }
}

/// One line on the start: where to log in, or where the server answers.
fn report(args: &ServeArgs, context: &Context, ready: &Ready) -> Result<(), Failure> {
    for warning in &ready.warnings {
        context.hint(warning)?;
    }
    if context.json {
        context.print_json(&json!({ "url": ready.url, "link": ready.link }))?;
    } else if !context.quiet {
        let mut out = context.out();
        match &ready.link {
            Some(link) => writeln!(out, "Dashboard at {} (log in: {link})", ready.url)?,
            None => writeln!(out, "Dashboard at {}", ready.url)?,
        }
        out.flush()?;
    }
    if let (true, Some(link)) = (args.open, &ready.link) {
        open_browser(context, link)?;
    }
    Ok(())
}

fn open_browser(context: &Context, link: &str) -> Result<(), Failure> {
    let mut command = Command::new("xdg-open");
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        // It ends as soon as a browser has taken the link; the kernel removes it with this process.
        Ok(_) => Ok(()),
        Err(error) => context.hint(&format!("failed to open a browser ({error}); open the link yourself")),
    }
}

fn failure(error: ServeError) -> Failure {
    let message = chain(&error);
    match error {
        ServeError::Op(error) => error.into(),
        ServeError::Remote { .. } => Failure::usage(message).with_hint(
            "use --allow-remote with --tls-cert and --tls-key, or with --behind-proxy if a proxy ends TLS; a loopback address needs neither",
        ),
        ServeError::Tls { .. } => Failure::usage(message),
        ServeError::Listen { .. } => {
            Failure::new(Exit::Unavailable, message).with_hint("--port or --listen chooses another address")
        }
        ServeError::System(_) => Failure::new(Exit::Failed, message),
    }
}

//! `queuectl dashboard` without a verb: the server.

use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use super::entrance::{EntranceArgs, failure};
use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::flags::whole_number::whole_number;
use sys::signal;
use web::{BasePath, HeaderName, ListenAddress, Ready, ServerOptions, Surface};

#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// Where to listen: IP:PORT, a port, or unix:PATH; can be repeated [default: 127.0.0.1:7878 and the same port of ::1]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<ListenAddress>,
    /// The port on the loopback addresses [default: 7878]
    #[arg(long, value_name = "PORT", conflicts_with = "listen", value_parser = whole_number::<u16>(0..=65_535))]
    port: Option<u16>,
    #[command(flatten)]
    entrance: EntranceArgs,
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
    match context.store_or_new() {
        Ok(store) => store.tidy(),
        // A queue on a read-only filesystem can be looked at.
        Err(failure) if context.store().is_err() => return Err(failure),
        Err(_) => {}
    }
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
        Ok(ServerOptions {
            read_only: self.read_only,
            base_path: self.base_path.clone(),
            user_header: self.user_header.clone(),
            max_streams: self.max_streams.into(),
            surface: Surface::Whole,
            ..self.entrance.options(context, listen)?
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

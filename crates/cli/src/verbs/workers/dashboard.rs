//! `queuectl dashboard`

pub(crate) mod entrance;
mod link;
mod serve;
mod token;

use crate::context::Context;
use crate::failure::Failure;

/// Serve the HTTP API, and manage who may use it
///
/// Stays in the foreground; SIGTERM or Ctrl-C ends it within 5 seconds. Only programs of this user on this machine can
/// connect, unless you say otherwise. Programs send a token (`queuectl dashboard token add`); a browser logs in with the
/// link that is printed at the start, once. Sockets that systemd passes are used instead of --listen.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  queuectl dashboard
  queuectl dashboard --port 9000 --read-only
  queuectl dashboard --listen unix:/run/user/1000/queuectl.sock
  queuectl dashboard token add ci --scope operate --expires 30d
  queuectl dashboard --listen 0.0.0.0:7878 --allow-remote --tls-cert cert.pem --tls-key key.pem --host queue.example.org"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<DashboardVerb>,
    #[command(flatten)]
    serve: serve::ServeArgs,
}

#[derive(Debug, clap::Subcommand)]
enum DashboardVerb {
    Token(token::Args),
    Link(link::Args),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    match &args.verb {
        None => serve::run(&args.serve, context),
        Some(DashboardVerb::Token(args)) => token::run(args, context),
        Some(DashboardVerb::Link(args)) => link::run(args, context),
    }
}

//! `queuectl dashboard token`

use std::time::Duration;

use serde::Serialize;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::report_change::report_change;
use crate::render::table::Table;
use domain::values::clock::Clock;
use domain::values::span::parse_span;
use ops::error::{chain, did_you_mean};
use sys::process::user;
use web::Scope;
use web::tokens::{NewToken, Token, TokenError, add, list, remove};

/// Add, list and remove the tokens of programs
///
/// Only a hash of each token is stored, in tokens.json in the home. A running dashboard adopts changes at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl dashboard token add ci --scope operate --expires 30d
  queuectl dashboard token list
  queuectl dashboard token remove ci")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Debug, clap::Subcommand)]
enum TokenVerb {
    /// Add a token and print it; it is not shown again
    ///
    /// A scope includes those before it: metrics (only /metrics), read, operate (cancel, retry, pause and so on: changes
    /// that bring in no new command), admin (everything: its holder runs commands as this user).
    #[command(after_help = "Examples:
  queuectl dashboard token add ci --scope operate --expires 30d
  queuectl dashboard token add grafana --scope metrics")]
    Add {
        /// The token's name: letters, digits and ._-
        #[arg(value_name = "NAME")]
        name: String,
        /// What it permits: metrics, read, operate or admin
        #[arg(long, value_name = "SCOPE", value_parser = parse_scope)]
        scope: Scope,
        /// How long it is valid: 12h, 30d [default: until it is removed]
        #[arg(long, value_name = "DURATION", value_parser = parse_span)]
        expires: Option<Duration>,
    },
    /// List tokens, without their secrets
    #[command(after_help = "Example:\n  queuectl dashboard token list")]
    List,
    /// Remove a token; the dashboard refuses it from now on
    #[command(after_help = "Example:\n  queuectl dashboard token remove ci")]
    Remove {
        /// The token's name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Serialize)]
struct NewTokenJson<'a> {
    #[serde(flatten)]
    token: &'a Token,
    secret: &'a str,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    // Creates the home if need be, and refuses one of another user.
    let store = context.store_or_new()?;
    let (home, now) = (context.location()?.home, store.now()?);
    match &args.verb {
        TokenVerb::Add { name, scope, expires } => {
            let new = NewToken { name: name.clone(), scope: *scope, expires_in: *expires, by: user::name() };
            let (token, secret) = add(&home, new, now).map_err(failure)?;
            store.note("token_add", &user::name(), &format!("{name} ({})", scope.name()))?;
            context
                .print(&NewTokenJson { token: &token, secret: &secret }, |out| writeln!(out, "{secret}"))?;
            context.note("this is the only time that the token is shown")
        }
        TokenVerb::List => {
            let tokens = list(&home).map_err(failure)?;
            let clock = context.clock(now);
            let if_empty = "no tokens; `queuectl dashboard token add` makes one";
            context.print_list::<&Token, _>(&tokens, if_empty, |tokens| table(tokens, &clock))
        }
        TokenVerb::Remove { name } => {
            let removed = remove(&home, name).map_err(failure)?;
            store.note("token_remove", &user::name(), name)?;
            report_change(context, name, &removed, &format!("Token {name} removed"))
        }
    }
}

fn table(tokens: &[Token], clock: &Clock) -> Table {
    let mut table = Table::new(&["NAME", "SCOPE", "CREATED", "BY", "EXPIRES"]);
    for token in tokens {
        let expires = token.expires_at.map_or_else(|| "never".to_owned(), |at| clock.moment(at));
        table.row(vec![
            token.name.as_str().into(),
            token.scope.name().into(),
            clock.ago(token.created_at).into(),
            token.created_by.as_str().into(),
            expires.into(),
        ]);
    }
    table
}

fn parse_scope(typed: &str) -> Result<Scope, String> {
    Scope::from_name(typed).ok_or_else(|| "expected metrics, read, operate or admin".to_owned())
}

fn failure(error: TokenError) -> Failure {
    let message = chain(&error);
    match error {
        TokenError::Write(error) => error.into(),
        TokenError::BadName { .. } => Failure::usage(message),
        TokenError::Taken(_) => Failure::new(Exit::Conflict, message)
            .with_hint("choose another name, or remove it first with `queuectl dashboard token remove`"),
        TokenError::TooMany => Failure::new(Exit::Conflict, message),
        TokenError::Missing { nearest, .. } => Failure::new(Exit::NotFound, message)
            .with_hint(did_you_mean(nearest.as_deref(), "`queuectl dashboard token list` shows the tokens")),
        TokenError::Exposed { path, .. } => {
            Failure::new(Exit::Unavailable, message).with_hint(format!("run `chmod 600 {}`", path.display()))
        }
        TokenError::Unreadable { .. } | TokenError::NotOwn(_) => Failure::new(Exit::Unavailable, message),
        TokenError::Malformed { .. } => Failure::new(Exit::Corrupt, message),
        TokenError::Random(_) => Failure::new(Exit::Failed, message),
    }
}

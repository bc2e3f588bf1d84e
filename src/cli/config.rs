//! `queuectl config`

use std::io::Write;
use std::process::ExitCode;

use super::context::Context;
use super::failure::Failure;
use super::named::{self, Named};
use super::table::{Align, Cell, Table};
use super::text::printable;
use crate::domain::settings::SettingKey;
use crate::ops::OpError;
use crate::ops::config::{Setting, SettingOrigin, get, list, set};
use crate::ops::json::SettingJson;
use crate::sys::user;

/// Settings, kept in the store
///
/// `max-retries` and `max_retries` are the same key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl config list
  queuectl config set max-retries 5
  queuectl config unset max-retries")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigVerb {
    /// Show all settings: value, default, and where the value comes from
    #[command(after_help = "Example:\n  queuectl config list --json")]
    List,
    /// Show the value of a setting
    #[command(after_help = "Example:\n  queuectl config get max-retries")]
    Get {
        /// The setting
        key: String,
    },
    /// Change a setting
    #[command(after_help = "Examples:
  queuectl config set retry-delay 500ms
  queuectl config set job-timeout 1h30m")]
    Set {
        /// The setting
        key: String,
        /// Its new value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Go back to the default
    #[command(after_help = "Example:\n  queuectl config unset max-retries")]
    Unset {
        /// The setting
        key: String,
    },
}

pub(super) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let parse = |key: &str| key.parse::<SettingKey>().map_err(OpError::from);
    match args.verb {
        ConfigVerb::List => {
            let store = context.store()?;
            print_all(context, &list(store)?)?;
        }
        ConfigVerb::Get { key } => {
            let key = parse(&key)?;
            let store = context.store()?;
            print_value(context, &get(store, key)?)?;
        }
        ConfigVerb::Set { key, value } => change(context, parse(&key)?, Some(&value))?,
        ConfigVerb::Unset { key } => change(context, parse(&key)?, None)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn change(context: &Context, key: SettingKey, value: Option<&str>) -> Result<(), Failure> {
    let store = context.store()?;
    let setting = set(store, key, value, &user::name())?;
    let name = setting.key.name();
    let sentence = format!("{name} is now {}", setting.value);
    named::tell(context, &Named { name, json: SettingJson::from(&setting), sentence })
}

fn print_value(context: &Context, setting: &Setting) -> Result<(), Failure> {
    if context.json {
        return context.print_json(&SettingJson::from(setting));
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    writeln!(out, "{}", printable(&setting.value))?;
    Ok(out.flush()?)
}

fn print_all(context: &Context, settings: &[Setting]) -> Result<(), Failure> {
    if context.json {
        return context.print_json(&settings.iter().map(SettingJson::from).collect::<Vec<_>>());
    }
    if context.quiet {
        return Ok(());
    }
    let mut table = Table::new(&[
        ("KEY", Align::Left),
        ("VALUE", Align::Left),
        ("DEFAULT", Align::Left),
        ("FROM", Align::Left),
    ]);
    for setting in settings {
        let style = match setting.origin {
            SettingOrigin::Default => anstyle::Style::new(),
            SettingOrigin::Store => anstyle::AnsiColor::Green.on_default(),
        };
        table.row(vec![
            setting.key.name().into(),
            Cell::styled(&setting.value, style),
            setting.default.as_str().into(),
            setting.origin.name().into(),
        ]);
    }
    let mut out = context.out();
    table.write(&mut out, context.width())?;
    Ok(out.flush()?)
}

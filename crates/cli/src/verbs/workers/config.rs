//! `queuectl config`

use std::io::Write;
use sys::program::ExitCode;

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change;
use crate::render::report_change::ChangeReport;
use crate::render::table::{Align, Cell, Table};
use crate::render::text::printable;
use domain::settings::SettingKey;
use ops::OpError;
use ops::config::{Setting, SettingOrigin, get, how_to_repair, list, set, unset_unknown};
use sys::process::user;

/// Show and change settings
///
/// Settings are stored in the queue's database. `max-retries` and `max_retries` are the same key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl config list
  queuectl config set max-retries 5
  queuectl config unset max-retries")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigVerb {
    /// List all settings: value, default, and the origin of the value
    #[command(after_help = "Example:\n  queuectl config list --json")]
    List,
    /// Show the value of a setting
    #[command(after_help = "Example:\n  queuectl config get max-retries")]
    Get {
        /// The setting's name
        key: String,
    },
    /// Change a setting
    #[command(after_help = "Examples:
  queuectl config set retry-delay 500ms
  queuectl config set job-timeout 1h30m")]
    Set {
        /// The setting's name
        key: String,
        /// Its new value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Reset a setting to its default; also fixes a stored value that is not valid
    #[command(after_help = "Example:\n  queuectl config unset max-retries")]
    Unset {
        /// The setting's name
        key: String,
    },
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let parse = |key: &str| key.parse::<SettingKey>().map_err(OpError::from);
    match args.verb {
        ConfigVerb::List => {
            let settings = list(context.store()?)?;
            print_all(context, &settings)?;
            warn(context, &settings)?;
        }
        ConfigVerb::Get { key } => {
            let key = parse(&key)?;
            let setting = get(context.store()?, key)?;
            print_value(context, &setting)?;
            warn(context, &[setting])?;
        }
        ConfigVerb::Set { key, value } => change(context, parse(&key)?, Some(&value))?,
        ConfigVerb::Unset { key } => unset(context, &key)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn change(context: &Context, key: SettingKey, value: Option<&str>) -> Result<(), Failure> {
    let store = context.store()?;
    let setting = set(store, key, value, &user::name())?;
    let name = setting.key.name();
    let sentence = format!("{name} is now {}", setting.value);
    report_change::report_change(context, &ChangeReport { name, json: &setting, sentence })
}

/// Also deletes keys that are not settings, written by another version or program.
fn unset(context: &Context, typed: &str) -> Result<(), Failure> {
    match typed.parse::<SettingKey>() {
        Ok(key) => change(context, key, None),
        Err(_) if unset_unknown(context.store()?, typed, &user::name())? => {
            let sentence = format!("{typed} deleted (not a setting)");
            report_change::report_change(
                context,
                &ChangeReport { name: typed, json: UnsetJson { key: typed }, sentence },
            )
        }
        Err(error) => Err(OpError::from(error).into()),
    }
}

#[derive(Serialize)]
struct UnsetJson<'a> {
    key: &'a str,
}

/// Prints a hint for each value that is not valid.
fn warn(context: &Context, settings: &[Setting]) -> Result<(), Failure> {
    for setting in settings.iter().filter(|setting| !setting.is_valid) {
        let name = setting.key.name();
        context.hint(&format!("the stored value of `{name}` is not valid; {}", how_to_repair(name)))?;
    }
    Ok(())
}

fn print_value(context: &Context, setting: &Setting) -> Result<(), Failure> {
    if context.json {
        return context.print_json(setting);
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
        return context.print_json(&settings);
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

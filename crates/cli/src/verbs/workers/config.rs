//! `queuectl config`

use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
use crate::render::table::{Cell, Table};
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

pub(crate) fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let parse = |key: &str| key.parse::<SettingKey>().map_err(OpError::from);
    match args.verb {
        ConfigVerb::List => {
            let settings = list(context.store()?)?;
            context.print_list::<&Setting, _>(&settings, "no settings", table)?;
            warn(context, &settings)?;
        }
        ConfigVerb::Get { key } => {
            let key = parse(&key)?;
            let setting = get(context.store()?, key)?;
            context.print(&setting, |out| writeln!(out, "{}", printable(&setting.value)))?;
            warn(context, &[setting])?;
        }
        ConfigVerb::Set { key, value } => change(context, parse(&key)?, Some(&value))?,
        ConfigVerb::Unset { key } => unset(context, &key)?,
    }
    Ok(())
}

fn change(context: &Context, key: SettingKey, value: Option<&str>) -> Result<(), Failure> {
    let store = if value.is_some() { context.store_or_new() } else { context.store() }?;
    let setting = set(store, key, value, &user::name())?;
    let name = setting.key.name();
    let sentence = format!("{name} is now {}", setting.value);
    report_change(context, name, &setting, &sentence)
}

/// Also deletes keys that are not settings, written by another version or program.
fn unset(context: &Context, typed: &str) -> Result<(), Failure> {
    match typed.parse::<SettingKey>() {
        Ok(key) => change(context, key, None),
        Err(_) if unset_unknown(context.store()?, typed, &user::name())? => {
            let sentence = format!("{typed} deleted (not a setting)");
            report_change(context, &printable(typed), &json!({ "key": typed }), &sentence)
        }
        Err(error) => Err(OpError::from(error).into()),
    }
}

/// Prints a hint for each value that is not valid.
fn warn(context: &Context, settings: &[Setting]) -> Result<(), Failure> {
    for setting in settings.iter().filter(|setting| !setting.is_valid) {
        let name = setting.key.name();
        context.hint(&format!("the stored value of `{name}` is not valid; {}", how_to_repair(name)))?;
    }
    Ok(())
}

fn table(settings: &[Setting]) -> Table {
    let mut table = Table::new(&["KEY", "VALUE", "DEFAULT", "FROM"]);
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
    table
}

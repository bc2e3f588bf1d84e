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
/// Without a verb, lists all settings. They are stored in the queue's database. `max-retries` and `max_retries` are the same key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl config list
  queuectl config set max-retries 5
  queuectl config unset max-retries")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<ConfigVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigVerb {
    /// List all settings: value, default, the origin of the value, and what each means
    #[command(alias = "show", after_help = "Example:\n  queuectl config list --json")]
    List,
    /// Show the value of a setting
    #[command(after_help = "Example:\n  queuectl config get max-retries")]
    Get {
        /// The setting's name [default: all settings]
        key: Option<String>,
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
        None | Some(ConfigVerb::List | ConfigVerb::Get { key: None }) => {
            let settings = list(context.store()?)?;
            context.print_list::<&Setting, _>(&settings, "no settings", |settings| {
                table(settings, context.width())
            })?;
            warn(context, &settings)?;
        }
        Some(ConfigVerb::Get { key: Some(key) }) => {
            let key = parse(&key)?;
            let setting = get(context.store()?, key)?;
            context.print(&setting, |out| writeln!(out, "{}", printable(&setting.value)))?;
            warn(context, &[setting])?;
        }
        Some(ConfigVerb::Set { key, value }) => change(context, parse(&key)?, Some(&value))?,
        Some(ConfigVerb::Unset { key }) => unset(context, &key)?,
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

/// Narrower terminals show what the settings mean; the defaults only of those that were changed.
const WIDTH_FOR_DEFAULTS: usize = 110;

fn table(settings: &[Setting], width: usize) -> Table {
    let is_wide = width >= WIDTH_FOR_DEFAULTS;
    let mut table = if is_wide {
        Table::new(&["KEY", "VALUE", "DEFAULT", "FROM", "MEANING"])
    } else {
        Table::new(&["KEY", "VALUE", "MEANING"]).with_whole_columns(&["KEY", "VALUE"])
    };
    for setting in settings {
        let style = match setting.origin {
            SettingOrigin::Default => anstyle::Style::new(),
            SettingOrigin::Store => anstyle::AnsiColor::Green.on_default().bold(),
        };
        let value = if is_wide || setting.value == setting.default {
            setting.value.clone()
        } else {
            format!("{} (default {})", setting.value, setting.default)
        };
        let mut row = vec![setting.key.name().into(), Cell::styled(&value, style)];
        if is_wide {
            row.extend([setting.default.as_str().into(), setting.origin.name().into()]);
        }
        row.push(setting.key.about().into());
        table.row(row);
    }
    table
}

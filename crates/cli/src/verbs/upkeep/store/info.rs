//! `queuectl store info`

use std::io::{self, Write};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::facts::write_fact;
use crate::render::text::rough_size;
use ops::upkeep::store_info::{StoreInfo, store_info};

/// Show where the queue lives: its file, or its server, database, schema and role
///
/// Never shows a password. Nothing is created or changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl store info
  queuectl store info --json | jq .schema_version")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, context: &Context) -> Result<(), Failure> {
    let info = store_info(&context.location()?)?;
    context.print(&info, |out| write(out, &info, context.width()))
}

fn write(out: &mut dyn Write, info: &StoreInfo, width: usize) -> io::Result<()> {
    let standby = info.is_standby.filter(|is_standby| *is_standby).map(|_| "standby, cannot be written");
    let standbys = match (info.standbys, info.synchronous_standbys) {
        (None | Some(0), _) => None,
        (Some(all), synchronous) => Some(format!("{all}, {} synchronous", synchronous.unwrap_or(0))),
    };
    let version = info.schema_version.map_or_else(|| "none yet".to_owned(), |version| version.to_string());
    let facts = [
        ("kind", Some(info.kind.name().to_owned())),
        ("address", Some(info.address.clone())),
        ("host", info.host.clone()),
        ("database", info.database.clone()),
        ("schema", info.schema.clone()),
        ("role", info.role.clone()),
        ("version", Some(version)),
        ("server", info.server_version.clone()),
        ("size", info.size_bytes.map(rough_size)),
        ("tls", info.tls.map(str::to_owned)),
        ("state", standby.map(str::to_owned)),
        ("standbys", standbys),
        ("commit", info.synchronous_commit.as_ref().map(|value| format!("synchronous_commit = {value}"))),
    ];
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .try_for_each(|(name, value)| write_fact(out, name, &value, width))
}

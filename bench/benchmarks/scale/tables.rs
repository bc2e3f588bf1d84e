//! The sizes of the tables of a queue, and what autovacuum has done to them.

use anyhow::{Context, Result};
use store::postgres::Address;

use crate::output::figure::grouped;
use crate::output::table::Table;
use crate::rig::cluster::rows;

/// Tables that every job passes through, or that every turn changes.
const TABLES: [&str; 8] =
    ["jobs", "attempts", "ready", "counters", "minutes", "floors", "workers", "outputs"];

/// A table at one moment.
#[derive(Clone, Debug)]
pub(super) struct TableSize {
    pub(super) name: String,
    pub(super) megabytes: f64,
    pub(super) index_megabytes: f64,
    pub(super) dead_rows: f64,
    pub(super) vacuums: f64,
}

pub(super) fn read(server: &Address) -> Result<Vec<TableSize>> {
    let names = TABLES.map(|name| format!("'{name}'")).join(", ");
    let found = rows(
        server,
        &format!(
            "select relname, pg_table_size(relid), pg_indexes_size(relid), n_dead_tup, autovacuum_count
             from pg_stat_user_tables where schemaname = 'queuectl' and relname in ({names})
             order by array_position(array[{names}], relname::text)"
        ),
    )?;
    found.iter().map(|row| parse(row).with_context(|| format!("unexpected row {row:?}"))).collect()
}

fn parse(row: &[String]) -> Option<TableSize> {
    let number = |at: usize| row.get(at)?.parse::<f64>().ok();
    let megabytes = |at: usize| Some(number(at)? / f64::from(1 << 20));
    Some(TableSize {
        name: row.first()?.clone(),
        megabytes: megabytes(1)?,
        index_megabytes: megabytes(2)?,
        dead_rows: number(3)?,
        vacuums: number(4)?,
    })
}

pub(super) fn sizes(server: &Address, title: &str) -> Result<Table> {
    Ok(table(title, &read(server)?))
}

pub(super) fn table(title: &str, sizes: &[TableSize]) -> Table {
    let cells = |table: &TableSize| {
        vec![
            table.name.clone(),
            grouped(table.megabytes, 1),
            grouped(table.index_megabytes, 1),
            grouped(table.dead_rows, 0),
            grouped(table.vacuums, 0),
        ]
    };
    Table {
        title: title.to_owned(),
        columns: ["table", "MB", "indexes, MB", "dead rows", "autovacuum runs"].map(str::to_owned).to_vec(),
        rows: sizes.iter().map(cells).collect(),
    }
}

//! The scope of an export: everything, or some jobs and the rows that they need.

use std::collections::{HashMap, HashSet};

use crate::rows::jobs::row;
use crate::rows::named;
use crate::rows::tx::Tx;
use crate::rows::views::list;
use crate::{ExportScope, Result, StoreError};
use domain::values::name::JobId;

/// The row ids to export, by table; `None` for all.
pub(super) struct Scope(Option<HashMap<&'static str, HashSet<i64>>>);

impl Scope {
    pub(super) fn of(tx: &Tx<'_>, which: &ExportScope<'_>) -> Result<Self> {
        let jobs: HashSet<i64> = match which {
            ExportScope::All => return Ok(Self(None)),
            ExportScope::Ids(ids) => ids.iter().map(|id| number(tx, id)).collect::<Result<_, _>>()?,
            // In one query: with pages, each page would repeat the search for states with few jobs.
            ExportScope::Kind(filter) => list::select(tx, filter, None, usize::MAX)?
                .iter()
                .filter_map(|job| i64::try_from(job.number).ok())
                .collect(),
        };
        let mut rows: HashMap<&str, HashSet<i64>> = HashMap::new();
        for seq in &jobs {
            let sql = "select queue_id, environment_id, batch_id from jobs where seq = :seq";
            tx.one(sql, named! { seq }, |row| {
                for (column, table) in ["queues", "environments", "batches"].into_iter().enumerate() {
                    rows.entry(table).or_default().extend(row.get::<Option<i64>>(column)?);
                }
                Ok(())
            })?;
        }
        rows.insert("jobs", jobs);
        Ok(Self(Some(rows)))
    }

    /// Whether to export the rows that belong to this row of a table; those of no row only with everything.
    pub(super) fn has(&self, table: &str, id: Option<i64>) -> bool {
        match (&self.0, id) {
            (None, _) => true,
            (Some(rows), Some(id)) => rows.get(table).is_some_and(|ids| ids.contains(&id)),
            (Some(_), None) => false,
        }
    }
}

fn number(tx: &Tx<'_>, id: &JobId) -> Result<i64> {
    let job = row::by_id(tx, id)?.ok_or_else(|| StoreError::NoSuchJob(id.clone()))?;
    Ok(job.seq.0)
}

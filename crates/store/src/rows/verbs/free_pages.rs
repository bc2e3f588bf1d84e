//! Returning unused pages of the file to the filesystem, which only SQLite needs: PostgreSQL does this itself.

use crate::rows::tx::Tx;
use crate::rows::{Dialect, named};
use crate::{Cursor, PruneResult, PruneStep, Result};

/// One page in so many may stay unused: it will be filled again sooner or later.
const PAGES_PER_UNUSED: u64 = 8;
/// Fewer unused pages than this are not worth returning.
const MIN_UNUSED: u64 = 64;
/// How many pages a step returns to the filesystem.
const PAGES_PER_STEP: u64 = 256;

pub(crate) fn free_pages(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult> {
    match tx.dialect() {
        Dialect::Sqlite => {}
        Dialect::Postgres => return Ok(PruneResult::default()),
    }
    let count = |pragma| tx.one(pragma, named! {}, |row| row.get::<u64>(0));
    let (unused, pages) = (count("pragma freelist_count")?, count("pragma page_count")?);
    let spare = unused.saturating_sub((pages / PAGES_PER_UNUSED).max(MIN_UNUSED));
    let count = spare.min(PAGES_PER_STEP);
    if count == 0 || prune.dry_run {
        return Ok(PruneResult { count: spare, ..PruneResult::default() });
    }
    // The pragma returns one row per page.
    tx.all(&format!("pragma incremental_vacuum({count})"), named! {}, |_| Ok(()))?;
    Ok(PruneResult { count, next: (spare > count).then(Cursor::default), ..PruneResult::default() })
}

//! Finding the causes of dead jobs from their rows: for a store of an earlier version, and where the counts are wrong.

use super::{Causes, Deaths, add};
use crate::Result;
use crate::rows::dialect::Wording;
use crate::rows::keys::{JobSeq, QueueKey};
use crate::rows::sql::Sql;
use crate::rows::tables::minutes;
use crate::rows::tx::Tx;
use crate::rows::{Row, params, wording};
use domain::job::cause::{Cause, CauseId};
use domain::values::signal::Signal;

/// A statement that reads dead jobs under a condition, for [`read_dead`].
macro_rules! select_dead {
    ($condition:literal) => {
        concat!(
            "select seq, queue_id, reason, exit_code, signal, error, finished_at from jobs where ",
            $condition
        )
    };
}

/// Counts the jobs of a queue that died of a cause anew.
pub(crate) fn recount(tx: &Tx<'_>, id: CauseId, queue_id: QueueKey) -> Result<()> {
    tx.execute("delete from causes where id = ?1 and queue_id = ?2", params![id, queue_id])?;
    // By index jobs_by_cause.
    let sql = select_dead!("cause_id = ?1 and queue_id = ?2");
    let mut deaths: Option<Deaths> = None;
    tx.query(sql, params![id, queue_id], &mut |row| {
        let dead = read_dead(row)?;
        let sum = deaths.get_or_insert_with(|| dead.deaths.clone());
        sum.count += 1;
        sum.first_at = sum.first_at.min(dead.deaths.first_at);
        sum.last_at = sum.last_at.max(dead.deaths.last_at);
        Ok(true)
    })?;
    deaths.map_or(Ok(()), |deaths| add(tx.sql(), id, queue_id, tx.shard, &deaths))
}

/// A dead job, as a death that is not counted yet.
struct Dead {
    seq: JobSeq,
    queue_id: QueueKey,
    deaths: Deaths,
}

fn read_dead(row: &Row<'_>) -> Result<Dead> {
    let signal = row.get::<Option<i32>>("signal")?.and_then(Signal::from_number);
    let error: Option<&str> = row.get("error")?;
    let cause = Cause::new(row.get("reason")?, row.get("exit_code")?, signal, error.unwrap_or_default());
    let at = row.get("finished_at")?;
    let deaths = Deaths { cause, count: 0, first_at: at, last_at: at };
    Ok(Dead { seq: row.get("seq")?, queue_id: row.get("queue_id")?, deaths })
}

/// How many dead jobs a migration reads at once.
const CHUNK: usize = 1_000;

/// Finds the causes of all dead jobs, in a store of an earlier version that knew none.
pub(crate) fn assign_all(sql: &dyn Sql) -> Result<()> {
    let mut after = JobSeq::BEFORE_FIRST;
    loop {
        let mut chunk = Vec::new();
        // By index jobs_by_state.
        let statement = select_dead!("state = 'dead' and seq > ?1 order by seq limit ?2");
        sql.query(statement, params![after, CHUNK], &mut |row| {
            chunk.push(read_dead(row)?);
            Ok(true)
        })?;
        let Some(last) = chunk.last() else {
            return Ok(());
        };
        after = last.seq;
        assign(sql, &chunk)?;
        let mut causes = Causes::default();
        for Dead { queue_id, deaths, .. } in chunk {
            causes.enter(queue_id, deaths.cause, deaths.first_at);
        }
        for ((id, queue_id), deaths) in &causes.deaths {
            add(sql, *id, *queue_id, minutes::SHARED, deaths)?;
        }
    }
}

/// Takes an array of pairs as JSON, so that a server is asked once for many jobs.
const ASSIGN_ALL: Wording = wording!(
    "update jobs set cause_id = ",
    ("json_extract(e.value, '$[1]') from json_each(?1) e where jobs.seq = json_extract(e.value, '$[0]')"
        | "cast(e.value ->> 1 as bigint) from json_array_elements(cast(cast(?1 as text) as json)) e where jobs.seq = cast(e.value ->> 0 as bigint)")
);

fn assign(sql: &dyn Sql, chunk: &[Dead]) -> Result<()> {
    let pair = |dead: &Dead| format!("[{},{}]", dead.seq.0, dead.deaths.cause.id().to_stored());
    let pairs: Vec<String> = chunk.iter().map(pair).collect();
    let statement = sql.dialect().pick(ASSIGN_ALL.sqlite, ASSIGN_ALL.postgres);
    sql.execute(statement, params![format!("[{}]", pairs.join(","))]).map(drop)
}

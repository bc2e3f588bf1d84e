//! The exit codes that the jobs of a queue are retried after.

use crate::rows::keys::QueueKey;
use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use crate::rows::{Row, params};
use crate::{QueueUpdate, Result, Update};
use domain::job::retry_rules::{ExitCodes, RetryRules};

pub(crate) const OF_QUEUE: &str = "select retry_on, no_retry_on from queues where id = ?1";

/// Read once per transaction for each queue with a failed job.
pub(crate) fn of_queue(tx: &Tx<'_>, queue_id: QueueKey) -> Result<RetryRules> {
    if let Some(rules) = tx.retry_rules.borrow().get(&queue_id) {
        return Ok(*rules);
    }
    let rules = tx.one(OF_QUEUE, params![queue_id], |row| read(row, 0))?;
    tx.retry_rules.borrow_mut().insert(queue_id, rules);
    Ok(rules)
}

/// Reads two columns, beginning with this one.
pub(crate) fn read(row: &Row<'_>, column: usize) -> Result<RetryRules> {
    Ok(RetryRules { retry_on: codes(row, column)?, no_retry_on: codes(row, column + 1)? })
}

pub(crate) fn set(tx: &Tx<'_>, queue_id: QueueKey, update: &QueueUpdate) -> Result<()> {
    if update.retry_on != Update::Keep {
        tx.execute(
            "update queues set retry_on = ?2 where id = ?1",
            params![queue_id, update.retry_on.apply(None).map(to_json)],
        )?;
    }
    if update.no_retry_on != Update::Keep {
        tx.execute(
            "update queues set no_retry_on = ?2 where id = ?1",
            params![queue_id, update.no_retry_on.apply(None).map(to_json)],
        )?;
    }
    Ok(())
}

fn codes(row: &Row<'_>, column: usize) -> Result<Option<ExitCodes>> {
    row.get::<Option<&str>>(column)?.map(from_json).transpose()
}

fn from_json(json: &str) -> Result<ExitCodes> {
    let codes: Vec<u8> = serde_json::from_str(json).map_err(|error| malformed("exit codes", error))?;
    ExitCodes::new(codes).map_err(|error| malformed("exit codes", error))
}

fn to_json(codes: ExitCodes) -> String {
    let codes: Vec<u8> = codes.iter().collect();
    serde_json::to_string(&codes).expect("numbers serialize to JSON")
}

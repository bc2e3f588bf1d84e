//! The output of attempts that is too long to be stored with the attempt, in parts of whole entries. A part is found by its
//! offset in the log file from which it was read.

use crate::rows::keys::JobSeq;
use crate::rows::named;
use crate::rows::tx::Tx;
use crate::{OutputPart, PartsSize, Result};
use domain::values::timestamp::Timestamp;

/// A part that was stored before is replaced: the answer to the first request may have been lost. So are parts that begin
/// inside a new one: the worker that ships the file of a dead worker divides it differently.
pub(crate) fn put(tx: &Tx<'_>, seq: JobSeq, number: u32, parts: &[OutputPart]) -> Result<()> {
    for OutputPart { at, content } in parts {
        delete_range(tx, seq, number, *at, at.saturating_add(content.len() as u64))?;
        tx.execute(
            "insert into output_parts (seq, number, part_at, content) values (:seq, :number, :at, :content)
             on conflict (seq, number, part_at) do update set content = excluded.content",
            named! { seq, number, at, content },
        )?;
    }
    Ok(())
}

/// Deletes the parts that begin in this range.
pub(crate) fn delete_range(tx: &Tx<'_>, seq: JobSeq, number: u32, from: u64, to: u64) -> Result<()> {
    tx.execute(
        "delete from output_parts where seq = :seq and number = :number and part_at >= :from and part_at < :to",
        named! { seq, number, from, to },
    )?;
    Ok(())
}

/// The parts from this offset on, until they have `max_bytes`.
pub(crate) fn after(
    tx: &Tx<'_>,
    seq: JobSeq,
    number: u32,
    offset: u64,
    max_bytes: usize,
) -> Result<Vec<OutputPart>> {
    let (mut parts, mut bytes) = (Vec::new(), 0);
    // By the primary key of output_parts.
    tx.query(
        "select part_at, content from output_parts
         where seq = :seq and number = :number and part_at >= :offset order by part_at",
        named! { seq, number, offset },
        &mut |row| {
            let part = OutputPart { at: row.get("part_at")?, content: row.get("content")? };
            bytes += part.content.len();
            parts.push(part);
            Ok(bytes < max_bytes)
        },
    )?;
    Ok(parts)
}

/// How many parts begin before this offset, and how many bytes they have.
pub(crate) fn size_before(tx: &Tx<'_>, seq: JobSeq, number: u32, offset: u64) -> Result<PartsSize> {
    // By the primary key of output_parts; no content is read.
    let size = tx.first(
        "select count(*) as parts, coalesce(sum(length(content)), 0) as bytes from output_parts
         where seq = :seq and number = :number and part_at < :offset",
        named! { seq, number, offset },
        |row| Ok(PartsSize { parts: row.get("parts")?, bytes: row.get("bytes")? }),
    )?;
    Ok(size.unwrap_or_default())
}

/// The first attempt with parts after this one, in the order of jobs.
pub(crate) fn next_attempt(tx: &Tx<'_>, seq: JobSeq, number: u32) -> Result<Option<(JobSeq, u32)>> {
    // By the primary key of output_parts: of each attempt only the first part is read.
    tx.first(
        "select seq, number from output_parts where (seq, number) > (:seq, :number) order by seq, number limit 1",
        named! { seq, number },
        |row| Ok((row.get("seq")?, row.get("number")?)),
    )
}

/// When the job of an attempt was created, and when the attempt ended; `None` while it runs.
pub(crate) fn times(tx: &Tx<'_>, seq: JobSeq, number: u32) -> Result<Option<(Timestamp, Timestamp)>> {
    tx.first(
        "select j.created_at, a.finished_at from attempts a join jobs j on j.seq = a.seq
         where a.seq = :seq and a.number = :number",
        named! { seq, number },
        |row| Ok((row.get("created_at")?, row.get("finished_at")?)),
    )
}

pub(crate) fn delete_of_attempt(tx: &Tx<'_>, seq: JobSeq, number: u32) -> Result<()> {
    tx.execute("delete from output_parts where seq = :seq and number = :number", named! { seq, number })?;
    Ok(())
}

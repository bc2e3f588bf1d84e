//! Exporting a queue, or some of its jobs with what belongs to them, as lines in one snapshot.

use super::history;
use super::scope::Scope;
use crate::rows::named;
use crate::rows::record::{self, Record};
use crate::rows::tables::moving::RESERVED;
use crate::rows::tx::Tx;
use crate::transfer::{AttemptLine, Bytes, FORMAT, JobLine, Line, LogLine};
use crate::{ExportScope, Result};
use domain::log::Header;

/// Takes a line; `false` if it wants no more.
pub(super) type Sink<'a> = &'a mut dyn FnMut(Line) -> bool;

pub(crate) fn export(tx: &Tx<'_>, which: &ExportScope<'_>, sink: Sink<'_>) -> Result<()> {
    let scope = Scope::of(tx, which)?;
    let wants_more = sink(Line::Queuectl { format: FORMAT });
    let mut export = Export { tx, scope, sink, wants_more };
    // Each kind refers only to kinds before it, so that an import can proceed in this order. A row of a damaged queue
    // that refers to a missing one is left out.
    export.each(("", "null"), &format!("settings where key not in {RESERVED}"), Line::Setting)?;
    export.each(("queues", "id"), "queues where id > 0 order by id", Line::Queue)?;
    export.history(which)?;
    export.each(("environments", "id"), "environments where id > 0 order by id", Line::Environment)?;
    export.each(("batches", "id"), "batches where id > 0 order by id", Line::Batch)?;
    export.each(("", "null"), "schedules where id > 0 order by id", |line| Line::Schedule(Box::new(line)))?;
    export.each(
        ("jobs", "seq"),
        "jobs where seq > 0 and queue_id in (select id from queues) order by seq",
        |line| Line::Job(Box::new(line)),
    )?;
    let waits = "dependencies cross join jobs p cross join jobs c
                 where p.seq = parent_seq and c.seq = child_seq and parent_seq > 0 and blocks = 1 order by parent_seq, child_seq";
    export.each(("jobs", "child_seq"), waits, Line::Dependency)?;
    let keys = "unique_keys k cross join jobs j where j.seq = k.seq and key > '' order by key";
    export.each(("jobs", "k.seq"), keys, Line::UniqueKey)?;
    export.each(("jobs", "seq"), "events where id > 0 order by events.id", Line::Event)?;
    export.each(("", "null"), "hooks where id > 0 order by id", |line| Line::Hook(Box::new(line)))?;
    let deliveries = "deliveries where id > 0 and hook_id in (select id from hooks) order by id";
    export.each(("", "null"), deliveries, Line::Delivery)
}

struct Export<'a> {
    tx: &'a Tx<'a>,
    scope: Scope,
    sink: Sink<'a>,
    wants_more: bool,
}

impl Export<'_> {
    /// The history of the whole queue; it has no parts that belong to some jobs.
    fn history(&mut self, which: &ExportScope<'_>) -> Result<()> {
        if let ExportScope::All = which
            && self.wants_more
        {
            self.wants_more = history::export(self.tx, self.sink)?;
        }
        Ok(())
    }

    /// Exports rows as lines, with the table and the key of the row that each belongs to.
    fn each<T: Record>(
        &mut self,
        (table, key): (&str, &str),
        from: &str,
        line: impl Fn(T) -> Line,
    ) -> Result<()> {
        if !self.wants_more {
            return Ok(());
        }
        self.tx.query_long(&record::select::<T>(key, from), &mut |row| {
            if self.scope.has(table, row.get(0)?) {
                let mut line = line(T::read(row)?);
                let mut logs = Vec::new();
                if let Line::Job(job) = &mut line
                    && job.attempts > 0
                {
                    job.history = attempts(self.tx, job.number)?;
                    logs = stored_logs(self.tx, job)?;
                }
                self.wants_more = (self.sink)(line);
                for line in logs {
                    self.wants_more = self.wants_more && (self.sink)(Line::Log(line));
                }
            }
            Ok(self.wants_more)
        })
    }
}

fn attempts(tx: &Tx<'_>, seq: u64) -> Result<Vec<AttemptLine>> {
    let select = record::select::<AttemptLine>(
        "seq",
        "attempts where seq = :seq and worker_seq in (select seq from workers) order by number",
    );
    tx.all(&select, named! { seq }, AttemptLine::read)
}

/// The output that this store keeps in parts, as the log files that a store of one machine would have. The middle of a long
/// output is missing; a mark among the parts says so.
fn stored_logs(tx: &Tx<'_>, job: &JobLine) -> Result<Vec<LogLine>> {
    let mut lines: Vec<LogLine> = Vec::new();
    tx.query(
        "select number, content from output_parts where seq = :seq order by number, part_at",
        named! { seq: job.number },
        &mut |row| {
            let (attempt, content): (u32, Vec<u8>) = (row.get("number")?, row.get("content")?);
            let before = lines.last().filter(|last| last.attempt == attempt);
            let end = before.map(|last| last.offset + last.content.0.len() as u64);
            let line =
                |offset, content| LogLine { job: job.id.clone(), attempt, offset, content: Bytes(content) };
            let start = end.is_none().then(|| line(0, Header::default().encode().to_vec()));
            let offset = end.unwrap_or(domain::log::HEADER_BYTES as u64);
            lines.extend(start);
            lines.push(line(offset, content));
            Ok(true)
        },
    )?;
    Ok(lines)
}

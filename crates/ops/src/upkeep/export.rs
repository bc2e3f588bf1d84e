//! `export`: a whole queue as JSON lines.

use std::io::{self, Write};
use std::path::Path;

use crate::OpError;
use crate::escape::write_json;
use crate::jobs::logs::log_path;
use domain::log;
use store::transfer::{Bytes, JobLine, Line, LogLine};
use store::{ExportScope, Store};
use sys::fs::{owner_only, sparse};

/// Whether to export secrets: the values of environment variables and the signing secrets of hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    Include,
    Exclude,
}

/// The parameters of an export.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    pub home: &'a Path,
    pub which: &'a ExportScope<'a>,
    pub secrets: Secrets,
}

/// Writes the queue and returns the number of jobs; calls `progress` after each job.
pub fn export(
    store: &dyn Store,
    request: &Export<'_>,
    out: &mut dyn Write,
    mut progress: impl FnMut(),
) -> Result<u64, OpError> {
    store.prepare_logs(&request.home.join(log::FOLDER))?;
    let keeps_output = store.spans_machines();
    let mut jobs = 0;
    let mut written = Ok(());
    store.export(request.which, &mut |mut line| {
        if request.secrets == Secrets::Include || redact(&mut line) {
            written = put(out, &line);
        }
        // The log files in a home do not belong to a store that keeps output itself, and numbers jobs on its own.
        if let (Line::Job(job), false, Ok(())) = (&line, keeps_output, &written) {
            written = put_log_files(request.home, job, out);
        }
        if let Line::Job(_) = line {
            jobs += 1;
            progress();
        }
        written.is_ok()
    })?;
    written.and_then(|()| out.flush()).map_err(|source| OpError::CannotWrite { source })?;
    Ok(jobs)
}

/// Removes the secrets; `false` if nothing is left of the line.
fn redact(line: &mut Line) -> bool {
    match line {
        Line::Environment(_) => return false,
        Line::Job(job) => {
            job.environment_id = None;
            job.options.remove("env");
        }
        Line::Schedule(schedule) => {
            schedule.environment_id = None;
            schedule.job.remove("env");
        }
        Line::Hook(hook) => {
            hook.environment_id = None;
            hook.secret = None;
        }
        Line::Queuectl { .. }
        | Line::Setting(_)
        | Line::Queue(_)
        | Line::Batch(_)
        | Line::Log(_)
        | Line::Dependency(_)
        | Line::UniqueKey(_)
        | Line::Event(_)
        | Line::Totals(_)
        | Line::Minutes(_)
        | Line::Delivery(_) => {}
    }
    true
}

/// Writes the log files of a job.
pub(super) fn put_log_files(home: &Path, job: &JobLine, out: &mut dyn Write) -> io::Result<()> {
    for attempt in 1..=job.attempts {
        let Some(file) = owner_only::open_regular(&log_path(home, job.number, attempt))? else {
            continue;
        };
        let mut parts = sparse::Parts::of(&file);
        while let Some((offset, content)) = parts.next_part()? {
            let content = Bytes(content.to_vec());
            put(out, &Line::Log(LogLine { job: job.id.clone(), attempt, offset, content }))?;
        }
    }
    Ok(())
}

pub(super) fn put(out: &mut dyn Write, line: &Line) -> io::Result<()> {
    write_json(out, line, false)?;
    out.write_all(b"\n")
}

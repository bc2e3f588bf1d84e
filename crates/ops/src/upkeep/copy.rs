//! Moving a whole queue from one store to another: an export and an import in one process.
//!
//! See [`store::upkeep::moving`] for the reason why no job is lost or runs twice if the process dies.

use std::collections::VecDeque;
use std::io::{BufWriter, Write};

use super::export::{put, put_log_files};
use super::import::{Spool, Step, lines_to_store, write_logs};
use crate::OpError;
use crate::home::location::Location;
use crate::home::open::{open, open_existing};
use crate::worker::live::live_and_dead_workers;
use domain::log;
use domain::values::name::WorkerId;
use store::transfer::{ImportError, ImportSummary, Line};
use store::{ExportScope, Relocation, Store, StoreError, Worker};
use sys::failpoint;

/// The parameters of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Copy<'a> {
    pub from: &'a Location,
    pub to: &'a Location,
    pub by: &'a str,
}

#[derive(Clone, Debug)]
pub enum CopyResult {
    Done {
        jobs: u64,
    },
    /// These workers use the old store; nothing was changed.
    WorkersLive(Vec<Worker>),
}

/// Copies everything into an empty store, and marks the old one as moved. Jobs keep their numbers.
pub fn copy(request: &Copy<'_>, progress: impl FnMut(Step)) -> Result<CopyResult, OpError> {
    let Copy { from, to, by } = *request;
    if from.store == to.store {
        return Err(OpError::CopyOntoItself);
    }
    let (from_name, to_name) = (from.store.to_string(), to.store.to_string());
    let old = open_existing(from)?;
    if old.relocation()? == Some(Relocation::MovedTo(to_name.clone())) {
        return complete(to, from_name);
    }
    let (live, dead) = live_and_dead_workers(old.as_ref())?;
    if !live.is_empty() {
        return Ok(CopyResult::WorkersLive(live));
    }
    let new = open(to)?;
    check_empty(to, new.as_ref())?;
    let source = open_existing(from)?;
    source.prepare_logs(&from.home.join(log::FOLDER))?;
    let dead: Vec<WorkerId> = dead.into_iter().map(|worker| worker.id).collect();
    let mut transfer = Transfer { request, source: source.as_ref(), new: new.as_ref(), progress };
    let imported = old.move_away(&to_name, &dead, by, || transfer.run(&from_name))?;
    failpoint::hit("copy.before_end");
    new.end_copy()?;
    Ok(CopyResult::Done { jobs: imported.jobs })
}

/// Completes a copy that was interrupted after the old store was marked.
fn complete(to: &Location, from_name: String) -> Result<CopyResult, OpError> {
    let new = open_existing(to)?;
    if new.relocation()? != Some(Relocation::CopyOf(from_name)) {
        return Err(StoreError::Relocated(Relocation::MovedTo(to.store.to_string())).into());
    }
    new.end_copy()?;
    Ok(CopyResult::Done { jobs: new.count_jobs()? })
}

fn check_empty(to: &Location, new: &dyn Store) -> Result<(), OpError> {
    if let Some(Relocation::CopyOf(_)) = new.relocation()? {
        return Err(OpError::UnfinishedCopy { to: to.store.clone() });
    }
    match new.content()? {
        Some(what) => Err(OpError::NotEmpty { to: to.store.clone(), what }),
        None => Ok(()),
    }
}

struct Transfer<'a, P> {
    request: &'a Copy<'a>,
    /// The old store, by a connection that only reads.
    source: &'a dyn Store,
    new: &'a dyn Store,
    progress: P,
}

impl<P: FnMut(Step)> Transfer<'_, P> {
    fn run(&mut self, from_name: &str) -> Result<ImportSummary, OpError> {
        let home = &self.request.to.home;
        let mut spool = Spool::new(home)?;
        let mut numbers = self.read(&spool)?;
        let next_number = self.source.next_number()?;
        let keeps_output = self.new.spans_machines();
        let Spool { rows, logs } = &mut spool;
        let mut lines = lines_to_store(rows, logs, home, keeps_output)?.map(|line| {
            let mut line = line.map_err(ImportError::from)?;
            if let Line::Job(job) = &mut line {
                job.number = numbers.pop_front().unwrap_or_default();
                (self.progress)(Step::Stored);
            }
            Ok(line)
        });
        let imported = self.new.receive(&mut lines, from_name, next_number, self.request.by)?;
        drop(lines);
        failpoint::hit("copy.before_logs");
        if !keeps_output {
            write_logs(self.new, home, logs, &imported.skipped)?;
        }
        Ok(imported)
    }

    /// Reads the whole old store. Returns the numbers of its jobs, which the lines do not have.
    fn read(&mut self, spool: &Spool) -> Result<VecDeque<u64>, OpError> {
        let mut numbers = VecDeque::new();
        let (mut rows, mut logs) = (BufWriter::new(&spool.rows), BufWriter::new(&spool.logs));
        let mut written = Ok(());
        self.source.export(&ExportScope::All, &mut |line| {
            written = if let Line::Log(_) = line { put(&mut logs, &line) } else { put(&mut rows, &line) };
            if let (Line::Job(job), Ok(())) = (&line, &written) {
                numbers.push_back(job.number);
                if !self.source.spans_machines() {
                    written = put_log_files(&self.request.from.home, job, &mut logs);
                }
                (self.progress)(Step::Checked);
            }
            written.is_ok()
        })?;
        let flushed = written.and_then(|()| rows.flush()).and_then(|()| logs.flush());
        flushed.map_err(StoreError::unavailable)?;
        Ok(numbers)
    }
}

//! Retention: one pass over everything that may have expired, step by step.
//!
//! Workers take a step now and then; `queuectl prune` takes all steps in a row. Each step is a short transaction, so
//! that no writer waits long. A pass that is killed loses nothing, because the next pass starts from the beginning.

use std::fmt;
use std::fs::ReadDir;
use std::path::{Path, PathBuf};

use super::{Cursor, EnvironmentGc, JobFilter, JobRef, Prunable, PruneResult, PruneStep, Result, Store};
use domain::job::life::StateName;
use domain::log::{file_name, parse_file_name};
use domain::settings::Settings;
use domain::values::timestamp::Timestamp;

/// How many rows a step examines.
const ROWS_PER_STEP: usize = 250;
/// How many numbers are searched for selected jobs at once.
const NUMBERS_PER_SELECTION: u64 = 10_000;
/// How many jobs a step examines that only looks for environments in use.
const JOBS_PER_GC_STEP: usize = 2_000;

/// How much a pass has deleted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneTotals {
    pub jobs: u64,
    /// Outputs of attempts, in the database and in log files.
    pub outputs: u64,
    pub events: u64,
}

impl fmt::Display for PruneTotals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} jobs, {} outputs, {} events", self.jobs, self.outputs, self.events)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Jobs that the caller selected.
    Selected,
    /// Environments that no job, schedule or hook refers to.
    Environments,
    Rows {
        what: Prunable,
        before: Timestamp,
    },
    /// Log files of deleted jobs, and of attempts that ended before this time.
    Logs {
        before: Option<Timestamp>,
    },
}

#[derive(Debug)]
pub struct RetentionPass {
    /// The remaining stages, the next one last.
    stages: Vec<Stage>,
    after: Cursor,
    /// The selected jobs that are not yet examined.
    selected: Vec<JobRef>,
    /// Selects more of them, below this number.
    filter: Option<(JobFilter, u64)>,
    environment_gc: EnvironmentGc,
    logs: PathBuf,
    files: Option<ReadDir>,
    dry_run: bool,
    deleted: PruneTotals,
}

impl RetentionPass {
    /// Everything that is older than the settings allow.
    pub fn by_settings(settings: &Settings, now: Timestamp, logs: &Path) -> Self {
        let before = |span: Option<std::time::Duration>| span.map(|span| now.saturating_sub(span));
        let mut stages = Vec::new();
        let mut rows = |what, before: Option<Timestamp>| {
            stages.extend(before.map(|before| Stage::Rows { what, before }));
        };
        rows(Prunable::Jobs(StateName::Completed), before(settings.retain_completed));
        rows(Prunable::Jobs(StateName::Cancelled), before(settings.retain_completed));
        rows(Prunable::Jobs(StateName::Dead), before(settings.retain_dead));
        rows(Prunable::ReportedJobs, before(settings.retain_completed));
        rows(Prunable::Outputs, before(settings.retain_logs));
        rows(Prunable::Events, before(settings.retain_events));
        rows(Prunable::Minutes { retain: settings.retain_metrics }, Some(now));
        stages.push(Stage::Logs { before: before(settings.retain_logs) });
        Self::new(stages, now, logs)
    }

    /// These jobs, as far as they are finished and no longer needed.
    pub fn of_selected(jobs: Vec<JobRef>, now: Timestamp, logs: &Path) -> Self {
        Self { selected: jobs, ..Self::new(vec![Stage::Selected], now, logs) }
    }

    /// The jobs that match a filter and have a number up to this one. They are read a few at a time.
    pub fn of_matching(filter: JobFilter, newest: u64, now: Timestamp, logs: &Path) -> Self {
        Self { filter: Some((filter, newest + 1)), ..Self::new(vec![Stage::Selected], now, logs) }
    }

    fn new(mut stages: Vec<Stage>, now: Timestamp, logs: &Path) -> Self {
        let rows = |what| Stage::Rows { what, before: now };
        stages.extend([Stage::Environments, rows(Prunable::StaleRows), rows(Prunable::Space)]);
        stages.reverse();
        let after = Cursor::default();
        Self {
            stages,
            after,
            selected: Vec::new(),
            filter: None,
            environment_gc: EnvironmentGc::default(),
            logs: logs.to_owned(),
            files: None,
            dry_run: false,
            deleted: PruneTotals::default(),
        }
    }

    /// As before, but only counts what would be deleted.
    #[must_use]
    pub fn dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }

    pub fn deleted(&self) -> PruneTotals {
        self.deleted
    }

    /// Takes a step; `false` when nothing is left to do.
    pub fn step(&mut self, store: &dyn Store) -> Result<bool> {
        let Some(stage) = self.stages.last().copied() else {
            return Ok(false);
        };
        let is_over = match stage {
            Stage::Selected => self.step_selected(store)?,
            Stage::Environments => {
                self.dry_run || !store.collect_environments(&mut self.environment_gc, JOBS_PER_GC_STEP)?
            }
            Stage::Rows { what, before } => self.step_rows(store, what, before)?,
            Stage::Logs { before } => self.step_files(store, before)?,
        };
        if is_over {
            self.stages.pop();
            self.after = Cursor::default();
        }
        Ok(!self.stages.is_empty())
    }

    fn step_rows(&mut self, store: &dyn Store, what: Prunable, before: Timestamp) -> Result<bool> {
        let (after, dry_run) = (self.after, self.dry_run);
        let pruned = store.prune(&PruneStep { what, before, after, limit: ROWS_PER_STEP, dry_run })?;
        match what {
            Prunable::Jobs(_) | Prunable::ReportedJobs => self.deleted.jobs += pruned.count,
            Prunable::Outputs => self.deleted.outputs += pruned.count,
            Prunable::Events => self.deleted.events += pruned.count,
            Prunable::Minutes { .. } | Prunable::StaleRows | Prunable::Space => {}
        }
        self.remove_logs_of(&pruned);
        self.after = pruned.next.unwrap_or_default();
        Ok(pruned.next.is_none())
    }

    fn step_selected(&mut self, store: &dyn Store) -> Result<bool> {
        if self.selected.is_empty() {
            self.select_more(store)?;
        }
        let rest = self.selected.len().saturating_sub(ROWS_PER_STEP);
        let pruned = store.prune_jobs(&self.selected[rest..], self.dry_run)?;
        self.selected.truncate(rest);
        self.deleted.jobs += pruned.count;
        self.remove_logs_of(&pruned);
        Ok(self.selected.is_empty() && self.filter.is_none())
    }

    /// Reads the next window of the filter's jobs.
    fn select_more(&mut self, store: &dyn Store) -> Result<()> {
        let Some((filter, below)) = self.filter.take() else {
            return Ok(());
        };
        let window = below.saturating_sub(NUMBERS_PER_SELECTION).max(1)..below;
        self.selected = store.select_within(&filter, &window, usize::MAX)?;
        // Steps take the last ones first.
        self.selected.reverse();
        if window.start > 1 {
            self.filter = Some((filter, window.start));
        }
        Ok(())
    }

    fn remove_logs_of(&self, pruned: &PruneResult) {
        for (number, attempts) in &pruned.gone {
            remove_logs(&self.logs, *number, *attempts);
        }
    }

    fn step_files(&mut self, store: &dyn Store, before: Option<Timestamp>) -> Result<bool> {
        if self.files.is_none() {
            self.files = self.logs.read_dir().ok();
        }
        let Some(entries) = &mut self.files else {
            return Ok(true);
        };
        let entries: Vec<_> = entries.by_ref().take(ROWS_PER_STEP).flatten().collect();
        let files: Vec<_> =
            entries.iter().filter_map(|entry| parse_file_name(entry.file_name().to_str()?)).collect();
        let expired = store.expired_logs(&files, before)?;
        self.deleted.outputs += expired.len() as u64;
        for (number, attempt) in expired.into_iter().filter(|_| !self.dry_run) {
            remove_log(&self.logs, number, attempt);
        }
        Ok(entries.is_empty())
    }
}

/// Removes the log files of a deleted job; most jobs have none.
pub fn remove_logs(logs: &Path, number: u64, attempts: u32) {
    for attempt in 1..=attempts {
        remove_log(logs, number, attempt);
    }
}

/// Removes the log files in this folder whose jobs do not exist. Scans the whole folder once.
pub fn remove_orphaned_logs(store: &dyn Store, logs: &Path) -> Result<()> {
    let Ok(entries) = logs.read_dir() else {
        return Ok(());
    };
    let mut names = entries.flatten().filter_map(|entry| parse_file_name(entry.file_name().to_str()?));
    loop {
        let files: Vec<_> = names.by_ref().take(ROWS_PER_STEP).collect();
        if files.is_empty() {
            return Ok(());
        }
        for (number, attempt) in store.expired_logs(&files, None)? {
            remove_log(logs, number, attempt);
        }
    }
}

fn remove_log(logs: &Path, number: u64, attempt: u32) {
    // A file that cannot be removed now is found by the next pass.
    let _ = std::fs::remove_file(logs.join(file_name(number, attempt)));
}

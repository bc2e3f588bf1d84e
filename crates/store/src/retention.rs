//! How long things are kept: the way through everything that may be old, step by step.
//!
//! Workers take a step now and then, `queuectl prune` takes one after the other. Each step is a short transaction, so that
//! nobody waits long; one that was killed in between has lost nothing, for the next begins again.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::ReadDir;
use std::path::{Path, PathBuf};

use super::{Mark, Old, Prune, Pruned, Seen, Store, StoreError, Sweep};
use domain::job::life::StateName;
use domain::log::{file_name, parse_file_name};
use domain::settings::Settings;
use domain::values::timestamp::Timestamp;

/// How many rows a step looks at.
const ROWS_PER_STEP: usize = 250;
/// How many jobs a step looks at that only crosses off which environments are in use.
const JOBS_PER_SWEEP: usize = 2_000;
/// How many pages a step gives back.
const PAGES_PER_STEP: usize = 256;

/// What was forgotten so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub jobs: u64,
    /// Outputs of attempts, in the store and in files.
    pub outputs: u64,
    pub events: u64,
}

impl fmt::Display for Forgotten {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} jobs, {} outputs, {} events", self.jobs, self.outputs, self.events)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Jobs that somebody has chosen.
    Chosen,
    /// Environments that nothing uses.
    Environments,
    Rows {
        what: Old,
        before: Timestamp,
    },
    /// Log files of jobs that are gone, and of attempts that ended before that moment.
    Logs {
        before: Option<Timestamp>,
    },
}

#[derive(Debug)]
pub struct Walk {
    /// What is still to be walked along, the next one last.
    stages: Vec<Stage>,
    after: Mark,
    /// Those that were chosen, as far as they are not looked at.
    chosen: Vec<Seen>,
    sweep: Sweep,
    logs: PathBuf,
    files: Option<ReadDir>,
    dry_run: bool,
    forgotten: Forgotten,
}

impl Walk {
    /// Everything that is older than the settings say.
    pub fn by_settings(settings: &Settings, now: Timestamp, logs: &Path) -> Self {
        let before = |span: Option<std::time::Duration>| span.map(|span| now.saturating_sub(span));
        let mut stages = Vec::new();
        let mut rows = |what, before: Option<Timestamp>| {
            stages.extend(before.map(|before| Stage::Rows { what, before }));
        };
        rows(Old::Jobs(StateName::Completed), before(settings.retain_completed));
        rows(Old::Jobs(StateName::Cancelled), before(settings.retain_completed));
        rows(Old::Jobs(StateName::Dead), before(settings.retain_dead));
        rows(Old::Outputs, before(settings.retain_logs));
        rows(Old::Events, before(settings.retain_events));
        stages.push(Stage::Logs { before: before(settings.retain_logs) });
        Self::along(stages, now, logs)
    }

    /// These jobs, as far as they are finished and nobody has use for them.
    pub fn of_chosen(jobs: Vec<Seen>, now: Timestamp, logs: &Path) -> Self {
        Self { chosen: jobs, ..Self::along(vec![Stage::Chosen], now, logs) }
    }

    fn along(mut stages: Vec<Stage>, now: Timestamp, logs: &Path) -> Self {
        let rows = |what| Stage::Rows { what, before: now };
        stages.extend([Stage::Environments, rows(Old::Remains), rows(Old::Space)]);
        stages.reverse();
        let after = Mark::default();
        Self {
            stages,
            after,
            chosen: Vec::new(),
            sweep: Sweep::default(),
            logs: logs.to_owned(),
            files: None,
            dry_run: false,
            forgotten: Forgotten::default(),
        }
    }

    /// The same, but nothing is forgotten, only counted.
    #[must_use]
    pub fn dry(self) -> Self {
        Self { dry_run: true, ..self }
    }

    pub fn forgotten(&self) -> Forgotten {
        self.forgotten
    }

    /// Takes a step. `false`: there is nothing left to do.
    pub fn step(&mut self, store: &dyn Store) -> Result<bool, StoreError> {
        let Some(stage) = self.stages.last().copied() else {
            return Ok(false);
        };
        let is_over = match stage {
            Stage::Chosen => self.step_along_chosen(store)?,
            Stage::Environments => self.dry_run || !store.sweep(&mut self.sweep, JOBS_PER_SWEEP)?,
            Stage::Rows { what, before } => self.step_along_rows(store, what, before)?,
            Stage::Logs { before } => self.step_along_files(store, before)?,
        };
        if is_over {
            self.stages.pop();
            self.after = Mark::default();
        }
        Ok(!self.stages.is_empty())
    }

    fn step_along_rows(
        &mut self,
        store: &dyn Store,
        what: Old,
        before: Timestamp,
    ) -> Result<bool, StoreError> {
        let limit = if what == Old::Space { PAGES_PER_STEP } else { ROWS_PER_STEP };
        let pruned = store.prune(&Prune { what, before, after: self.after, limit, dry_run: self.dry_run })?;
        match what {
            Old::Jobs(_) => self.forgotten.jobs += pruned.count,
            Old::Outputs => self.forgotten.outputs += pruned.count,
            Old::Events => self.forgotten.events += pruned.count,
            Old::Remains | Old::Space => {}
        }
        self.remove_logs_of(&pruned);
        self.after = pruned.next.unwrap_or_default();
        Ok(pruned.next.is_none())
    }

    fn step_along_chosen(&mut self, store: &dyn Store) -> Result<bool, StoreError> {
        let rest = self.chosen.len().saturating_sub(ROWS_PER_STEP);
        let pruned = store.forget(&self.chosen[rest..], self.dry_run)?;
        self.chosen.truncate(rest);
        self.forgotten.jobs += pruned.count;
        self.remove_logs_of(&pruned);
        Ok(self.chosen.is_empty())
    }

    fn remove_logs_of(&self, pruned: &Pruned) {
        for (number, attempts) in &pruned.gone {
            remove_logs(&self.logs, *number, *attempts);
        }
    }

    fn step_along_files(&mut self, store: &dyn Store, before: Option<Timestamp>) -> Result<bool, StoreError> {
        if self.files.is_none() {
            self.files = self.logs.read_dir().ok();
        }
        // Without a folder there are no files.
        let Some(entries) = &mut self.files else {
            return Ok(true);
        };
        let entries: Vec<_> = entries.by_ref().take(ROWS_PER_STEP).flatten().collect();
        let files: Vec<_> =
            entries.iter().filter_map(|entry| parse_file_name(entry.file_name().to_str()?)).collect();
        let expired = store.expired_logs(&files, before)?;
        self.forgotten.outputs += expired.len() as u64;
        for (number, attempt) in expired.into_iter().filter(|_| !self.dry_run) {
            remove_log(&self.logs, number, attempt);
        }
        Ok(entries.is_empty())
    }
}

/// Removes the log files of a job that is gone; most have none.
pub fn remove_logs(logs: &Path, number: u64, attempts: u32) {
    for attempt in 1..=attempts {
        remove_log(logs, number, attempt);
    }
}

/// The same where nobody knows how many attempts they had: the whole folder is looked through once.
pub fn remove_logs_of(logs: &Path, gone: &BTreeSet<u64>) {
    let Ok(entries) = logs.read_dir() else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if let Some((number, attempt)) = name.to_str().and_then(parse_file_name)
            && gone.contains(&number)
        {
            remove_log(logs, number, attempt);
        }
    }
}

fn remove_log(logs: &Path, number: u64, attempt: u32) {
    // What cannot be removed now is found by the next walk.
    let _ = std::fs::remove_file(logs.join(file_name(number, attempt)));
}

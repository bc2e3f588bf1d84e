//! The verbs of the areas other than jobs, workers and settings.

use std::path::Path;
use std::time::Duration;

use super::SqliteStore;
use super::portions::Cascade;
use crate::sqlite::tables::{batches, deliveries, duties, events, hooks, queues, runs, schedules};
use crate::sqlite::verbs::{edit, environment_gc, fire, prune};
use crate::sqlite::views::{eta_facts, explain_facts, graph};
use crate::sqlite::{backup, recount, transfer};
use crate::transfer::{ImportError, ImportSummary, Line};
use crate::{
    Backup, Batch, Batches, Change, Contradiction, DeliveryExchange, DeliveryExchangeResult, DerivedData,
    Duty, EnqueueResult, EnvironmentGc, Event, EventPage, ExplainFacts, ExportScope, FireResult, Graphs,
    Hook, Hooks, JobRef, NewHook, NewSchedule, Pause, Progress, PruneResult, PruneStep, Queue, QueueUpdate,
    Queues, ScheduleRefusal, Schedules, StoreError, Upkeep,
};
use domain::batch::eta::EtaFacts;
use domain::job::edit::Edit;
use domain::job::graph::Graph;
use domain::schedule::{LAST_RUNS, Run, Schedule};
use domain::values::name::{BatchName, HookName, JobId, QueueName, ScheduleName};
use domain::values::timestamp::Timestamp;
use sys::process::Holder;

impl Queues for SqliteStore {
    fn queues(&self) -> Result<Vec<Queue>, StoreError> {
        self.read(queues::list)
    }

    fn pause_queue(&self, queue: &QueueName, pause: &Pause) -> Result<(), StoreError> {
        self.write("pause_queue", |tx| queues::pause(tx, queue, pause))
    }

    fn resume_queue(&self, queue: &QueueName, by: &str) -> Result<(), StoreError> {
        self.write("resume_queue", |tx| queues::resume(tx, queue, by))
    }

    fn set_queue(&self, queue: &QueueName, update: &QueueUpdate, by: &str) -> Result<(), StoreError> {
        self.write("set_queue", |tx| queues::set(tx, queue, update, by))
    }
}

impl Graphs for SqliteStore {
    fn graph(&self, id: &JobId, limit: usize) -> Result<Option<Graph>, StoreError> {
        self.read(|tx| graph::graph(tx, id, limit))
    }
}

impl Schedules for SqliteStore {
    fn add_schedule(
        &self,
        schedule: &NewSchedule,
        by: &str,
    ) -> Result<Result<Schedule, ScheduleRefusal>, StoreError> {
        self.write("add_schedule", |tx| schedules::add(tx, schedule, by))
    }

    fn schedules(&self) -> Result<Vec<(Schedule, Option<Run>)>, StoreError> {
        self.read(runs::all_with_latest)
    }

    fn schedule(&self, name: &ScheduleName) -> Result<Option<(Schedule, Vec<Run>)>, StoreError> {
        self.read(|tx| runs::find_with_latest(tx, name, LAST_RUNS))
    }

    fn set_schedule_pause(
        &self,
        name: &ScheduleName,
        pause: Option<&Pause>,
        by: &str,
    ) -> Result<bool, StoreError> {
        self.write("set_schedule_pause", |tx| schedules::change_pause(tx, name, pause, by))
    }

    fn remove_schedule(&self, name: &ScheduleName, by: &str) -> Result<bool, StoreError> {
        self.write("remove_schedule", |tx| schedules::remove(tx, name, by))
    }

    fn run_schedule(&self, name: &ScheduleName, by: &str) -> Result<Option<EnqueueResult>, StoreError> {
        self.write("run_schedule", |tx| fire::run(tx, name, by))
    }

    fn fire_due(&self) -> Result<FireResult, StoreError> {
        self.write("fire", fire::fire_due)
    }
}

impl Batches for SqliteStore {
    fn batches(&self, limit: usize) -> Result<Vec<Batch>, StoreError> {
        self.read(|tx| batches::list(tx, limit))
    }

    fn batch(&self, name: &BatchName) -> Result<Option<Batch>, StoreError> {
        self.read(|tx| batches::find(tx, name))
    }

    fn eta_facts(&self, name: &BatchName) -> Result<EtaFacts, StoreError> {
        self.read(|tx| eta_facts::eta_facts(tx, name))
    }
}

impl Hooks for SqliteStore {
    fn hooks(&self) -> Result<Vec<Hook>, StoreError> {
        self.read(hooks::list)
    }

    fn add_hook(&self, hook: &NewHook, by: &str) -> Result<bool, StoreError> {
        self.write("add_hook", |tx| hooks::add(tx, hook, by))
    }

    fn remove_hook(&self, name: &HookName, by: &str) -> Result<bool, StoreError> {
        self.write("remove_hook", |tx| hooks::remove(tx, name, by))
    }

    fn exchange_deliveries(
        &self,
        exchange: &DeliveryExchange<'_>,
    ) -> Result<DeliveryExchangeResult, StoreError> {
        self.write("exchange_deliveries", |tx| deliveries::exchange(tx, exchange))
    }
}

impl Upkeep for SqliteStore {
    fn backup(&self, backup: &Backup<'_>, progress: &mut dyn FnMut(Progress)) -> Result<(), StoreError> {
        backup::copy(&self.lock().connection, backup, progress)
    }

    fn finish_restore(&self, logs: &Path) -> Result<(), StoreError> {
        if !backup::any_staged(logs) {
            return Ok(());
        }
        let opened = self.lock();
        let _pass = opened.gate.enter(opened.lock_timeout.get())?;
        backup::put_restored_logs(&opened.connection, logs)
    }

    fn export(&self, which: &ExportScope<'_>, sink: &mut dyn FnMut(Line) -> bool) -> Result<(), StoreError> {
        let opened = self.lock();
        self.view(&opened, |tx| transfer::export(tx, which, sink))
    }

    fn import(
        &self,
        lines: &mut dyn Iterator<Item = Result<Line, ImportError>>,
        if_absent: bool,
        by: &str,
    ) -> Result<ImportSummary, ImportError> {
        self.write("import", |tx| transfer::import(tx, lines, if_absent, by))
    }

    fn prune(&self, prune: &PruneStep) -> Result<PruneResult, StoreError> {
        if prune.dry_run {
            return self.read(|tx| prune::prune(tx, prune));
        }
        self.write("prune", |tx| prune::prune(tx, prune))
    }

    fn prune_jobs(&self, jobs: &[JobRef], dry_run: bool) -> Result<PruneResult, StoreError> {
        if dry_run {
            return Ok(self.read(|tx| prune::prune_selected(tx, jobs, true))?.1);
        }
        let (mut rest, mut all) = (jobs, PruneResult::default());
        while !rest.is_empty() {
            let (examined, pruned) = self.write("prune_jobs", |tx| prune::prune_selected(tx, rest, false))?;
            rest = &rest[examined..];
            all.count += pruned.count;
            all.gone.extend(pruned.gone);
        }
        Ok(all)
    }

    fn collect_environments(&self, gc: &mut EnvironmentGc, limit: usize) -> Result<bool, StoreError> {
        // Scanning needs no write lock.
        let (scanned, is_last) = self.read(|tx| environment_gc::scan(tx, gc, limit))?;
        *gc = scanned;
        if is_last && !gc.is_over() {
            *gc = self.write("environment_gc", |tx| environment_gc::delete_unused(tx, gc, limit))?;
        }
        Ok(!gc.is_over())
    }

    fn expired_logs(
        &self,
        files: &[(u64, u32)],
        before: Option<Timestamp>,
    ) -> Result<Vec<(u64, u32)>, StoreError> {
        self.read(|tx| prune::expired_logs(tx, files, before))
    }

    fn recount(&self) -> Result<Vec<Contradiction>, StoreError> {
        self.read(recount::find)
    }

    fn repair(&self, found: &[Contradiction], by: &str) -> Result<(), StoreError> {
        let derived: Vec<DerivedData> = found.iter().map(|found| found.derived.clone()).collect();
        let mut rest = &derived[..];
        while !rest.is_empty() {
            let repaired = self.write("repair", |tx| recount::repair(tx, rest))?;
            rest = &rest[repaired..];
        }
        self.unblock_remaining(&mut Cascade::default());
        let detail = format!("{} contradictions", found.len());
        self.write("repair", |tx| events::record(tx, None, "repair", by, Some(&detail)))
    }

    fn edit(&self, id: &JobId, edit: &Edit, by: &str) -> Result<Change, StoreError> {
        self.write("edit", |tx| edit::edit(tx, id, edit, by))
    }

    fn edit_and_retry(&self, id: &JobId, edit: &Edit, by: &str) -> Result<Change, StoreError> {
        loop {
            self.unblock_pending()?;
            let changed = self.write("edit_and_retry", |tx| edit::edit_and_retry(tx, id, edit, by))?;
            if let Some(change) = changed {
                return Ok(change);
            }
        }
    }

    fn explain_facts(&self, id: &JobId) -> Result<Option<ExplainFacts>, StoreError> {
        self.read(|tx| explain_facts::explain_facts(tx, id))
    }

    fn events(&self, page: &EventPage) -> Result<Vec<Event>, StoreError> {
        self.read(|tx| events::list(tx, page))
    }

    fn note(&self, event: &str, by: &str, detail: &str) -> Result<(), StoreError> {
        self.write("note", |tx| events::record(tx, None, event, by, Some(detail)))
    }

    fn writer(&self) -> Option<Holder> {
        self.lock().gate.holder()
    }

    fn take_duty(&self, duty: Duty, lease: Duration) -> Result<bool, StoreError> {
        // Most callers come too early; they need not wait for the gate.
        if !self.read(|tx| duties::is_due(tx, duty))? {
            return Ok(false);
        }
        self.write("take_duty", |tx| duties::take(tx, duty, lease))
    }

    fn end_duty(&self, duty: Duty, next: Duration, by: &str, done: Option<&str>) -> Result<(), StoreError> {
        self.write("end_duty", |tx| duties::end(tx, duty, next, by, done))
    }
}

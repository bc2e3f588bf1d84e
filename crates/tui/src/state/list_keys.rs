//! The keys of the lists.

use std::collections::BTreeSet;

use super::{Confirm, Effect, Focus, LogView, Marks, Mode, Prompt, PromptKind, ROWS_STEP, State};
use crate::actions::Action;
use crate::data::snapshot::Rows;
use crate::tab::Tab;
use crate::terminal::Key;
use domain::job::Job;
use domain::values::name::{JobId, QueueName};
use ops::jobs::change::Verb;
use ops::jobs::list::filter_text::FilterText;
use ops::queues::MAX_CONCURRENCY;
use store::{Order, Queue};

impl State {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key means what it means everywhere")]
    pub(super) fn list_key(&mut self, key: Key) -> Option<Effect> {
        if self.move_key(key) {
            return None;
        }
        match key {
            Key::Right => self.switch_to(self.tab.step(1)),
            Key::Left => self.switch_to(self.tab.step(Tab::ALL.len() - 1)),
            Key::Enter => self.open_row(),
            Key::Escape => self.leave(),
            Key::Char('/') => {
                let text =
                    if self.filter.is_empty() { String::new() } else { format!("{} ", self.filter.text()) };
                self.mode = Mode::Prompt(Prompt::new(PromptKind::Filter, &text));
            }
            Key::Char('s') if self.tab == Tab::Jobs => self.next_order(),
            Key::Char('x') => self.mark(),
            Key::Char('*') if self.tab == Tab::Jobs => self.mark_all(),
            Key::Char('l') => self.open_log(),
            Key::Char('Y') => return self.copy_line(),
            Key::Char('r' | 'c' | 'd' | 'R' | 'C' | 'D' | 'p' | '+' | '-') if self.fixed.is_read_only => {
                self.refuse_change();
            }
            Key::Char('r' | 'c' | 'd' | 'R' | 'C' | 'D' | 'p' | '+' | '-') if self.is_searching() => {
                self.refuse_while_searching();
            }
            Key::Char('r') => return self.change(Verb::Retry),
            Key::Char('c') => return self.change(Verb::CANCEL),
            Key::Char('d') => return self.change(Verb::Remove),
            Key::Char('R') => return self.change_matching(Verb::Retry),
            Key::Char('C') => return self.change_matching(Verb::CANCEL),
            Key::Char('D') => return self.change_matching(Verb::Remove),
            Key::Char('p') => self.pause(),
            Key::Char('+') => self.change_concurrency(1),
            Key::Char('-') => self.change_concurrency(-1),
            other => return self.common_key(other),
        }
        None
    }

    /// Keys that move the cursor; whether it was one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key moves nothing")]
    fn move_key(&mut self, key: Key) -> bool {
        let page = isize::try_from(self.size.height / 2).unwrap_or(1).max(1);
        match key {
            Key::Char('j') | Key::Down => self.step(1),
            Key::Char('k') | Key::Up => self.step(-1),
            Key::Ctrl('d') | Key::PageDown => self.step(page),
            Key::Ctrl('u') | Key::PageUp => self.step(-page),
            Key::Char('g') | Key::Home => self.cursor_mut().go(0),
            Key::Char('G') | Key::End => self.step(isize::MAX),
            _ => return false,
        }
        self.log = LogView::default();
        true
    }

    /// Moves the cursor. At the end of what was read, more is read.
    pub(super) fn step(&mut self, by: isize) {
        self.cursor_mut().step(by);
        let length = self.snapshot().map_or(0, |snapshot| snapshot.rows.len());
        if self.cursor().is_at_end() && length >= self.rows {
            self.rows += ROWS_STEP;
        }
    }

    pub(super) fn switch_to(&mut self, tab: Tab) {
        self.back.clear();
        self.go_to(tab);
    }

    pub(super) fn go_to(&mut self, tab: Tab) {
        if tab != self.tab || tab == Tab::Jobs {
            self.marks = Marks::None;
            self.rows = ROWS_STEP;
        }
        self.tab = tab;
        self.focus = Focus::List;
        self.counting = None;
        self.log = LogView::default();
    }

    /// Back to where the user came from, or to the list without marks and filter.
    fn leave(&mut self) {
        if self.marks != Marks::None {
            self.marks = Marks::None;
        } else if let Some((tab, filter)) = self.back.pop() {
            self.filter = filter;
            self.go_to(tab);
        } else if self.tab == Tab::Jobs {
            self.filter = FilterText::default();
            self.counting = None;
        }
    }

    pub(super) fn open_row(&mut self) {
        let Some(snapshot) = self.snapshot() else {
            return;
        };
        let at = self.cursor().at();
        let name = snapshot.key(at);
        let term = match &snapshot.rows {
            Rows::Overview { .. } | Rows::Jobs(_) | Rows::Events(_) => return self.open_job(Focus::Job),
            Rows::Dead(_) => "cause",
            Rows::Queues(_) => "queue",
            Rows::Workers(_) => "worker",
            Rows::Schedules(_) => "schedule",
            Rows::Batches(_) => "batch",
        };
        let filter = name.and_then(|name| FilterText::parse(&format!("{term}:\"{name}\"")).ok());
        if let Some(filter) = filter {
            self.show_jobs(filter);
            self.cursor_mut().go(0);
        }
    }

    fn open_log(&mut self) {
        self.log_opened_in = Focus::List;
        self.open_job(Focus::Log);
    }

    fn open_job(&mut self, focus: Focus) {
        match self.job() {
            Some(id) => {
                self.opened = Some(id);
                self.focus = focus;
                self.counting = None;
            }
            None => self.fail("this row has no job"),
        }
    }

    pub(super) fn next_order(&mut self) {
        let at = Order::ALL.iter().position(|order| *order == self.order).unwrap_or(0);
        self.order = Order::ALL[(at + 1) % Order::ALL.len()];
        self.counting = None;
        if self.marks == Marks::All {
            // Another order may list other jobs.
            self.marks = Marks::None;
        }
        self.cursor_mut().go(0);
    }

    fn mark(&mut self) {
        let Some(id) = self.row_job().map(|job| job.id.clone()) else {
            return self.fail("only jobs can be marked");
        };
        let mut marked = match std::mem::take(&mut self.marks) {
            Marks::Some(marked) => marked,
            Marks::None | Marks::All => BTreeSet::new(),
        };
        if !marked.remove(&id) {
            marked.insert(id);
        }
        self.marks = if marked.is_empty() { Marks::None } else { Marks::Some(marked) };
        self.step(1);
    }

    fn mark_all(&mut self) {
        if let Err(why) = self.listed_filter() {
            return self.fail(why);
        }
        self.marks = if self.marks == Marks::All { Marks::None } else { Marks::All };
    }

    /// The job under the cursor, in the list of jobs.
    fn row_job(&self) -> Option<&Job> {
        match &self.snapshot()?.rows {
            Rows::Jobs(rows) => rows.jobs.get(self.cursor().at()),
            Rows::Overview { .. }
            | Rows::Dead(_)
            | Rows::Queues(_)
            | Rows::Workers(_)
            | Rows::Schedules(_)
            | Rows::Batches(_)
            | Rows::Events(_) => None,
        }
    }

    /// The command that selects what the list shows, or the job under the cursor.
    fn copy_line(&mut self) -> Option<Effect> {
        let flags = self.listed_filter().ok().and_then(|filter| filter.flags());
        let line = match (self.tab, flags) {
            (Tab::Jobs, Some(flags)) => format!("queuectl list {flags}").trim_end().to_owned(),
            _ => format!("queuectl show {}", self.job()?),
        };
        self.say(format!("copied {line}"));
        Some(Effect::Copy(line))
    }

    /// Asks whether to change the marked jobs, or the one under the cursor.
    pub(super) fn change(&mut self, verb: Verb) -> Option<Effect> {
        let ids: Vec<JobId> = match &self.marks {
            Marks::All => return self.change_matching(verb),
            Marks::Some(marked) => marked.iter().cloned().collect(),
            Marks::None => self.job().into_iter().collect(),
        };
        if ids.is_empty() {
            self.fail("this row has no job");
            return None;
        }
        let name = self.row_job().map_or_else(|| ids[0].to_string(), Job::handle);
        self.mode = Mode::Confirm(Confirm::jobs(verb, ids, &format!("job {name}")));
        None
    }

    /// First counts what the change would reach.
    fn change_matching(&mut self, verb: Verb) -> Option<Effect> {
        let filter = match self.tab {
            Tab::Jobs => match self.listed_filter() {
                Ok(filter) => filter,
                Err(why) => {
                    self.fail(why);
                    return None;
                }
            },
            Tab::Dead | Tab::Queues | Tab::Workers | Tab::Schedules | Tab::Batches => self.row_filter()?,
            Tab::Overview | Tab::Events => {
                self.fail("open the list of jobs first: 2");
                return None;
            }
        };
        self.counting = Some(filter.clone());
        self.say("counting…");
        Some(Effect::Do(Action::Count { verb, filter }))
    }

    /// The jobs that the row under the cursor stands for.
    fn row_filter(&self) -> Option<FilterText> {
        let snapshot = self.snapshot()?;
        let term = match self.tab {
            Tab::Dead => "cause",
            Tab::Queues => "queue",
            Tab::Workers => "worker",
            Tab::Schedules => "schedule",
            Tab::Batches => "batch",
            Tab::Overview | Tab::Jobs | Tab::Events => return None,
        };
        FilterText::parse(&format!("{term}:\"{}\"", snapshot.key(self.cursor().at())?)).ok()
    }

    /// The queue of the row under the cursor.
    fn row_queue(&self) -> Option<&Queue> {
        let snapshot = self.snapshot()?;
        let name: QueueName = match &snapshot.rows {
            Rows::Jobs(rows) => rows.jobs.get(self.cursor().at())?.queue.clone(),
            Rows::Queues(queues) => queues.get(self.cursor().at())?.queue.name.clone(),
            Rows::Overview { failures, .. } => failures.get(self.cursor().at())?.queue.clone(),
            Rows::Dead(_) | Rows::Workers(_) | Rows::Schedules(_) | Rows::Batches(_) | Rows::Events(_) => {
                return None;
            }
        };
        snapshot.status.queues.iter().find(|queue| queue.name == name)
    }

    fn pause(&mut self) {
        let schedule = match self.snapshot().map(|snapshot| &snapshot.rows) {
            Some(Rows::Schedules(schedules)) => {
                schedules.get(self.cursor().at()).map(|(schedule, _)| schedule.clone())
            }
            _ => None,
        };
        let (line, action) = if let Some(schedule) = schedule {
            let name = schedule.name;
            match schedule.paused {
                Some(_) => (format!("resume schedule {name}?"), Action::ResumeSchedule(name)),
                None => (format!("pause schedule {name}?"), Action::PauseSchedule(name)),
            }
        } else if let Some(queue) = self.row_queue() {
            let name = queue.name.clone();
            match queue.paused {
                Some(_) => (format!("resume queue {name}?"), Action::ResumeQueue(name)),
                None => (format!("pause queue {name}?"), Action::PauseQueue(name)),
            }
        } else {
            return self.fail("this row has no queue");
        };
        self.mode = Mode::Confirm(Confirm::simple(line, action));
    }

    fn change_concurrency(&mut self, by: i64) {
        let Some(queue) = self.row_queue() else {
            return self.fail("this row has no queue");
        };
        let limit =
            queue.concurrency.map_or_else(|| i64::try_from(queue.running()).unwrap_or(0), i64::from) + by;
        let limit = u32::try_from(limit.clamp(1, i64::from(MAX_CONCURRENCY))).unwrap_or(1);
        let (name, before) = (queue.name.clone(), queue.concurrency);
        let before = before.map_or_else(|| "none".to_owned(), |before| before.to_string());
        let line = format!("concurrency of queue {name}: {before} to {limit}?");
        self.mode = Mode::Confirm(Confirm::simple(line, Action::SetConcurrency(name, Some(limit))));
    }
}

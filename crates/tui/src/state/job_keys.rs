//! The keys while one job has the screen.

use super::{Confirm, Effect, Focus, Mode, State};
use crate::actions::Action;
use crate::terminal::Key;
use domain::job::Job;
use ops::jobs::change::Verb;

impl State {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key means what it means everywhere")]
    pub(super) fn job_key(&mut self, key: Key) -> Option<Effect> {
        match key {
            Key::Escape | Key::Left => self.focus = Focus::List,
            Key::Char('l') | Key::Enter => {
                self.log_opened_in = Focus::Job;
                self.focus = Focus::Log;
            }
            Key::Char('g') => return self.job().map(|id| Effect::Do(Action::Graph(id))),
            Key::Char('[') => self.step_attempt(-1),
            Key::Char(']') => self.step_attempt(1),
            Key::Char('j') | Key::Down => self.scroll_log(-1),
            Key::Char('k') | Key::Up => self.scroll_log(1),
            Key::Char('Y') => {
                let line = format!("queuectl show {}", self.job()?);
                self.say(format!("copied {line}"));
                return Some(Effect::Copy(line));
            }
            Key::Char('r' | 'c' | 'd') if self.fixed.is_read_only => self.refuse_change(),
            Key::Char('r') => self.change_opened(Verb::Retry),
            Key::Char('c') => self.change_opened(Verb::CANCEL),
            Key::Char('d') => self.change_opened(Verb::Remove),
            other => return self.common_key(other),
        }
        None
    }

    fn change_opened(&mut self, verb: Verb) {
        let Some(id) = self.job() else {
            return;
        };
        let record = self.snapshot.as_ref().and_then(|snapshot| snapshot.job.as_ref());
        let name = record.map_or_else(|| id.to_string(), |record| Job::handle(&record.job));
        self.mode = Mode::Confirm(Confirm::jobs(verb, vec![id], &format!("job {name}")));
    }
}

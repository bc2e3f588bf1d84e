//! The keys of the output of an attempt.

use super::{Effect, Mode, Prompt, PromptKind, State};
use crate::data::log::LogLine;
use crate::terminal::Key;
use domain::log::Stream;

impl State {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key means what it means everywhere")]
    pub(super) fn log_key(&mut self, key: Key) -> Option<Effect> {
        let page = isize::try_from(self.size.height.saturating_sub(4)).unwrap_or(1).max(1);
        match key {
            Key::Escape | Key::Left => self.leave_log(),
            Key::Char('j') | Key::Down => self.scroll_log(-1),
            Key::Char('k') | Key::Up => self.scroll_log(1),
            Key::Ctrl('d') | Key::PageDown => self.scroll_log(-page),
            Key::Ctrl('u') | Key::PageUp => self.scroll_log(page),
            Key::Char('g') | Key::Home => self.scroll_log(isize::MAX),
            Key::Char('G') | Key::End => self.scroll_log(isize::MIN + 1),
            Key::Char('f') => {
                self.log.follows = !self.log.follows;
                self.log.above_end = 0;
            }
            Key::Char('/') => self.mode = Mode::Prompt(Prompt::new(PromptKind::Find, "")),
            Key::Char('n') => self.find_next(1),
            Key::Char('N') => self.find_next(-1),
            Key::Char('o') => {
                self.log.only = match self.log.only {
                    None => Some(Stream::Out),
                    Some(Stream::Out) => Some(Stream::Err),
                    Some(Stream::Err) => None,
                };
            }
            Key::Char('t') => self.log.has_times = !self.log.has_times,
            Key::Char('w') => self.log.wraps = !self.log.wraps,
            Key::Char('[') => self.step_attempt(-1),
            Key::Char(']') => self.step_attempt(1),
            Key::Char('d') => self.log.is_diff = !self.log.is_diff,
            Key::Char('|') => {
                let log = self.shown_log()?;
                return Some(Effect::Page(log.job.clone(), log.attempt.number));
            }
            other => return self.common_key(other),
        }
        None
    }

    fn leave_log(&mut self) {
        if self.log.is_diff {
            self.log.is_diff = false;
        } else if self.log.find.is_some() {
            self.log.find = None;
        } else {
            self.focus = self.log_opened_in;
        }
    }

    pub(super) fn scroll_log(&mut self, up: isize) {
        let lines = self.shown_lines().len();
        self.log.scroll(up, lines);
    }

    pub(super) fn step_attempt(&mut self, by: i64) {
        let Some((shown, last)) = self.shown_log().map(|log| (log.attempt.number, log.attempts)) else {
            return;
        };
        let wanted = u32::try_from(i64::from(shown) + by).unwrap_or(0).clamp(1, last.max(1));
        self.log.attempt = Some(wanted);
        self.log.above_end = 0;
    }

    /// The lines of the chosen stream.
    pub(crate) fn shown_lines(&self) -> Vec<&LogLine> {
        let only = self.log.only;
        let is_shown =
            |line: &&LogLine| line.stream.is_none() || only.is_none_or(|only| line.stream == Some(only));
        self.shown_log().iter().flat_map(|log| &log.lines).filter(is_shown).collect()
    }

    pub(super) fn find(&mut self, text: &str) {
        if text.is_empty() {
            self.log.find = None;
            return;
        }
        self.log.find = Some(text.to_lowercase());
        self.log.above_end = 0;
        let is_in_last = self
            .shown_lines()
            .last()
            .is_some_and(|line| line.plain().to_lowercase().contains(&text.to_lowercase()));
        if !is_in_last {
            self.find_next(-1);
        }
    }

    /// The next line that has the text, towards the end or, with -1, towards the beginning.
    fn find_next(&mut self, direction: isize) {
        let Some(wanted) = self.log.find.clone() else {
            return self.fail("look for something first: /");
        };
        let lines = self.shown_lines();
        let current = lines.len().saturating_sub(1 + self.log.above_end);
        let has_it =
            |at: &usize| lines.get(*at).is_some_and(|line| line.plain().to_lowercase().contains(&wanted));
        let found = if direction > 0 {
            (current + 1..lines.len()).find(has_it)
        } else {
            (0..current).rev().find(has_it)
        };
        let length = lines.len();
        match found {
            Some(at) => {
                self.log.above_end = length - 1 - at;
                self.log.follows = false;
            }
            None => self.fail(format!("no more lines with `{wanted}`")),
        }
    }
}

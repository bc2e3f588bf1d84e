//! What a key means besides moving around: text for a prompt, or the answer to a question.

use super::{Effect, Prompt, State, Text};
use crate::actions::{Action, word};
use crate::terminal::Key;
use domain::job::life::StateName;
use domain::text::counts::jobs;
use domain::values::name::JobId;
use ops::jobs::change::Verb;
use ops::jobs::list::filter_text::FilterText;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Mode {
    #[default]
    Normal,
    Prompt(Prompt),
    Confirm(Confirm),
    Text(Text),
}

/// A change that waits for the user's yes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Confirm(pub(crate) Question);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Question {
    /// One line; `y` says yes.
    Simple { line: String, action: Action },
    /// The number of jobs has to be typed.
    Matching {
        verb: Verb,
        filter: FilterText,
        count: u64,
        is_exact: bool,
        by_state: Vec<(StateName, u64)>,
        typed: String,
    },
}

impl Confirm {
    pub(crate) fn jobs(verb: Verb, ids: Vec<JobId>, name: &str) -> Self {
        let what = if ids.len() == 1 {
            name.to_owned()
        } else {
            format!("{} that you marked", jobs(ids.len() as u64))
        };
        Self(Question::Simple { line: format!("{} {what}?", word(verb)), action: Action::Jobs { verb, ids } })
    }

    pub(crate) fn simple(line: String, action: Action) -> Self {
        Self(Question::Simple { line, action })
    }
}

impl State {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key means the same")]
    pub(super) fn confirm_key(&mut self, confirm: Confirm, key: Key) -> Option<Effect> {
        match confirm.0 {
            Question::Simple { action, .. } => match key {
                Key::Char('y' | 'Y') => return Some(Effect::Do(action)),
                _ => self.say("nothing was changed"),
            },
            Question::Matching { verb, filter, count, is_exact, by_state, mut typed } => {
                match key {
                    Key::Escape => {
                        self.say("nothing was changed");
                        return None;
                    }
                    Key::Enter if typed == count.to_string() => {
                        return Some(Effect::Do(Action::Matching { verb, filter }));
                    }
                    Key::Enter => {
                        self.fail(format!("`{typed}` is not {count}: nothing was changed"));
                        return None;
                    }
                    Key::Char(digit) if digit.is_ascii_digit() => typed.push(digit),
                    Key::Backspace => drop(typed.pop()),
                    _ => {}
                }
                let ask = Question::Matching { verb, filter, count, is_exact, by_state, typed };
                self.mode = Mode::Confirm(Confirm(ask));
            }
        }
        None
    }
}

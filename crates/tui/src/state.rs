//! What the screen shows and how: everything that a key can change, and the latest data. No IO: a key or a message changes
//! the state, and leaves orders for the event loop.

mod cursor;
mod help;
mod job_keys;
mod list_keys;
mod log_keys;
mod log_view;
mod messages;
mod modes;
mod mouse;
mod prompt;
mod text;

pub(crate) use self::cursor::Cursor;
pub(crate) use self::log_view::LogView;
pub(crate) use self::modes::{Confirm, Mode, Question as Ask};
pub(crate) use self::prompt::{Prompt, PromptKind};
pub(crate) use self::text::Text;

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use ratatui::layout::Size;

use self::help::help;
use crate::actions::Action;
use crate::data::log::LogText;
use crate::data::snapshot::Snapshot;
use crate::data::{LogQuestion, Question};
use crate::tab::Tab;
use crate::terminal::{Input, Key};
use crate::theme::Theme;
use domain::values::name::JobId;
use jiff::tz::TimeZone;
use ops::jobs::list::filter_text::FilterText;
use store::Order;

/// How many rows of a list are read at first, and how many more at its end.
pub(crate) const ROWS_STEP: usize = 200;

/// What the keys go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    #[default]
    List,
    /// One job on the whole screen.
    Job,
    /// Its output on the whole screen.
    Log,
}

/// What a key asks of the event loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Quit,
    Do(Action),
    /// Runs a line of the palette.
    RunLine(String),
    /// Asks the line that runs to end.
    EndLine,
    /// Puts text on the clipboard.
    Copy(String),
    SetMouse(bool),
    /// Opens the editor with a job.
    Edit(JobId),
    /// Shows an attempt in the pager.
    Page(JobId, u32),
}

/// The jobs that the next change is for, instead of the one under the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Marks {
    #[default]
    None,
    Some(BTreeSet<JobId>),
    /// All that match the filter.
    All,
}

/// A line in the footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// What the command line decides.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    pub(crate) title: String,
    pub(crate) is_read_only: bool,
    pub(crate) theme: Theme,
    pub(crate) local: TimeZone,
    /// What can follow the words of a line.
    pub(crate) complete: fn(&[String]) -> Vec<String>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) fixed: Fixed,
    pub(crate) size: Size,
    pub(crate) tab: Tab,
    /// Where Esc leads.
    back: Vec<(Tab, FilterText)>,
    pub(crate) focus: Focus,
    pub(crate) mode: Mode,
    cursors: [Cursor; Tab::ALL.len()],
    pub(crate) filter: FilterText,
    pub(crate) order: Order,
    rows: usize,
    pub(crate) marks: Marks,
    /// The job that was opened, while rows change.
    opened: Option<JobId>,
    /// Where Esc leads from the log.
    log_opened_in: Focus,
    pub(crate) log: LogView,
    pub(crate) snapshot: Option<Box<Snapshot>>,
    pub(crate) read_at: Option<Instant>,
    pub(crate) log_text: Option<LogText>,
    /// What came while the screen was frozen: the output of an attempt that ended is sent once only, and rows only when
    /// something has changed.
    held_log: Option<LogText>,
    held_snapshot: Option<(Instant, Box<Snapshot>)>,
    /// The screen stays as it is.
    pub(crate) is_frozen: bool,
    pub(crate) unreadable: Option<String>,
    pub(crate) note: Option<Note>,
    /// The line of the palette that runs.
    pub(crate) running: Option<String>,
    /// Texts to read, until the user has finished a prompt, an answer or another text.
    held_texts: VecDeque<Text>,
    /// The user has asked for a change of the jobs of this filter, waits for their number, and has not gone elsewhere.
    counting: Option<FilterText>,
    pub(crate) problem: usize,
    pub(crate) is_utc: bool,
    pub(crate) has_mouse: bool,
}

impl State {
    pub(crate) fn new(fixed: Fixed, size: Size, has_mouse: bool, is_utc: bool) -> Self {
        Self {
            fixed,
            size,
            tab: Tab::Overview,
            back: Vec::new(),
            focus: Focus::List,
            mode: Mode::Normal,
            cursors: std::array::from_fn(|_| Cursor::default()),
            filter: FilterText::default(),
            order: Order::Newest,
            rows: ROWS_STEP,
            marks: Marks::None,
            opened: None,
            log_opened_in: Focus::List,
            log: LogView::default(),
            snapshot: None,
            read_at: None,
            log_text: None,
            held_log: None,
            held_snapshot: None,
            is_frozen: false,
            unreadable: None,
            note: None,
            running: None,
            held_texts: VecDeque::new(),
            counting: None,
            problem: 0,
            is_utc,
            has_mouse,
        }
    }

    /// What the reader has to read for this screen.
    pub(crate) fn question(&self) -> Question {
        let log = LogQuestion { attempt: self.log.attempt, is_diff: self.log.is_diff };
        Question {
            tab: self.tab,
            filter: self.filter.clone(),
            order: self.order,
            rows: self.rows,
            job: self.job(),
            log,
        }
    }

    /// The job that was opened, or that of the row under the cursor.
    pub(crate) fn job(&self) -> Option<JobId> {
        match self.focus {
            Focus::Job | Focus::Log => self.opened.clone(),
            Focus::List => self.snapshot()?.job_at(self.cursor().at()),
        }
    }

    /// The data of this tab, once they are there.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_deref().filter(|snapshot| snapshot.question.tab == self.tab)
    }

    /// Whether the list on the screen answers another filter or order than those that were chosen.
    pub(crate) fn is_searching(&self) -> bool {
        self.tab == Tab::Jobs && self.snapshot().is_some_and(|snapshot| !self.is_answered_by(snapshot))
    }

    /// Whether these are the rows that were asked for, though there may be more of them by now.
    fn is_answered_by(&self, snapshot: &Snapshot) -> bool {
        let Question { tab, filter, order, rows: _, job: _, log: _ } = &snapshot.question;
        (*tab, filter, *order) == (self.tab, &self.filter, self.order)
    }

    /// The filter for exactly the jobs of the list: some orders have only jobs of one phase. The error says why there is no
    /// such filter.
    pub(crate) fn listed_filter(&self) -> Result<FilterText, String> {
        if self.order == Order::LastFailed {
            return Err("this order shows only jobs that failed: s chooses another one".to_owned());
        }
        let Some(phase) = self.order.phase() else {
            return Ok(self.filter.clone());
        };
        match self.filter.phases() {
            [] => {}
            named if named.iter().all(|other| *other == phase) => return Ok(self.filter.clone()),
            _ => return Err("this order has no jobs of that state: s chooses another one".to_owned()),
        }
        let text = format!("state:{} {}", phase.name(), self.filter.text());
        FilterText::parse(&text).map_err(|error| error.to_string())
    }

    /// The output of the job that the screen is about.
    pub(crate) fn shown_log(&self) -> Option<&LogText> {
        self.log_text.as_ref().filter(|log| Some(&log.job) == self.job().as_ref())
    }

    pub(crate) fn cursor(&self) -> &Cursor {
        &self.cursors[self.tab.index()]
    }

    pub(crate) fn cursor_mut(&mut self) -> &mut Cursor {
        &mut self.cursors[self.tab.index()]
    }

    pub(crate) fn fail(&mut self, why: impl Into<String>) {
        self.note = Some(Note { text: why.into(), is_error: true });
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.note = Some(Note { text: text.into(), is_error: false });
    }

    /// A key or the mouse. The last note has been read by then.
    pub(crate) fn input(&mut self, input: &Input) -> Option<Effect> {
        match input {
            Input::Key(key) => self.key(*key),
            Input::Mouse(mouse) => self.mouse(*mouse),
        }
    }

    fn key(&mut self, key: Key) -> Option<Effect> {
        self.note = None;
        let effect = self.mode_key(key);
        if self.mode == Mode::Normal
            && let Some(text) = self.held_texts.pop_front()
        {
            self.mode = Mode::Text(text);
        }
        effect
    }

    fn mode_key(&mut self, key: Key) -> Option<Effect> {
        match std::mem::take(&mut self.mode) {
            Mode::Normal if key == Key::Escape && self.running.is_some() => Some(Effect::EndLine),
            Mode::Normal => match self.focus {
                Focus::List => self.list_key(key),
                Focus::Job => self.job_key(key),
                Focus::Log => self.log_key(key),
            },
            Mode::Prompt(prompt) => self.prompt_key(prompt, key),
            Mode::Confirm(confirm) => self.confirm_key(confirm, key),
            Mode::Text(text) => {
                self.text_key(text, key);
                None
            }
        }
    }

    /// Keys that mean the same everywhere but in a prompt.
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key means nothing")]
    fn common_key(&mut self, key: Key) -> Option<Effect> {
        match key {
            Key::Char('q') => return Some(Effect::Quit),
            Key::Char(digit @ '1'..='8') => {
                let at = usize::from(u8::try_from(digit).unwrap_or(b'1') - b'1');
                self.switch_to(Tab::ALL[at]);
            }
            Key::Tab => self.switch_to(self.tab.step(1)),
            Key::BackTab => self.switch_to(self.tab.step(Tab::ALL.len() - 1)),
            Key::Char('?') => self.mode = Mode::Text(help(self.size, self.fixed.is_read_only)),
            Key::Char(':') => self.mode = Mode::Prompt(Prompt::new(PromptKind::Line, "")),
            Key::Char('z') => self.is_utc = !self.is_utc,
            Key::Char('m') => {
                self.has_mouse = !self.has_mouse;
                self.say(if self.has_mouse { "mouse on" } else { "mouse off: text can be selected" });
                return Some(Effect::SetMouse(self.has_mouse));
            }
            Key::Char(' ') => self.freeze_or_continue(),
            Key::Char('!') => self.problem += 1,
            Key::Char('y') => {
                if let Some(id) = self.job() {
                    self.say(format!("copied {id}"));
                    return Some(Effect::Copy(id.to_string()));
                }
            }
            Key::Char('w') => return self.job().map(|id| Effect::Do(Action::Explain(id))),
            Key::Char('e') => return self.edit(),
            _ => {}
        }
        None
    }

    fn edit(&mut self) -> Option<Effect> {
        if self.fixed.is_read_only {
            self.refuse_change();
            return None;
        }
        if self.focus == Focus::List && self.is_searching() {
            self.refuse_while_searching();
            return None;
        }
        self.job().map(Effect::Edit)
    }

    fn refuse_change(&mut self) {
        self.fail("--read-only: nothing can be changed here");
    }

    /// The rows on the screen are not those of the filter above them.
    fn refuse_while_searching(&mut self) {
        self.fail("still searching: the rows are those of before");
    }
}

//! What arrives from the other threads: rows, output, and the results of orders.

use std::time::Instant;

use super::{Ask, Confirm, Marks, Mode, Note, State, Text};
use crate::actions::ActionResult;
use crate::data::Message;
use crate::data::snapshot::Snapshot;

impl State {
    pub(crate) fn receive(&mut self, message: Message) {
        match message {
            Message::Snapshot(snapshot) if self.is_frozen && !self.is_missing(&snapshot) => {
                self.unreadable = None;
                self.held_snapshot = Some((Instant::now(), snapshot));
            }
            Message::Log(text) if self.is_frozen => self.held_log = Some(text),
            Message::Snapshot(snapshot) => self.show(Instant::now(), snapshot),
            Message::Log(text) => self.log_text = Some(text),
            Message::Unreadable(why) => self.unreadable = Some(why),
            Message::Action(result) => self.receive_result(result),
            Message::LineEnded(result) => {
                self.running = None;
                self.receive_result(result);
            }
        }
    }

    fn show(&mut self, read_at: Instant, snapshot: Box<Snapshot>) {
        self.unreadable = None;
        self.read_at = Some(read_at);
        let is_of_tab = snapshot.question.tab == self.tab;
        self.snapshot = Some(snapshot);
        self.held_snapshot = None;
        if is_of_tab {
            self.keep_cursor();
        }
    }

    pub(super) fn freeze_or_continue(&mut self) {
        self.is_frozen = !self.is_frozen;
        self.log_text = self.held_log.take().or_else(|| self.log_text.take());
        if let Some((read_at, snapshot)) = self.held_snapshot.take() {
            self.show(read_at, snapshot);
        }
        self.say(if self.is_frozen { "frozen; space continues" } else { "live" });
    }

    /// Whether these rows answer the user's question, and those on the screen do not.
    fn is_missing(&self, new: &Snapshot) -> bool {
        self.is_answered_by(new) && !self.snapshot().is_some_and(|shown| self.is_answered_by(shown))
    }

    /// Puts the cursor back on its row, wherever that is now.
    fn keep_cursor(&mut self) {
        let Some(snapshot) = self.snapshot.take() else {
            return;
        };
        let length = snapshot.rows.len();
        self.cursor_mut().keep(length, |at| snapshot.key(at));
        self.snapshot = Some(snapshot);
    }

    fn receive_result(&mut self, result: ActionResult) {
        match result {
            ActionResult::Done { what, command } => {
                self.marks = Marks::None;
                let same = command.map_or_else(String::new, |command| format!("  ({command})"));
                self.note = Some(Note { text: format!("{what}{same}"), is_error: false });
            }
            ActionResult::Failed(why) => self.fail(why),
            ActionResult::Text { title, lines } => {
                let text = Text { title, lines, top: 0 };
                // What the user types now must not become keys of the text.
                if self.mode == Mode::Normal {
                    self.mode = Mode::Text(text);
                } else {
                    self.held_texts.push_back(text);
                }
            }
            ActionResult::Counted { verb, filter, count, is_exact, by_state } => {
                if self.mode != Mode::Normal || self.counting.take().as_ref() != Some(&filter) {
                    return;
                }
                let ask = Ask::Matching { verb, filter, count, is_exact, by_state, typed: String::new() };
                self.mode = Mode::Confirm(Confirm(ask));
            }
        }
    }
}

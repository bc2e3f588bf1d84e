//! The mouse: rows, tabs and the wheel.

use super::{Effect, Focus, Mode, State};
use crate::layout::Layout;
use crate::tab::Tab;
use crate::terminal::Mouse;

/// How many rows one step of the wheel moves.
const WHEEL_ROWS: isize = 3;

impl State {
    pub(super) fn mouse(&mut self, mouse: Mouse) -> Option<Effect> {
        if self.mode != Mode::Normal {
            return None;
        }
        match (mouse, self.focus) {
            (Mouse::WheelUp, Focus::List) => self.step(-WHEEL_ROWS),
            (Mouse::WheelDown, Focus::List) => self.step(WHEEL_ROWS),
            (Mouse::WheelUp, Focus::Job | Focus::Log) => self.scroll_log(WHEEL_ROWS),
            (Mouse::WheelDown, Focus::Job | Focus::Log) => self.scroll_log(-WHEEL_ROWS),
            (Mouse::Click { x, y }, _) => self.click(x, y),
        }
        None
    }

    fn click(&mut self, x: u16, y: u16) {
        let layout = Layout::of(self);
        if y == layout.tabs.y && layout.tabs.height > 0 {
            if let Some(at) = layout.tab_at(x) {
                self.switch_to(Tab::ALL[at]);
            }
            return;
        }
        if self.focus != Focus::List {
            return;
        }
        if y == layout.columns.y && self.tab == Tab::Jobs {
            return self.next_order();
        }
        if layout.rows.contains((x, y).into()) {
            let top = self.cursor().top(usize::from(layout.rows.height));
            let at = top + usize::from(y - layout.rows.y);
            if at == self.cursor().at() {
                self.open_row();
            } else {
                self.cursor_mut().go(at);
            }
        }
    }
}

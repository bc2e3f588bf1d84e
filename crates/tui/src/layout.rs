//! Where everything is. Views and the mouse use the same places.

use ratatui::layout::{Rect, Size};

use crate::state::{Focus, State};
use crate::tab::Tab;

/// From this width on, the list has the job under the cursor beside it.
const WIDE: u16 = 120;
/// From this size on, the overview has charts.
const CHARTS: (u16, u16) = (160, 45);
/// From this height on, a list has the output of its job below it.
const TALL: u16 = 20;
/// A smaller screen says so.
const SMALLEST: (u16, u16) = (40, 10);
/// Longer lines of a text are hard to read.
const MAX_BOX_WIDTH: u16 = 110;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) header: Rect,
    pub(crate) counts: Rect,
    pub(crate) problem: Rect,
    pub(crate) tabs: Rect,
    /// The charts of the overview.
    pub(crate) charts: Rect,
    pub(crate) title: Rect,
    pub(crate) columns: Rect,
    pub(crate) rows: Rect,
    /// The job under the cursor.
    pub(crate) detail: Rect,
    pub(crate) log: Rect,
    pub(crate) footer: Rect,
    pub(crate) tab: Tab,
}

impl Layout {
    pub(crate) fn is_too_small(state: &State) -> bool {
        state.size.width < SMALLEST.0 || state.size.height < SMALLEST.1
    }

    pub(crate) fn of(state: &State) -> Self {
        let (width, height) = (state.size.width, state.size.height);
        let mut free = Rect::new(0, 0, width, height);
        let has_problem = state.unreadable.is_some()
            || state.snapshot.as_ref().is_some_and(|snapshot| !snapshot.status.problems.is_empty());
        let mut layout = Self {
            header: take_top(&mut free, 1),
            counts: take_top(&mut free, 1),
            problem: take_top(&mut free, u16::from(has_problem)),
            tabs: take_top(&mut free, 1),
            footer: take_bottom(&mut free, 1),
            tab: state.tab,
            ..Self::default()
        };
        match state.focus {
            Focus::Log => layout.log = free,
            Focus::Job => {
                layout.detail = take_top(&mut free, (height / 2).max(6));
                layout.log = free;
            }
            Focus::List => layout.split_list(free, state),
        }
        layout
    }

    fn split_list(&mut self, mut free: Rect, state: &State) {
        let (width, height) = (state.size.width, state.size.height);
        let has_job = match state.tab {
            Tab::Overview | Tab::Jobs | Tab::Dead | Tab::Workers | Tab::Events => true,
            Tab::Queues | Tab::Schedules | Tab::Batches => false,
        };
        if state.tab == Tab::Overview {
            let queues = state.snapshot.as_ref().map_or(0, |snapshot| snapshot.status.queues.len());
            let queues = u16::try_from(queues.max(1)).unwrap_or(u16::MAX).saturating_add(3);
            let lines =
                if Self::has_charts(state) { 7 + queues.clamp(9, 18) } else { queues.min(free.height / 2) };
            self.charts = take_top(&mut free, lines);
        }
        if has_job && height >= TALL {
            let share = if width >= WIDE { free.height * 2 / 5 } else { free.height * 2 / 7 };
            self.log = take_bottom(&mut free, share.max(4));
        }
        if has_job && Self::is_wide(state) && state.tab != Tab::Overview {
            let mut left = free;
            left.width = free.width / 2 + free.width / 20;
            self.detail = Rect { x: left.width + 1, width: free.width - left.width - 1, ..free };
            free = left;
        }
        self.title = take_top(&mut free, 1);
        self.columns = take_top(&mut free, 1);
        self.rows = free;
    }

    /// Whether there is room beside a list.
    pub(crate) fn is_wide(state: &State) -> bool {
        state.size.width >= WIDE
    }

    /// Whether the overview has charts.
    pub(crate) fn has_charts(state: &State) -> bool {
        state.size.width >= CHARTS.0 && state.size.height >= CHARTS.1
    }

    /// The words of the tabs, and the column in which each begins.
    pub(crate) fn tab_words(self) -> Vec<(u16, String)> {
        let (is_short, has_numbers_only) = (self.tabs.width < 78, self.tabs.width < 50);
        let mut at = 1;
        let mut words = Vec::new();
        for (number, tab) in (1..).zip(Tab::ALL) {
            let word = match tab.name() {
                _ if has_numbers_only && tab != self.tab => format!("{number}"),
                name if has_numbers_only => format!("{number} {name}"),
                name if is_short => format!("{number} {}", &name[..3]),
                name => format!("{number} {name}"),
            };
            let length = u16::try_from(word.len()).unwrap_or(0);
            words.push((at, word));
            at += length + if is_short && !has_numbers_only { 1 } else { 2 };
        }
        words
    }

    /// The tab in this column.
    pub(crate) fn tab_at(self, x: u16) -> Option<usize> {
        self.tab_words().iter().rposition(|(begin, _)| *begin <= x)
    }
}

/// The room for a text over a screen of this size, within its box.
pub(crate) fn text_box(screen: Size) -> Size {
    Size::new(
        screen.width.saturating_sub(4).min(MAX_BOX_WIDTH).saturating_sub(4),
        screen.height.saturating_sub(4),
    )
}

fn take_top(free: &mut Rect, height: u16) -> Rect {
    let height = height.min(free.height);
    let taken = Rect { height, ..*free };
    free.y += height;
    free.height -= height;
    taken
}

fn take_bottom(free: &mut Rect, height: u16) -> Rect {
    let height = height.min(free.height);
    free.height -= height;
    Rect { y: free.y + free.height, height, ..*free }
}

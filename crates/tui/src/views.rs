//! Drawing. A view gets the state and a place on the screen, and changes neither the state nor anything else.

mod canvas;
mod chart;
mod dead;
mod events;
mod frame;
mod job;
mod jobs;
mod log;
mod overlay;
mod overview;
mod prompt;
mod queues;
mod schedules;
mod table;
mod times;
mod workers;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::canvas::Canvas;
use crate::layout::Layout;
use crate::state::{Focus, Mode, State};
use crate::tab::Tab;
use crate::theme::Theme;

/// The whole screen.
pub(crate) fn draw(state: &State, buffer: &mut Buffer) {
    let area = Rect::new(0, 0, state.size.width, state.size.height).intersection(*buffer.area());
    let mut canvas = Canvas::new(buffer, area, state.fixed.theme);
    if Layout::is_too_small(state) {
        let notice = if area.width < 24 { "needs 40x10" } else { "queuectl top needs 40x10" };
        canvas.text(area, 0, notice, Theme::title());
        return;
    }
    let layout = Layout::of(state);
    frame::draw(state, &layout, &mut canvas);
    match state.focus {
        Focus::List => draw_list(state, &layout, &mut canvas),
        Focus::Job => job::draw(state, layout.detail, &mut canvas),
        Focus::Log => {}
    }
    log::draw(state, layout.log, &mut canvas);
    match &state.mode {
        Mode::Normal => {}
        Mode::Prompt(prompt) => prompt::draw(state, prompt, layout.footer, &mut canvas),
        Mode::Confirm(confirm) => overlay::confirm(confirm, area, &mut canvas),
        Mode::Text(text) => overlay::text(text, area, &mut canvas),
    }
}

fn draw_list(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    match state.tab {
        Tab::Overview => overview::draw(state, layout, canvas),
        Tab::Jobs => jobs::draw(state, layout, canvas),
        Tab::Dead => dead::draw(state, layout, canvas),
        Tab::Queues => queues::draw(state, layout, canvas),
        Tab::Workers => workers::draw(state, layout, canvas),
        Tab::Schedules => schedules::draw(state, layout, canvas),
        Tab::Batches => schedules::draw_batches(state, layout, canvas),
        Tab::Events => events::draw(state, layout, canvas),
    }
    if layout.detail.width > 0 {
        for y in layout.detail.top()..layout.detail.bottom() {
            let line = Rect { x: layout.detail.x - 1, y, width: 1, height: 1 };
            let style = canvas.theme.style(crate::theme::Role::Quiet);
            canvas.text(line, 0, canvas.theme.pick("│", "|"), style);
        }
        job::draw(state, layout.detail, canvas);
    }
}

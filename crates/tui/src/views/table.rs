//! Rows in columns. Where they do not fit, the least important columns are left out; the last one gets what is left.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::canvas::{Canvas, columns, cut};
use crate::layout::Layout;
use crate::state::State;
use crate::theme::{Role, Theme};
use domain::text::hostile::printable;

/// The least width that the last column gets before others are left out.
const MIN_LAST: u16 = 16;

pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) is_right: bool,
    /// The columns with the highest numbers are left out first; 0 never is.
    pub(crate) order_of_leaving: u8,
}

impl Column {
    pub(crate) const fn left(title: &'static str, order_of_leaving: u8) -> Self {
        Self { title, is_right: false, order_of_leaving }
    }

    pub(crate) const fn right(title: &'static str, order_of_leaving: u8) -> Self {
        Self { title, is_right: true, order_of_leaving }
    }
}

pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::styled(text, Style::new())
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: printable(&text.into()).into_owned(), style }
    }
}

/// A row, and the mark in front of it.
pub(crate) struct Row {
    pub(crate) mark: &'static str,
    pub(crate) sign: (&'static str, Style),
    pub(crate) cells: Vec<Cell>,
}

impl Row {
    pub(crate) fn new(cells: Vec<Cell>) -> Self {
        Self { mark: " ", sign: ("", Style::new()), cells }
    }
}

/// The rows that fit, from the number and how many there are.
pub(crate) fn window(state: &State, layout: &Layout, length: usize) -> std::ops::Range<usize> {
    let fitting = usize::from(layout.rows.height);
    let top = state.cursor().top(fitting);
    top..(top + fitting).min(length)
}

/// Where the cursor of the screen is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pointer {
    /// In these rows, the first of which has this number.
    Rows(usize),
    /// In another table.
    Elsewhere,
}

/// Draws the visible rows.
pub(crate) fn draw(
    state: &State,
    layout: &Layout,
    canvas: &mut Canvas<'_>,
    columns: &[Column],
    pointer: Pointer,
    rows: &[Row],
) {
    let widths = widths(columns, rows, layout.rows.width.saturating_sub(4));
    let quiet = canvas.theme.style(Role::Quiet);
    let mut x = 4;
    for (column, width) in columns.iter().zip(&widths).filter(|(_, width)| **width > 0) {
        place_text(canvas, layout.columns, 0, x, *width, column.is_right, column.title, quiet);
        x += width + 2;
    }
    for (row, number) in rows.iter().zip(0_u16..) {
        let is_chosen = match pointer {
            Pointer::Rows(first) => first + usize::from(number) == state.cursor().at(),
            Pointer::Elsewhere => false,
        };
        let mark = if is_chosen { canvas.theme.pick("▸", ">") } else { " " };
        let place = layout.rows;
        canvas.text(place, number, mark, Theme::title());
        canvas.text(offset(place, 1), number, row.mark, canvas.theme.style(Role::Accent));
        canvas.text(offset(place, 2), number, row.sign.0, row.sign.1);
        let mut x = 4;
        for ((cell, column), width) in
            row.cells.iter().zip(columns).zip(&widths).filter(|(_, width)| **width > 0)
        {
            place_text(canvas, place, number, x, *width, column.is_right, &cell.text, cell.style);
            x += width + 2;
        }
        if is_chosen {
            canvas.mark_row(place, number, Theme::chosen());
        }
    }
}

fn offset(place: Rect, by: u16) -> Rect {
    super::canvas::inset(place, by)
}

#[expect(clippy::too_many_arguments, reason = "a text, its style and its place in a row of a table")]
fn place_text(
    canvas: &mut Canvas<'_>,
    place: Rect,
    row: u16,
    x: u16,
    width: u16,
    is_right: bool,
    text: &str,
    style: Style,
) {
    let mut cell = offset(place, x);
    cell.width = cell.width.min(width);
    let text = cut(text, cell.width.into());
    if is_right {
        canvas.right(cell, row, &text, style);
    } else {
        canvas.text(cell, row, &text, style);
    }
}

/// The width of each column; 0 if it is left out.
fn widths(all: &[Column], rows: &[Row], available: u16) -> Vec<u16> {
    let natural = |at: usize, column: &Column| {
        let longest = rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| columns(&cell.text)).max();
        longest.unwrap_or(0).max(columns(column.title))
    };
    let mut widths: Vec<u16> = all.iter().enumerate().map(|(at, column)| natural(at, column)).collect();
    let Some(last) = widths.len().checked_sub(1) else {
        return widths;
    };
    let needed = |widths: &[u16]| -> u16 {
        widths[..last]
            .iter()
            .filter(|width| **width > 0)
            .fold(0_u16, |sum, width| sum.saturating_add(width + 2))
    };
    let wanted_last = widths[last].min(MIN_LAST.max(available / 3));
    while needed(&widths).saturating_add(wanted_last) > available {
        let leaving = (0..last).filter(|at| widths[*at] > 0 && all[*at].order_of_leaving > 0);
        let Some(at) = leaving.max_by_key(|at| all[*at].order_of_leaving) else {
            break;
        };
        widths[at] = 0;
    }
    // A long first column must not push the last one off the screen.
    let longest = available / 2;
    for width in &mut widths[..last] {
        *width = (*width).min(longest);
    }
    widths[last] = available.saturating_sub(needed(&widths));
    widths
}

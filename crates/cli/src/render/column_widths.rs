//! Chooses the widths of a table's columns, and which columns to leave out when they do not all fit.

/// A column before it is fitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) head: usize,
    pub(crate) content: usize,
    /// Text can be truncated; a truncated number would be a different number.
    pub(crate) is_text: bool,
    /// Text that is truncated last.
    pub(crate) is_whole: bool,
}

impl Column {
    /// A column wide enough for the content of both.
    pub(crate) fn or_wider((known, more): (Self, Self)) -> Self {
        Self { content: known.content.max(more.content), ..known }
    }

    fn natural(self) -> usize {
        self.head.max(self.content)
    }
}

/// Spaces between two columns.
pub(crate) const GAP: usize = 2;
/// The first pass truncates no further than this: the last column, then the other text columns.
const PREFERRED_LAST_WIDTH: usize = 30;
const PREFERRED_TEXT_WIDTH: usize = 20;
/// Columns are left out before the last one is truncated further than this.
const FAIR_LAST_WIDTH: usize = 16;
const FAIR_WHOLE_LAST_WIDTH: usize = 24;
/// No pass truncates further than this.
const MIN_LAST_WIDTH: usize = 10;
const MIN_TEXT_WIDTH: usize = 12;
const MIN_HEADING_WIDTH: usize = 4;

/// The width of each column in a table of this width; none for a column that is left out. Columns are left out in the
/// order of `optional`. If the table still does not fit, its rows are wider than `width`.
pub(crate) fn fit(columns: &[Column], optional: &[usize], width: usize) -> Vec<Option<usize>> {
    let widths = columns.iter().map(|column| Some(column.natural())).collect();
    let mut fitter = WidthFitter { columns, widths, width };
    let is_last_whole = columns.last().is_some_and(|last| last.is_whole);
    if !is_last_whole {
        fitter.shrink_last(PREFERRED_LAST_WIDTH);
    }
    fitter.shrink_texts(PREFERRED_TEXT_WIDTH, |column| !column.is_whole);
    fitter.shrink_last(if is_last_whole { FAIR_WHOLE_LAST_WIDTH } else { FAIR_LAST_WIDTH });
    for at in optional {
        if fitter.excess() > 0 {
            fitter.widths[*at] = None;
        }
    }
    fitter.shrink_headings();
    fitter.shrink_last(MIN_LAST_WIDTH);
    fitter.shrink_texts(MIN_TEXT_WIDTH, |column| !column.is_whole);
    fitter.shrink_texts(MIN_TEXT_WIDTH, |_| true);
    fitter.widen_last();
    fitter.widths
}

/// The width of a table in which nothing is truncated or left out.
pub(crate) fn needed_width(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.natural()).sum::<usize>() + columns.len().saturating_sub(1) * GAP
}

struct WidthFitter<'a> {
    columns: &'a [Column],
    widths: Vec<Option<usize>>,
    width: usize,
}

impl WidthFitter<'_> {
    fn taken(&self) -> usize {
        let widths = self.widths.iter().flatten();
        let count = widths.clone().count();
        widths.sum::<usize>() + count.saturating_sub(1) * GAP
    }

    fn excess(&self) -> usize {
        self.taken().saturating_sub(self.width)
    }

    fn shrink_last(&mut self, least: usize) {
        let excess = self.excess();
        if let (Some(last), Some(Some(width))) = (self.columns.last(), self.widths.last_mut())
            && last.is_text
        {
            *width = width.saturating_sub(excess).max(least.min(*width));
        }
    }

    /// Shortens the widest column first, so that the others stay unchanged for as long as possible.
    fn shrink_texts(&mut self, least: usize, may_shrink: fn(&Column) -> bool) {
        let others = self.columns.len().saturating_sub(1);
        for _ in 0..self.excess() {
            let widths = self.widths[..others].iter_mut().zip(self.columns);
            let is_text = |column: &Column| column.is_text && may_shrink(column);
            let texts = widths.filter_map(|(width, column)| width.as_mut().filter(|_| is_text(column)));
            match texts.max_by_key(|width| **width) {
                Some(width) if *width > least => *width -= 1,
                Some(_) | None => return,
            }
        }
    }

    /// Shortens the headings of number columns down to the width of the numbers, the widest first.
    fn shrink_headings(&mut self) {
        for _ in 0..self.excess() {
            let widths = self.widths.iter_mut().zip(self.columns);
            let heads = widths.filter_map(|(width, column)| {
                let is_wide = |width: &&mut usize| **width > column.content.max(MIN_HEADING_WIDTH);
                width.as_mut().filter(|_| !column.is_text).filter(is_wide)
            });
            match heads.max_by_key(|width| **width) {
                Some(width) => *width -= 1,
                None => return,
            }
        }
    }

    /// Gives the last column the room that left-out columns have freed.
    fn widen_last(&mut self) {
        let room = self.width.saturating_sub(self.taken());
        if let (Some(last), Some(Some(width))) = (self.columns.last(), self.widths.last_mut()) {
            *width = last.natural().min(*width + room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: usize) -> Column {
        Column { head: 4, content, is_text: true, is_whole: false }
    }

    fn number(head: usize, content: usize) -> Column {
        Column { head, content, is_text: false, is_whole: false }
    }

    #[test]
    fn columns_shrink_and_drop_out_in_a_fixed_order() {
        let jobs = [text(68), text(10), number(4, 1), number(5, 3), text(50)];
        for (why, columns, width, expected) in [
            ("all fits", &jobs[..], 200, vec![Some(68), Some(10), Some(4), Some(5), Some(50)]),
            ("the last is truncated", &jobs, 140, vec![Some(68), Some(10), Some(4), Some(5), Some(45)]),
            ("then the widest", &jobs, 100, vec![Some(43), Some(10), Some(4), Some(5), Some(30)]),
            ("then the last again", &jobs, 74, vec![Some(20), Some(10), Some(4), Some(5), Some(27)]),
            ("and further", &jobs, 66, vec![Some(20), Some(10), Some(4), Some(5), Some(19)]),
            ("then columns are left out", &jobs, 57, vec![Some(20), Some(10), None, Some(5), Some(16)]),
            ("a left-out column makes room", &jobs, 60, vec![Some(20), Some(10), None, Some(5), Some(19)]),
            ("all optional columns are left out", &jobs, 56, vec![Some(20), Some(10), None, None, Some(22)]),
            ("then the last to its minimum", &jobs, 50, vec![Some(20), Some(10), None, None, Some(16)]),
            ("then all texts", &jobs, 38, vec![Some(14), Some(10), None, None, Some(10)]),
            ("never below the minimum", &jobs, 10, vec![Some(12), Some(10), None, None, Some(10)]),
            (
                "numbers are not truncated",
                &[text(5), number(9, 7), number(10, 1), number(9, 2)],
                20,
                vec![Some(5), Some(7), Some(4), Some(4)],
            ),
            ("no columns", &[], 10, vec![]),
        ] {
            let optional = if columns.len() == 5 { &[2, 3][..] } else { &[] };
            assert_eq!(fit(columns, optional, width), expected, "{why}");
        }
        let id = Column { is_whole: true, ..text(18) };
        let with_id = [id, text(10), number(4, 1), text(50)];
        for (width, expected) in [
            (62, vec![Some(18), Some(10), Some(4), Some(24)]),
            (44, vec![Some(18), Some(10), None, Some(12)]),
            (36, vec![Some(12), Some(10), None, Some(10)]),
        ] {
            assert_eq!(fit(&with_id, &[2], width), expected, "an id is truncated last, {width}");
        }
        assert_eq!(fit(&jobs, &[], usize::MAX)[0], Some(68), "in a pipe everything fits");
    }
}

//! How wide the columns of a table are, and which of them are left out where not all have room.

/// A column, before anybody asked how much room there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) head: usize,
    pub(crate) content: usize,
    /// Text can be cut; a number that was cut would be another.
    pub(crate) is_text: bool,
}

impl Column {
    /// Wide enough for both.
    pub(crate) fn or_wider((known, more): (Self, Self)) -> Self {
        Self { content: known.content.max(more.content), ..known }
    }

    fn natural(self) -> usize {
        self.head.max(self.content)
    }
}

/// Between two columns.
pub(crate) const GAP: usize = 2;
/// What is cut first leaves so much of the last column, then of other texts.
const GOOD_LAST: usize = 30;
const GOOD_TEXT: usize = 20;
/// No more is ever cut off than that.
const LEAST_LAST: usize = 10;
const LEAST_TEXT: usize = 12;
const LEAST_HEAD: usize = 4;

/// The width of each column in a table of this width; none for those that are left out, which are the first ones of
/// `dispensable`. Where even that is too little the rows are wider.
pub(crate) fn fit(columns: &[Column], dispensable: &[usize], width: usize) -> Vec<Option<usize>> {
    let widths = columns.iter().map(|column| Some(column.natural())).collect();
    let mut fit = Fit { columns, widths, width };
    fit.cut_last(GOOD_LAST);
    fit.cut_texts(GOOD_TEXT);
    fit.cut_last(LEAST_LAST);
    fit.cut_heads();
    for at in dispensable {
        if fit.excess() > 0 {
            fit.widths[*at] = None;
        }
    }
    fit.cut_texts(LEAST_TEXT);
    fit.widen_last();
    fit.widths
}

struct Fit<'a> {
    columns: &'a [Column],
    widths: Vec<Option<usize>>,
    width: usize,
}

impl Fit<'_> {
    fn taken(&self) -> usize {
        let widths = self.widths.iter().flatten();
        let count = widths.clone().count();
        widths.sum::<usize>() + count.saturating_sub(1) * GAP
    }

    fn excess(&self) -> usize {
        self.taken().saturating_sub(self.width)
    }

    fn cut_last(&mut self, least: usize) {
        let excess = self.excess();
        if let (Some(last), Some(Some(width))) = (self.columns.last(), self.widths.last_mut())
            && last.is_text
        {
            *width = width.saturating_sub(excess).max(least.min(*width));
        }
    }

    /// The widest first, so that all others stay as they are for as long as that is possible.
    fn cut_texts(&mut self, least: usize) {
        let others = self.columns.len().saturating_sub(1);
        for _ in 0..self.excess() {
            let widths = self.widths[..others].iter_mut().zip(self.columns);
            let texts = widths.filter_map(|(width, column)| width.as_mut().filter(|_| column.is_text));
            match texts.max_by_key(|width| **width) {
                Some(width) if *width > least => *width -= 1,
                Some(_) | None => return,
            }
        }
    }

    /// What stands over numbers need not be wider than they are. The widest first.
    fn cut_heads(&mut self) {
        for _ in 0..self.excess() {
            let widths = self.widths.iter_mut().zip(self.columns);
            let heads = widths.filter_map(|(width, column)| {
                let is_wide = |width: &&mut usize| **width > column.content.max(LEAST_HEAD);
                width.as_mut().filter(|_| !column.is_text).filter(is_wide)
            });
            match heads.max_by_key(|width| **width) {
                Some(width) => *width -= 1,
                None => return,
            }
        }
    }

    /// What was left out may have made room.
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
        Column { head: 4, content, is_text: true }
    }

    fn number(head: usize, content: usize) -> Column {
        Column { head, content, is_text: false }
    }

    #[test]
    fn what_is_too_wide_gives_way_in_order() {
        let jobs = [text(68), text(10), number(4, 1), number(5, 3), text(50)];
        for (why, columns, width, expected) in [
            ("all fits", &jobs[..], 200, vec![Some(68), Some(10), Some(4), Some(5), Some(50)]),
            ("the last is cut", &jobs, 140, vec![Some(68), Some(10), Some(4), Some(5), Some(45)]),
            ("then the widest", &jobs, 100, vec![Some(43), Some(10), Some(4), Some(5), Some(30)]),
            ("then the last again", &jobs, 60, vec![Some(20), Some(10), Some(4), Some(5), Some(13)]),
            ("then heads, and columns go", &jobs, 50, vec![Some(20), Some(10), None, Some(4), Some(10)]),
            ("what goes makes room", &jobs, 49, vec![Some(20), Some(10), None, None, Some(15)]),
            ("then all", &jobs, 38, vec![Some(14), Some(10), None, None, Some(10)]),
            ("there is a least of all", &jobs, 10, vec![Some(12), Some(10), None, None, Some(10)]),
            (
                "numbers are not cut",
                &[text(5), number(9, 7), number(10, 1), number(9, 2)],
                20,
                vec![Some(5), Some(7), Some(4), Some(4)],
            ),
            ("nothing is there", &[], 10, vec![]),
        ] {
            let dispensable = if columns.len() == 5 { &[2, 3][..] } else { &[] };
            assert_eq!(fit(columns, dispensable, width), expected, "{why}");
        }
        assert_eq!(fit(&jobs, &[], usize::MAX)[0], Some(68), "in a pipe everything fits");
    }
}

//! The cursor of a list. It stays on its row when rows come and leave.

#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    at: usize,
    length: usize,
    key: Option<String>,
}

impl Cursor {
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Whether it is on the last row.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at + 1 >= self.length
    }

    /// Moves to a row. It stays there until rows change again, whatever its key was.
    pub(crate) fn go(&mut self, at: usize) {
        self.at = at.min(self.length.saturating_sub(1));
        self.key = None;
    }

    pub(crate) fn step(&mut self, by: isize) {
        self.go(self.at.saturating_add_signed(by));
    }

    /// The rows have changed: looks for the row that the cursor was on.
    pub(crate) fn keep(&mut self, length: usize, key: impl Fn(usize) -> Option<String>) {
        self.length = length;
        let found = self.key.as_ref().filter(|_| self.at > 0).and_then(|wanted| {
            let is_it = |at: &usize| key(*at).as_ref() == Some(wanted);
            // Near its old place first: new jobs come at the top.
            Some(self.at).filter(is_it).or_else(|| (0..length).find(is_it))
        });
        self.at = found.unwrap_or(self.at).min(length.saturating_sub(1));
        self.key = key(self.at);
    }

    /// The first row that is shown, where this many rows fit.
    pub(crate) fn top(&self, fitting: usize) -> usize {
        // A cursor in the middle shows what is around it; at the ends no line is wasted.
        let most = self.length.saturating_sub(fitting);
        self.at.saturating_sub(fitting / 2).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stays_on_its_row() {
        let mut cursor = Cursor::default();
        let key = |rows: &'static [&'static str]| move |at: usize| rows.get(at).map(|row| (*row).to_owned());
        cursor.keep(3, key(&["c", "b", "a"]));
        cursor.go(1);
        cursor.keep(3, key(&["c", "b", "a"]));
        cursor.keep(4, key(&["d", "c", "b", "a"]));
        assert_eq!(cursor.at(), 2);
        cursor.keep(2, key(&["d", "c"]));
        assert_eq!(cursor.at(), 1);
        cursor.keep(0, key(&[]));
        assert_eq!(cursor.at(), 0);
    }

    #[test]
    fn the_first_row_is_where_new_rows_appear() {
        let mut cursor = Cursor::default();
        cursor.keep(1, |_| Some("a".to_owned()));
        cursor.keep(2, |at| Some(["b", "a"][at].to_owned()));
        assert_eq!(cursor.at(), 0);
    }
}

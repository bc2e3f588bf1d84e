//! A table: aligned for a terminal, or as markdown.

/// Rows of text with column headings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// For a terminal, without its title.
    pub(crate) fn text(&self) -> String {
        let aligned = |row: &Vec<String>| {
            let cells = row.iter().enumerate().map(|(at, cell)| self.pad(at, cell));
            format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        std::iter::once(&self.columns).chain(&self.rows).map(aligned).collect()
    }

    /// For a document, without its title.
    pub(crate) fn markdown(&self) -> String {
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = |at| if self.is_numeric(at) { "---:" } else { "---" }.to_owned();
        let rules: Vec<String> = (0..self.columns.len()).map(rule).collect();
        let head = format!("{}|{}|\n", row(&self.columns), rules.join("|"));
        self.rows.iter().fold(head, |text, cells| text + &row(cells))
    }

    fn pad(&self, at: usize, cell: &str) -> String {
        let widest = self.cells(at).chain(self.columns.get(at).map(String::as_str));
        let width = widest.map(|cell| cell.chars().count()).max().unwrap_or(0);
        if self.is_numeric(at) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    }

    /// Whether a column contains only numbers, which are right-aligned.
    fn is_numeric(&self, at: usize) -> bool {
        let mut filled = self.cells(at).filter(|cell| !cell.is_empty()).peekable();
        filled.peek().is_some()
            && filled.all(|cell| cell.starts_with(|c: char| c.is_ascii_digit() || "≤≥–∞".contains(c)))
    }

    fn cells(&self, at: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(move |row| row.get(at)).map(String::as_str)
    }
}

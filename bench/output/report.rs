//! The results of a run: printed line by line as they arrive, and kept for the document.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::output::document::{self, MISSED, REACHED};
use crate::output::figure::grouped;
use crate::output::table::Table;
use crate::rig::sample::Sample;

/// The unit of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Ratio,
    PerSecond,
    Milliseconds,
    Seconds,
    Megabytes,
    Bytes,
    Percent,
    Count,
}

/// The target for a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// Printed for information only.
    None,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    sections: Vec<Section>,
    missed: Vec<String>,
}

/// All results of one benchmark.
#[derive(Debug)]
struct Section {
    name: &'static str,
    blocks: Vec<Block>,
}

#[derive(Debug)]
enum Block {
    Title(String),
    /// Rows of what, median, spread, bar and verdict.
    Lines(Vec<Vec<String>>),
    Table(Table),
    Note(String),
    Plot {
        file: String,
        caption: String,
        svg: String,
    },
}

impl Report {
    /// Starts the section of this benchmark; later results belong to it.
    pub(crate) fn begin(&mut self, name: &'static str) {
        self.sections.push(Section { name, blocks: Vec::new() });
    }

    pub(crate) fn section(&mut self, title: &str) {
        println!("\n{title}");
        self.push(Block::Title(title.to_owned()));
    }

    pub(crate) fn line(&mut self, what: &str, sample: &Sample, unit: Unit, bar: Bar) {
        let value = unit.show(sample.median());
        let spread = if sample.is_single() {
            String::new()
        } else {
            format!("{} – {}", unit.show(sample.quantile(0.1)), unit.show(sample.quantile(0.9)))
        };
        let (limit, verdict) = (bar.show(unit), bar.judge(sample.median()));
        println!("  {what:<58} {value:>12}  {spread:>23}  {limit:>13}  {verdict}");
        if verdict == MISSED {
            self.missed.push(what.to_owned());
        }
        self.push_line(vec![what.to_owned(), value, spread, limit, verdict.to_owned()]);
    }

    pub(crate) fn table(&mut self, table: &Table) {
        println!("\n{}\n{}", table.title, table.text().trim_end());
        self.push(Block::Table(table.clone()));
    }

    /// A sentence instead of numbers.
    pub(crate) fn note(&mut self, text: &str) {
        println!("  {text}");
        self.push(Block::Note(text.to_owned()));
    }

    /// A plot for the document; it is not printed.
    pub(crate) fn plot(&mut self, name: &str, caption: &str, svg: String) {
        self.push(Block::Plot { file: format!("{name}.svg"), caption: caption.to_owned(), svg });
    }

    /// Prints the verdict at the end, and returns whether every bar was reached.
    pub(crate) fn conclude(&self) -> bool {
        if self.missed.is_empty() {
            println!("\nEvery bar was reached.");
        } else {
            println!("\nMissed: {}.", self.missed.join("; "));
        }
        self.missed.is_empty()
    }

    /// Writes every section into the document in this folder, and the plots into its subfolder. `names` lists all
    /// possible sections in order; `origin` says where and when the run took place.
    pub(crate) fn write(&self, folder: &Path, names: &[&str], origin: &str) -> Result<()> {
        let path = folder.join("benchmarks.md");
        let document = fs::read_to_string(&path).context("failed to read the document")?;
        let sections: Vec<_> =
            self.sections.iter().map(|section| (section.name, section.markdown(origin))).collect();
        let document = document::replace(&document, names, &sections)?;
        let plots = folder.join("plots");
        fs::create_dir_all(&plots)?;
        for block in self.sections.iter().flat_map(|section| &section.blocks) {
            if let Block::Plot { file, svg, .. } = block {
                fs::write(plots.join(file), svg)?;
            }
        }
        Ok(fs::write(&path, document)?)
    }

    fn push(&mut self, block: Block) {
        let section = self.sections.last_mut().expect("`begin` is called before any result is reported");
        section.blocks.push(block);
    }

    fn push_line(&mut self, line: Vec<String>) {
        let last = self.sections.last_mut().and_then(|section| section.blocks.last_mut());
        if let Some(Block::Lines(lines)) = last {
            lines.push(line);
        } else {
            self.push(Block::Lines(vec![line]));
        }
    }
}

impl Section {
    fn markdown(&self, origin: &str) -> String {
        let head = format!("### {}\n\n{origin}", self.name);
        let blocks = self.blocks.iter().map(|block| block.markdown().trim_end().to_owned());
        std::iter::once(head).chain(blocks).collect::<Vec<_>>().join("\n\n")
    }
}

impl Block {
    fn markdown(&self) -> String {
        match self {
            Self::Title(title) => format!("#### {title}"),
            Self::Lines(rows) => {
                let columns = ["what", "median", "10 % – 90 %", "bar", ""].map(str::to_owned).to_vec();
                Table { title: String::new(), columns, rows: rows.clone() }.markdown()
            }
            Self::Table(table) => format!("#### {}\n\n{}", table.title, table.markdown()),
            Self::Note(text) => text.clone(),
            Self::Plot { file, caption, .. } => format!("![{caption}](plots/{file})"),
        }
    }
}

impl Bar {
    fn judge(self, value: f64) -> &'static str {
        let reached = match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
            Self::None => return "",
        };
        if reached { REACHED } else { MISSED }
    }

    fn show(self, unit: Unit) -> String {
        match self {
            Self::AtMost(limit) => format!("≤ {}", unit.show(limit)),
            Self::AtLeast(limit) => format!("≥ {}", unit.show(limit)),
            Self::None => String::new(),
        }
    }
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Ratio => grouped(value, 2),
            Self::PerSecond => format!("{}/s", grouped(value, 0)),
            Self::Milliseconds => format!("{} ms", grouped(value, 2)),
            Self::Seconds => format!("{} s", grouped(value, 1)),
            Self::Megabytes => format!("{} MB", grouped(value, 1)),
            Self::Bytes => format!("{} B", grouped(value, 0)),
            Self::Percent => format!("{} %", grouped(value, 3)),
            Self::Count => grouped(value, 0),
        }
    }
}

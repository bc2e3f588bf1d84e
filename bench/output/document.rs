//! Replaces the measured part of a document. Two markers delimit that part, and each benchmark's section in it has its
//! own pair of markers, so that one section can be replaced without touching the others.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::table::Table;

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";
/// The last cell of a row that has a target.
const VERDICTS: [&str; 2] = [REACHED, MISSED];
pub(crate) const REACHED: &str = "ok";
pub(crate) const MISSED: &str = "MISSED";
/// The columns of the rows that [`summary`] reads: what, median, spread, bar, verdict.
const COLUMNS: usize = 5;

/// Returns the document with each measured section (name and text) in place of the earlier one of that name. The
/// sections follow the order of `names`; a section with any other name is dropped.
pub(crate) fn replace(document: &str, names: &[&str], measured: &[(&str, String)]) -> Result<String> {
    let (before, rest) =
        document.split_once(BEGIN).with_context(|| format!("the document has no `{BEGIN}`"))?;
    let (inside, after) = rest.split_once(END).with_context(|| format!("the document has no `{END}`"))?;
    ensure!(!after.contains(BEGIN), "the document has more than one `{BEGIN}`");
    let mut texts: BTreeMap<&str, &str> =
        names.iter().filter_map(|name| Some((*name, section(inside, name)?))).collect();
    texts.extend(measured.iter().map(|(name, text)| (*name, text.trim())));
    let kept: Vec<(&str, &str)> = names.iter().filter_map(|name| Some((*name, *texts.get(name)?))).collect();

    let mut parts = vec![format!("{before}{BEGIN}"), summary(&kept)];
    parts.extend(kept.iter().map(|(name, text)| format!("{}\n{text}\n{}", begin(name), end(name))));
    parts.push(format!("{END}{after}"));
    parts.retain(|part| !part.is_empty());
    Ok(parts.join("\n\n"))
}

/// Every row with a verdict, from all sections.
fn summary(sections: &[(&str, &str)]) -> String {
    let mut table = Table {
        title: String::new(),
        columns: ["benchmark", "what", "median", "bar", ""].map(str::to_owned).to_vec(),
        rows: Vec::new(),
    };
    for (name, text) in sections {
        let mut title = "";
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("#### ") {
                title = heading;
            }
            if let Some([what, median, _, bar, verdict]) = row_with_verdict(line) {
                let cells = [format!("{name}: {title}"), what, median, bar, verdict];
                table.rows.push(cells.to_vec());
            }
        }
    }
    if table.rows.is_empty() {
        String::new()
    } else {
        format!("### The bars\n\n{}", table.markdown().trim_end())
    }
}

fn row_with_verdict(line: &str) -> Option<[String; COLUMNS]> {
    let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let cells: Vec<String> = cells.split(" | ").map(str::to_owned).collect();
    let cells: [String; COLUMNS] = cells.try_into().ok()?;
    VERDICTS.contains(&cells[COLUMNS - 1].as_str()).then_some(cells)
}

fn section<'a>(inside: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = inside.split_once(&begin(name))?;
    let (text, _) = rest.split_once(&end(name))?;
    Some(text.trim())
}

fn begin(name: &str) -> String {
    format!("<!-- measured: begin {name} -->")
}

fn end(name: &str) -> String {
    format!("<!-- measured: end {name} -->")
}

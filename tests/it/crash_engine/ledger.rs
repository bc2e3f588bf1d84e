//! The file to which every job of these tests writes when it starts, while it runs, and when it ends.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) kind: LineKind,
    pub(crate) job: String,
    pub(crate) attempt: u64,
    /// The pid of the shell, or the name of the orphan.
    pub(crate) who: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Start,
    Tick,
    End,
}

pub(crate) fn read(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // The last line may be incomplete.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(parse).collect()
}

fn parse(line: &str) -> Line {
    let words: Vec<&str> = line.split(' ').collect();
    let [kind, job, attempt, who] = words[..] else {
        panic!("not a line of the ledger: `{line}`");
    };
    let kind = match kind {
        "START" => LineKind::Start,
        "TICK" => LineKind::Tick,
        "END" => LineKind::End,
        _ => panic!("not a line of the ledger: `{line}`"),
    };
    Line { kind, job: job.to_owned(), attempt: attempt.parse().expect("a number"), who: who.to_owned() }
}

/// The lines of attempts that overlap: started twice (I5), or still running after the next had started (I6).
pub(crate) fn overlaps(lines: &[Line]) -> Vec<&Line> {
    let (mut started, mut wrong) = (HashSet::new(), Vec::new());
    for line in lines {
        let is_late = (line.attempt + 1..=lines_max(lines)).any(|next| started.contains(&(&line.job, next)));
        let is_second = line.kind == LineKind::Start && !started.insert((&line.job, line.attempt));
        if is_late || is_second {
            wrong.push(line);
        }
    }
    wrong
}

fn lines_max(lines: &[Line]) -> u64 {
    lines.iter().map(|line| line.attempt).max().unwrap_or(0)
}

#[test]
fn an_overlap_is_detected() {
    let lines = |text: &str| text.lines().map(parse).collect::<Vec<_>>();
    assert!(
        overlaps(&lines("START a 1 7\nTICK a 1 7\nSTART b 1 8\nSTART a 2 9\nEND a 2 9\nEND b 1 8"))
            .is_empty()
    );
    assert_eq!(overlaps(&lines("START a 1 7\nSTART a 2 9\nTICK a 1 7")).len(), 1, "it outlived its attempt");
    assert_eq!(overlaps(&lines("START a 1 7\nSTART a 1 9")).len(), 1, "it started twice");
}

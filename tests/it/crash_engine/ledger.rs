//! The file to which every job of these tests writes when it starts, lives and ends.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) what: What,
    pub(crate) job: String,
    pub(crate) attempt: u64,
    /// The pid of the shell, or the name of what it left behind.
    pub(crate) who: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Start,
    Tick,
    End,
}

pub(crate) fn read(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // The last line may be in the making.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(parse).collect()
}

fn parse(line: &str) -> Line {
    let words: Vec<&str> = line.split(' ').collect();
    let [what, job, attempt, who] = words[..] else {
        panic!("no line of a ledger: `{line}`");
    };
    let what = match what {
        "START" => What::Start,
        "TICK" => What::Tick,
        "END" => What::End,
        _ => panic!("no line of a ledger: `{line}`"),
    };
    Line { what, job: job.to_owned(), attempt: attempt.parse().expect("a number"), who: who.to_owned() }
}

/// What attempts of one job did in the wrong order: started twice (I5), or lived when the next had started (I6).
pub(crate) fn overlaps(lines: &[Line]) -> Vec<&Line> {
    let (mut started, mut wrong) = (HashSet::new(), Vec::new());
    for line in lines {
        let is_late = (line.attempt + 1..=lines_max(lines)).any(|next| started.contains(&(&line.job, next)));
        let is_second = line.what == What::Start && !started.insert((&line.job, line.attempt));
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
fn an_overlap_is_seen() {
    let lines = |text: &str| text.lines().map(parse).collect::<Vec<_>>();
    assert!(
        overlaps(&lines("START a 1 7\nTICK a 1 7\nSTART b 1 8\nSTART a 2 9\nEND a 2 9\nEND b 1 8"))
            .is_empty()
    );
    assert_eq!(overlaps(&lines("START a 1 7\nSTART a 2 9\nTICK a 1 7")).len(), 1, "it outlived its attempt");
    assert_eq!(overlaps(&lines("START a 1 7\nSTART a 1 9")).len(), 1, "it started twice");
}

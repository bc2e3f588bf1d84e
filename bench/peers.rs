//! queuectl against programs that do the same kind of work: submitting a job, draining a queue, starting a job at once.
//!
//! In each round every one of them does each, one after the other. Those that are not installed are left out.

use anyhow::{Context, Result};

use crate::Bench;
use crate::figure::count;
use crate::peer::{self, Acknowledges, PEERS, Peer, SLOTS};
use crate::report::{Bar, Report, Unit};
use crate::sample::{Sample, ratio_of_medians};
use crate::start_latency::{Start, stamp_command, start_of};
use crate::table::Table;

const AHEAD: f64 = 1.0;
const NOTHING: &str = "–";
const COLUMNS: [&str; 8] = [
    "peer",
    "version",
    "submit",
    "submit, long queue",
    "drain",
    "start after submit",
    "submit and start",
    "before it acknowledges",
];

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let effort = if bench.quick { QUICK } else { FULL };
    let mut queuectl = Measured::new("queuectl", peer::queuectl());
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for (name, find) in PEERS {
        match find() {
            Some(peer) => peers.push(Measured::new(name, peer)),
            None => missing.push(name),
        }
    }
    for round in 0..effort.rounds {
        for measured in [&mut queuectl].into_iter().chain(&mut peers) {
            bench.progress(&format!("{}, round {} of {}", measured.name, round + 1, effort.rounds));
            measured
                .add(bench, &effort, round == 0)
                .with_context(|| format!("failed to measure {}", measured.name))?;
        }
    }

    report.section(&format!("queuectl against each, jobs `true`, {SLOTS} slots"));
    for peer in &peers {
        compare(&queuectl, peer, report);
    }
    report.table(&table(&queuectl, &peers, &missing)?);
    Ok(())
}

struct Effort {
    rounds: u32,
    /// The drain of a peer is divided by this.
    fewer: u32,
    /// In each round.
    submits: usize,
    starts: usize,
}

const FULL: Effort = Effort { rounds: 3, fewer: 1, submits: 20, starts: 10 };
const QUICK: Effort = Effort { rounds: 1, fewer: 2, submits: 10, starts: 5 };

/// One of those that are compared, with a value or a sample for each round.
struct Measured {
    name: &'static str,
    peer: Box<dyn Peer>,
    drain_rates: Vec<f64>,
    submit_seconds: Vec<Sample>,
    /// From the end of the submit, and from its beginning. The first is zero where a job starts while the submit is ending.
    start_milliseconds: Vec<Sample>,
    whole_milliseconds: Vec<Sample>,
    /// In one round only, because filling takes long.
    submit_seconds_when_long: Option<Sample>,
}

impl Measured {
    fn new(name: &'static str, peer: Box<dyn Peer>) -> Self {
        Self {
            name,
            peer,
            drain_rates: Vec::new(),
            submit_seconds: Vec::new(),
            start_milliseconds: Vec::new(),
            whole_milliseconds: Vec::new(),
            submit_seconds_when_long: None,
        }
    }

    /// One more round.
    fn add(&mut self, bench: &Bench, effort: &Effort, also_when_long: bool) -> Result<()> {
        let jobs = self.peer.facts().drained / effort.fewer;
        let seconds = self.peer.drain(bench.workspace.home("peer")?, jobs).context("failed to drain")?;
        self.drain_rates.push(f64::from(jobs) / seconds);
        self.add_submits(bench, effort, also_when_long).context("failed to submit")?;
        self.add_starts(bench, effort).context("failed to start")
    }

    fn add_submits(&mut self, bench: &Bench, effort: &Effort, also_when_long: bool) -> Result<()> {
        let Some(queue) = self.peer.held(bench.workspace.home("peer")?)? else {
            return Ok(());
        };
        let submit = queue.submit(&["true"])?;
        self.submit_seconds.push(submit.seconds(effort.submits)?);
        if also_when_long {
            // What is measured has to fit in too.
            let measured = u32::try_from(effort.submits)?;
            queue.fill(self.peer.facts().queued.saturating_sub(2 * measured))?;
            self.submit_seconds_when_long = Some(submit.seconds(effort.submits)?);
        }
        Ok(())
    }

    fn add_starts(&mut self, bench: &Bench, effort: &Effort) -> Result<()> {
        let Some(queue) = self.peer.idle(bench.workspace.home("peer")?)? else {
            return Ok(());
        };
        let stamp = queue.home().path().join("stamp");
        let command = stamp_command(&stamp)?;
        let submit = queue.submit(&command.each_ref().map(String::as_str))?;
        start_of(&submit, &stamp)?;
        let starts: Vec<Start> =
            (0..effort.starts).map(|_| start_of(&submit, &stamp)).collect::<Result<_>>()?;
        self.start_milliseconds.push(starts.iter().map(Start::after_return).collect());
        self.whole_milliseconds.push(starts.iter().map(Start::after_call).collect());
        Ok(())
    }

    fn row(&self) -> Result<Vec<String>> {
        let drain = self.drain_rates.iter().copied().collect::<Sample>().median();
        let long = self.submit_seconds_when_long.as_ref().map(Sample::median);
        Ok(vec![
            self.name.to_owned(),
            self.peer.version()?,
            milliseconds(median_of(&self.submit_seconds).map(|seconds| seconds * 1000.0)),
            milliseconds(long.map(|seconds| seconds * 1000.0)),
            Unit::PerSecond.show(drain),
            milliseconds(median_of(&self.start_milliseconds)),
            milliseconds(median_of(&self.whole_milliseconds)),
            self.peer.facts().acknowledges.text().to_owned(),
        ])
    }
}

fn milliseconds(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| Unit::Milliseconds.show(value))
}

/// The median of the rounds' medians.
fn median_of(rounds: &[Sample]) -> Option<f64> {
    (!rounds.is_empty()).then(|| rounds.iter().map(Sample::median).collect::<Sample>().median())
}

fn compare(queuectl: &Measured, peer: &Measured, report: &mut Report) {
    let name = peer.name;
    let bar = bar_against(&peer.peer.facts().acknowledges);
    let drains: Sample =
        queuectl.drain_rates.iter().zip(&peer.drain_rates).map(|(ours, theirs)| ours / theirs).collect();
    report.line(&format!("{name}: rate of a drain"), &drains, Unit::Ratio, Bar::AtLeast(AHEAD));
    if !peer.submit_seconds.is_empty() {
        let submits = ratio_of_medians(queuectl.submit_seconds.iter().zip(&peer.submit_seconds));
        report.line(&format!("{name}: time of a submit"), &submits, Unit::Ratio, bar);
    }
    if !peer.start_milliseconds.is_empty() {
        let starts = ratio_of_medians(queuectl.start_milliseconds.iter().zip(&peer.start_milliseconds));
        // Not judged: a job may start while its submit is still ending, and the ratio is then without end.
        report.line(&format!("{name}: start after submit"), &starts, Unit::Ratio, Bar::None);
        let whole = ratio_of_medians(queuectl.whole_milliseconds.iter().zip(&peer.whole_milliseconds));
        report.line(&format!("{name}: submit and start together"), &whole, Unit::Ratio, bar);
    }
}

/// For what has a submit in it. A sync costs what it costs: those who leave it out are only looked at.
fn bar_against(acknowledges: &Acknowledges) -> Bar {
    if acknowledges.is_synced() { Bar::AtMost(AHEAD) } else { Bar::None }
}

fn table(queuectl: &Measured, peers: &[Measured], missing: &[&str]) -> Result<Table> {
    let mut rows = vec![queuectl.row()?];
    for peer in peers {
        rows.push(peer.row()?);
    }
    rows.extend(missing.iter().map(|name| row_of_missing(name)));
    let title =
        format!("Each by itself; a long queue has about {} jobs, or as many as fit", count(peer::LONG));
    Ok(Table { title, columns: COLUMNS.map(str::to_owned).to_vec(), rows })
}

fn row_of_missing(name: &str) -> Vec<String> {
    let mut row = vec![NOTHING.to_owned(); COLUMNS.len()];
    name.clone_into(&mut row[0]);
    "not installed; bench/peers installs it".clone_into(&mut row[COLUMNS.len() - 1]);
    row
}

//! queuectl compared with programs that do the same kind of work: submitting a job, draining a queue, starting a job
//! immediately.
//!
//! In each round every program does all three, one program after the other. Programs that are not installed are left
//! out.

use anyhow::{Context, Result};

use crate::Bench;
use crate::benchmarks::start_latency::{Start, stamp_command, start_of};
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::output::table::Table;
use crate::rig::peer::{self, PEERS, Peer, SLOTS};
use crate::rig::sample::{Sample, ratio_of_medians};

const PARITY: f64 = 1.0;
const NO_VALUE: &str = "–";
const COLUMNS: [&str; 8] = [
    "peer",
    "version",
    "submit",
    "submit, long queue",
    "drain",
    "start after submit",
    "submit and start",
    "done before submit returns",
];

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let effort = if bench.quick { QUICK } else { FULL };
    let mut queuectl = PeerResults::new("queuectl", peer::queuectl());
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for (name, find) in PEERS {
        match find() {
            Some(peer) => peers.push(PeerResults::new(name, peer)),
            None => missing.push(name),
        }
    }
    for round in 0..effort.rounds {
        for results in [&mut queuectl].into_iter().chain(&mut peers) {
            bench.progress(&format!("{}, round {} of {}", results.name, round + 1, effort.rounds));
            results
                .add(bench, &effort, round == 0)
                .with_context(|| format!("failed to measure {}", results.name))?;
        }
    }

    report.section(&format!("queuectl relative to each peer, jobs `true`, {SLOTS} slots"));
    for peer in &peers {
        compare(&queuectl, peer, report);
    }
    report.table(&table(&queuectl, &peers, &missing)?);
    Ok(())
}

struct Effort {
    rounds: u32,
    /// Divides the number of jobs of a drain.
    drain_divisor: u32,
    /// Per round.
    submits: usize,
    starts: usize,
}

const FULL: Effort = Effort { rounds: 3, drain_divisor: 1, submits: 20, starts: 10 };
const QUICK: Effort = Effort { rounds: 1, drain_divisor: 2, submits: 10, starts: 5 };

/// A compared program, with a value or a sample for each round.
struct PeerResults {
    name: &'static str,
    peer: Box<dyn Peer>,
    drain_rates: Vec<f64>,
    submit_seconds: Vec<Sample>,
    /// From the end of the submit, and from its beginning. The first is zero if the job starts while the submit is
    /// still ending.
    start_milliseconds: Vec<Sample>,
    whole_milliseconds: Vec<Sample>,
    /// In one round only, because filling the queue takes long.
    submit_seconds_when_long: Option<Sample>,
}

impl PeerResults {
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

    /// Measures one more round.
    fn add(&mut self, bench: &Bench, effort: &Effort, also_when_long: bool) -> Result<()> {
        let jobs = self.peer.facts().drained / effort.drain_divisor;
        let seconds = self.peer.drain(bench.workspace.home("peer")?, jobs).context("failed to drain")?;
        self.drain_rates.push(f64::from(jobs) / seconds);
        self.add_submits(bench, effort, also_when_long).context("failed to submit")?;
        self.add_starts(bench, effort).context("failed to start")
    }

    fn add_submits(&mut self, bench: &Bench, effort: &Effort, also_when_long: bool) -> Result<()> {
        let Some(queue) = self.peer.stalled(bench.workspace.home("peer")?)? else {
            return Ok(());
        };
        let submit = queue.submit(&["true"])?;
        self.submit_seconds.push(submit.seconds(effort.submits)?);
        if also_when_long {
            // Leaves room for the measured submits.
            let submits = u32::try_from(effort.submits)?;
            queue.fill(self.peer.facts().queued.saturating_sub(2 * submits))?;
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
            self.peer.facts().acknowledgement.to_owned(),
        ])
    }
}

fn milliseconds(value: Option<f64>) -> String {
    value.map_or_else(|| NO_VALUE.to_owned(), |value| Unit::Milliseconds.show(value))
}

/// The median of the rounds' medians.
fn median_of(rounds: &[Sample]) -> Option<f64> {
    (!rounds.is_empty()).then(|| rounds.iter().map(Sample::median).collect::<Sample>().median())
}

fn compare(queuectl: &PeerResults, peer: &PeerResults, report: &mut Report) {
    let name = peer.name;
    // For ratios that include a submit. A peer that does not sync before it returns is compared for information only.
    let bar = if peer.peer.facts().is_synced { Bar::AtMost(PARITY) } else { Bar::None };
    let drains: Sample =
        queuectl.drain_rates.iter().zip(&peer.drain_rates).map(|(ours, theirs)| ours / theirs).collect();
    report.line(&format!("{name}: drain rate"), &drains, Unit::Ratio, Bar::AtLeast(PARITY));
    if !peer.submit_seconds.is_empty() {
        let submits = ratio_of_medians(queuectl.submit_seconds.iter().zip(&peer.submit_seconds));
        report.line(&format!("{name}: submit time"), &submits, Unit::Ratio, bar);
    }
    if !peer.start_milliseconds.is_empty() {
        let starts = ratio_of_medians(queuectl.start_milliseconds.iter().zip(&peer.start_milliseconds));
        // No bar: a job may start while its submit is still ending, and the ratio is then infinite.
        report.line(&format!("{name}: start after submit"), &starts, Unit::Ratio, Bar::None);
        let whole = ratio_of_medians(queuectl.whole_milliseconds.iter().zip(&peer.whole_milliseconds));
        report.line(&format!("{name}: submit and start together"), &whole, Unit::Ratio, bar);
    }
}

fn table(queuectl: &PeerResults, peers: &[PeerResults], missing: &[&str]) -> Result<Table> {
    let mut rows = vec![queuectl.row()?];
    for peer in peers {
        rows.push(peer.row()?);
    }
    rows.extend(missing.iter().map(|name| row_of_missing(name)));
    let title = format!(
        "Absolute values; a long queue has about {} jobs, or as many as the peer accepts",
        count(peer::LONG_QUEUE_JOBS)
    );
    Ok(Table { title, columns: COLUMNS.map(str::to_owned).to_vec(), rows })
}

fn row_of_missing(name: &str) -> Vec<String> {
    let mut row = vec![NO_VALUE.to_owned(); COLUMNS.len()];
    name.clone_into(&mut row[0]);
    "not installed: run bench/peers".clone_into(&mut row[COLUMNS.len() - 1]);
    row
}

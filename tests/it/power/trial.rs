//! Many cuts through one recording.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::checker::{Expectations, Faults, check, read_home};
use super::cut::Cut;
use super::promise::{Promise, Promises};
use super::record::Record;
use super::recording::{HOME, Recording};

/// After every nth cut a worker must finish the remaining jobs.
const DRAIN_EVERY: usize = 25;
/// How many broken promises of one cut are reported.
const MAX_PROMISES_REPORTED: usize = 5;

/// How a recording is cut.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub cuts: usize,
    /// The first position of a cut.
    pub from: usize,
}

impl Plan {
    /// `QUEUECTL_POWER_SEED` and `QUEUECTL_POWER_CUTS` override the arguments.
    pub fn new(seed: u64, cuts: usize) -> Self {
        Self { seed: variable("SEED").unwrap_or(seed), cuts: variable("CUTS").unwrap_or(cuts), from: 0 }
    }
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(format!("QUEUECTL_POWER_{name}")).ok()?;
    Some(value.parse().ok().unwrap_or_else(|| panic!("QUEUECTL_POWER_{name} is not a number: {value}")))
}

/// A harmful cut and its faults.
#[derive(Debug)]
pub struct CutResult {
    pub cut: Cut,
    pub faults: Faults,
}

/// Cuts the recording as planned and returns the harmful cuts.
pub fn cut(recording: &Recording, plan: Plan) -> Vec<CutResult> {
    let records = recording.records();
    let promises = Promises::of(&records, recording.old_jobs);
    let requested = requested(recording, &records);
    let mut disk = recording.start.clone();
    let mut found = Vec::new();
    for (number, cut) in cuts(&promises, records.len(), plan).into_iter().enumerate() {
        disk.advance(&records, cut.at);
        let folder = folder_in_memory();
        disk.restore(&records, &cut, folder.path());
        let promises: Vec<&Promise> = promises.before(cut.at).collect();
        let drain = number % DRAIN_EVERY == DRAIN_EVERY - 1;
        let faults = check(
            &folder.path().join(HOME),
            &Expectations { promises: &promises, requested: &requested, drain },
        );
        if !faults.is_empty() {
            found.push(CutResult { cut, faults });
        }
    }
    found
}

/// A folder for a restored home, in memory if possible: it need not survive a second power cut, and syncs in memory cost
/// nothing.
fn folder_in_memory() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// Half of the cuts are anywhere, a quarter right after a promise, a quarter during the first use of the home.
fn cuts(promises: &Promises, end: usize, plan: Plan) -> Vec<Cut> {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let made = promises.positions();
    let first = *made.first().expect("the record contains a promise");
    let mut cuts: Vec<Cut> = (0..plan.cuts)
        .map(|number| {
            let at = match number % 4 {
                0 => made[random.usize(..made.len())],
                1 => random.usize(..=first),
                _ => random.usize(..=end),
            };
            Cut::random(at.max(plan.from), random.u64(..))
        })
        .collect();
    cuts.sort_by_key(|cut| cut.at);
    cuts
}

/// The jobs at the end of the recording; none was ever removed.
fn requested(recording: &Recording, records: &[Record]) -> BTreeSet<String> {
    let folder = folder_in_memory();
    restore_all(recording, records, folder.path());
    let found = read_home(&folder.path().join(HOME)).expect("the complete home can be read");
    found.ids().into_iter().map(str::to_owned).collect()
}

/// Writes the disk as of the end of the recording.
pub fn restore_all(recording: &Recording, records: &[Record], to: &Path) {
    let mut disk = recording.start.clone();
    disk.advance(records, records.len());
    disk.restore(records, &Cut::harmless(records.len()), to);
}

/// Fails the test if any cut was harmful, and prints how to repeat it.
#[track_caller]
pub fn assert_harmless(mut recording: Recording, plan: Plan, test: &str) {
    let found = cut(&recording, plan);
    if found.is_empty() {
        return;
    }
    recording.keep();
    let mut report = format!("{} of {} cuts were harmful\n", found.len(), plan.cuts);
    for found in &found {
        let (broken, defects) = (&found.faults.broken, &found.faults.defects);
        let _ = writeln!(report, "- {}", found.cut);
        for promise in broken.iter().take(MAX_PROMISES_REPORTED) {
            let _ = writeln!(report, "  broken: {promise:?}");
        }
        let _ = writeln!(report, "  {} promises broken; {defects:?}", broken.len());
    }
    let (log, Plan { seed, cuts, .. }) = (recording.log(), plan);
    // The record of an existing home is useless without that home.
    let record = format!("QUEUECTL_POWER_RECORD={} ", log.display());
    let record = if recording.old_jobs.is_empty() { record } else { String::new() };
    panic!(
        "{report}\nto repeat:\n  {record}QUEUECTL_POWER_SEED={seed} QUEUECTL_POWER_CUTS={cuts} \
         cargo test --test it -- {test}"
    );
}

/// Asserts that two folders have the same contents, except files that do not matter after a power cut.
pub fn assert_same(real: &Path, restored: &Path) {
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).expect("a folder is listed").map(|entry| entry.expect("an entry"));
        let names = entries.map(|entry| entry.file_name().into_string().expect("names are UTF-8"));
        names.filter(|name| !name.ends_with("-shm")).collect()
    };
    assert_eq!(names(real), names(restored), "{}", real.display());
    for name in names(real) {
        let (real, restored) = (real.join(&name), restored.join(&name));
        let meta = real.metadata().expect("metadata");
        if meta.is_dir() {
            assert_same(&real, &restored);
        } else if meta.is_file() {
            let same = fs::read(&real).expect("a file") == fs::read(&restored).expect("a file");
            assert!(same, "{} was changed by an unrecorded write", real.display());
        }
    }
}

//! Many cuts through one recording.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::checker::{Expected, Faults, check, look};
use super::cut::Cut;
use super::promise::{Promise, Promises};
use super::record::Record;
use super::recording::{HOME, Recording};

/// Every so many cuts a worker has to finish what is left.
const DRAIN_EVERY: usize = 25;
/// How many broken promises are told of one cut.
const MAX_TOLD: usize = 5;

/// How a recording is cut.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub cuts: usize,
    /// Cuts come from here on.
    pub from: usize,
}

impl Plan {
    /// `QUEUECTL_POWER_SEED` and `QUEUECTL_POWER_CUTS` say otherwise.
    pub fn new(seed: u64, cuts: usize) -> Self {
        Self { seed: variable("SEED").unwrap_or(seed), cuts: variable("CUTS").unwrap_or(cuts), from: 0 }
    }
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(format!("QUEUECTL_POWER_{name}")).ok()?;
    Some(value.parse().ok().unwrap_or_else(|| panic!("QUEUECTL_POWER_{name} is no number: {value}")))
}

/// What one cut did.
#[derive(Debug)]
pub struct Found {
    pub cut: Cut,
    pub faults: Faults,
}

/// Cuts the recording as planned, and tells of each cut that did harm.
pub fn cut(recording: &Recording, plan: Plan) -> Vec<Found> {
    let records = recording.records();
    let promises = Promises::of(&records, recording.old_jobs);
    let asked = asked(recording, &records);
    let mut disk = recording.start.clone();
    let mut found = Vec::new();
    for (number, cut) in cuts(&promises, records.len(), plan).into_iter().enumerate() {
        disk.advance(&records, cut.at);
        let folder = folder_in_memory();
        disk.restore(&records, &cut, folder.path());
        let promises: Vec<&Promise> = promises.before(cut.at).collect();
        let drain = number % DRAIN_EVERY == DRAIN_EVERY - 1;
        let faults =
            check(&folder.path().join(HOME), &Expected { promises: &promises, asked: &asked, drain });
        if !faults.is_empty() {
            found.push(Found { cut, faults });
        }
    }
    found
}

/// A folder for a home that was restored. Nobody cuts the power a second time, so where there is a disk in memory,
/// syncing it costs nothing.
fn folder_in_memory() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// Half of the cuts anywhere, a quarter right after something was promised, a quarter in the first use of the home.
fn cuts(promises: &Promises, end: usize, plan: Plan) -> Vec<Cut> {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let made = promises.positions();
    let first = *made.first().expect("something was promised");
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

/// The jobs that were there in the end: none was ever removed.
fn asked(recording: &Recording, records: &[Record]) -> BTreeSet<String> {
    let folder = folder_in_memory();
    restore_all(recording, records, folder.path());
    let found = look(&folder.path().join(HOME)).expect("what was written whole can be read");
    found.ids().into_iter().map(str::to_owned).collect()
}

/// Writes the disk as it was in the end.
pub fn restore_all(recording: &Recording, records: &[Record], to: &Path) {
    let mut disk = recording.start.clone();
    disk.advance(records, records.len());
    disk.restore(records, &Cut::harmless(records.len()), to);
}

/// Fails the test if any cut did harm, and says how to see it again.
#[track_caller]
pub fn assert_harmless(mut recording: Recording, plan: Plan, test: &str) {
    let found = cut(&recording, plan);
    if found.is_empty() {
        return;
    }
    recording.keep();
    let mut report = format!("{} of {} cuts did harm\n", found.len(), plan.cuts);
    for found in &found {
        let (broken, unsound) = (&found.faults.broken, &found.faults.unsound);
        let _ = writeln!(report, "- {}", found.cut);
        for promise in broken.iter().take(MAX_TOLD) {
            let _ = writeln!(report, "  broken: {promise:?}");
        }
        let _ = writeln!(report, "  {} promises broken; {unsound:?}", broken.len());
    }
    let (log, Plan { seed, cuts, .. }) = (recording.log(), plan);
    // A record of what was done to a home that was there before means nothing without that home.
    let record = format!("QUEUECTL_POWER_RECORD={} ", log.display());
    let record = if recording.old_jobs.is_empty() { record } else { String::new() };
    panic!(
        "{report}\nto see it again:\n  {record}QUEUECTL_POWER_SEED={seed} QUEUECTL_POWER_CUTS={cuts} \
         cargo test --test it -- {test}"
    );
}

/// Whether two folders hold the same, but for what does not outlive a power cut.
pub fn assert_same(real: &Path, restored: &Path) {
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).expect("a folder is listed").map(|entry| entry.expect("an entry"));
        let names = entries.map(|entry| entry.file_name().into_string().expect("names here are text"));
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
            assert!(same, "{} was written to in a way that is not recorded", real.display());
        }
    }
}

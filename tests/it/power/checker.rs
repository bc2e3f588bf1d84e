//! Checks a home after a power cut against the promises made before it.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

use domain::job::Job;
use domain::job::life::StateName;
use domain::job::spec::JobSpec;
use domain::values::name::QueueName;
use ops::home::location::{DATABASE, Location, StoreAddress};
use ops::home::open::open;
use ops::jobs::enqueue::{Caller, Enqueuer};
use rusqlite::Connection;
use store::{JobFilter, Page, Store, StoreError};

use super::promise::{Promise, QueueContents};
use crate::cli::harness::PROGRAM;
use crate::cli::harness::background::end_of;

/// The job that shows that the queue still accepts jobs.
const AFTERWARDS: &str = "after-the-cut";

/// The faults found in a home.
#[derive(Debug, Default)]
pub struct Faults {
    /// The broken promises.
    pub broken: Vec<Promise>,
    /// Worse faults: the home cannot be opened, is corrupt, refuses jobs, or contains jobs that were not requested.
    pub defects: Vec<String>,
}

/// The required contents of a home.
#[derive(Clone, Copy, Debug)]
pub struct Expectations<'a> {
    pub promises: &'a [&'a Promise],
    /// The ids of all jobs that were ever requested.
    pub requested: &'a BTreeSet<String>,
    /// Whether a worker must finish the remaining jobs.
    pub drain: bool,
}

/// Reads the home, uses it, and checks its integrity.
pub fn check(home: &Path, expected: &Expectations<'_>) -> Faults {
    let mut faults = Faults::default();
    match read_home(home) {
        Ok(found) => faults.compare(&found, expected),
        Err(error) => faults.defects.push(format!("the home cannot be read: {}", chain(error.as_ref()))),
    }
    faults.recount(home);
    if let Err(error) = enqueue(home) {
        faults.defects.push(format!("the queue refuses a job: {}", chain(error.as_ref())));
    }
    if expected.drain && faults.defects.is_empty() {
        faults.defects.extend(drain(home));
        faults.recount(home);
    }
    match integrity(home) {
        Ok(answer) if answer == "ok" => {}
        Ok(answer) => faults.defects.push(format!("the database is corrupt: {answer}")),
        Err(error) => faults.defects.push(format!("the database cannot be checked: {error}")),
    }
    faults
}

impl Faults {
    pub fn is_empty(&self) -> bool {
        self.broken.is_empty() && self.defects.is_empty()
    }

    fn compare(&mut self, found: &QueueContents, expected: &Expectations<'_>) {
        let broken = expected.promises.iter().filter(|promise| !found.keeps(promise));
        self.broken.extend(broken.map(|promise| (*promise).clone()));
        let strange = found.ids().into_iter().filter(|id| !expected.requested.contains(*id));
        self.defects.extend(strange.map(|id| format!("job `{id}` was not requested")));
    }

    /// The counters are stored in addition to the jobs and must agree with them.
    fn recount(&mut self, home: &Path) {
        match counts(home) {
            Ok((kept, counted)) if kept == counted => {}
            Ok((kept, counted)) => {
                self.defects.push(format!("the counters are {kept:?}, but a recount gives {counted:?}"));
            }
            Err(error) => self.defects.push(format!("the jobs cannot be counted: {}", chain(error.as_ref()))),
        }
    }
}

/// How many jobs of each queue are in each state.
type Counts = BTreeMap<(QueueName, StateName), u64>;

/// The stored counters and a recount.
fn counts(home: &Path) -> Result<(Counts, Counts), Box<dyn Error>> {
    let store = store(home)?;
    let mut kept = Counts::new();
    for queue in store.queues()? {
        kept.extend(queue.counts.iter().map(|(state, count)| ((queue.name.clone(), *state), *count)));
    }
    let mut counted = Counts::new();
    for job in all_jobs(store.as_ref())? {
        *counted.entry((job.queue, job.life.state.name())).or_default() += 1;
    }
    Ok((kept, counted))
}

fn all_jobs(store: &dyn Store) -> Result<Vec<Job>, StoreError> {
    store.list(&JobFilter::default(), &Page { limit: usize::MAX, after: None })
}

/// Opens the store of a home as the program does.
fn store(home: &Path) -> Result<Box<dyn Store>, Box<dyn Error>> {
    let location = Location {
        home: home.to_owned(),
        store: StoreAddress::Sqlite(home.join(DATABASE)),
        skipped_home: None,
        is_named: true,
    };
    Ok(open(&location)?)
}

/// Reads the contents of a home.
pub fn read_home(home: &Path) -> Result<QueueContents, Box<dyn Error>> {
    let store = store(home)?;
    Ok(QueueContents::new(&all_jobs(store.as_ref())?, &store.settings()?, store.now()?))
}

fn enqueue(home: &Path) -> Result<(), Box<dyn Error>> {
    let store = store(home)?;
    let caller = Caller { cwd: Some("/".to_owned()), ..Caller::default() };
    let request: JobSpec = serde_json::from_str(&format!(r#"{{"id":"{AFTERWARDS}","command":"true"}}"#))?;
    Enqueuer::new(store.as_ref(), caller)?.enqueue(vec![request])?;
    let stored = store.find(&AFTERWARDS.parse()?)?;
    Ok(stored.map(drop).ok_or("the enqueued job does not exist")?)
}

/// Runs a worker until the queue is empty, as after a reboot.
fn drain(home: &Path) -> Vec<String> {
    let reboot = Connection::open(home.join(DATABASE))
        .and_then(|database| database.execute("update workers set boot_id = 'before the cut'", []));
    if let Err(error) = reboot {
        return vec![format!("the workers cannot be updated: {error}")];
    }
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(home).args(["worker", "run", "--quiet", "--until-empty", "--concurrency", "2"]);
    command.current_dir("/").env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(std::env::var_os("QUEUECTL_MIGRATIONS").map(|files| ("QUEUECTL_MIGRATIONS", files)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = end_of(command.spawn().expect("a worker starts"));
    if !status.success() {
        return vec![format!("a worker cannot empty the queue: {status}")];
    }
    match read_home(home) {
        Ok(found) => found.unfinished().into_iter().map(|id| format!("job `{id}` was never run")).collect(),
        Err(error) => vec![format!("the home cannot be read after draining: {}", chain(error.as_ref()))],
    }
}

fn integrity(home: &Path) -> rusqlite::Result<String> {
    let database = Connection::open(home.join(DATABASE))?;
    database.query_row("pragma integrity_check", [], |row| row.get(0))
}

/// An error with its causes.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

//! Holds a home that was found after a power cut against what was promised before it.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

use domain::job::Job;
use domain::job::life::StateName;
use domain::job::request::JobRequest;
use domain::values::name::QueueName;
use ops::home::location::{DATABASE, Location, StoreAddress, open};
use ops::jobs::enqueue::{Caller, Enqueuer};
use rusqlite::Connection;
use store::{JobFilter, Page, Store, StoreError};

use super::promise::{Found, Promise};
use crate::cli::background::end_of;
use crate::cli::harness::PROGRAM;

/// The job that shows that the queue still takes jobs.
const AFTERWARDS: &str = "after-the-cut";

/// What is wrong with a home.
#[derive(Debug, Default)]
pub struct Faults {
    /// Promises that were broken.
    pub broken: Vec<Promise>,
    /// Everything worse: it cannot be opened, is corrupt, takes no jobs, holds jobs that nobody asked for.
    pub unsound: Vec<String>,
}

/// What a home is held against.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub promises: &'a [&'a Promise],
    /// The ids of all jobs that anybody ever asked for.
    pub asked: &'a BTreeSet<String>,
    /// Whether a worker has to finish what is left.
    pub drain: bool,
}

/// Looks at the home, uses it, and looks into it.
pub fn check(home: &Path, expected: &Expected<'_>) -> Faults {
    let mut faults = Faults::default();
    match look(home) {
        Ok(found) => faults.compare(&found, expected),
        Err(error) => faults.unsound.push(format!("it cannot be read: {}", chain(error.as_ref()))),
    }
    faults.recount(home);
    if let Err(error) = enqueue(home) {
        faults.unsound.push(format!("it takes no job: {}", chain(error.as_ref())));
    }
    if expected.drain && faults.unsound.is_empty() {
        faults.unsound.extend(drain(home));
        faults.recount(home);
    }
    match integrity(home) {
        Ok(answer) if answer == "ok" => {}
        Ok(answer) => faults.unsound.push(format!("it is corrupt: {answer}")),
        Err(error) => faults.unsound.push(format!("it cannot be checked: {error}")),
    }
    faults
}

impl Faults {
    pub fn is_empty(&self) -> bool {
        self.broken.is_empty() && self.unsound.is_empty()
    }

    fn compare(&mut self, found: &Found, expected: &Expected<'_>) {
        let broken = expected.promises.iter().filter(|promise| !found.keeps(promise));
        self.broken.extend(broken.map(|promise| (*promise).clone()));
        let strange = found.ids().into_iter().filter(|id| !expected.asked.contains(*id));
        self.unsound.extend(strange.map(|id| format!("nobody asked for job `{id}`")));
    }

    /// The counters are kept beside the jobs, and must not part from them.
    fn recount(&mut self, home: &Path) {
        match counts(home) {
            Ok((kept, counted)) if kept == counted => {}
            Ok((kept, counted)) => self.unsound.push(format!("it counts {kept:?}, but holds {counted:?}")),
            Err(error) => self.unsound.push(format!("it cannot be counted: {}", chain(error.as_ref()))),
        }
    }
}

/// How many jobs of each queue are in each state.
type Counts = BTreeMap<(QueueName, StateName), u64>;

/// What the counters say, and what is there.
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

/// The store of a home, by the way that the program takes.
fn store(home: &Path) -> Result<Box<dyn Store>, Box<dyn Error>> {
    let location = Location {
        home: home.to_owned(),
        store: StoreAddress::Sqlite(home.join(DATABASE)),
        passed_over: None,
    };
    Ok(open(&location)?)
}

/// What is in a home.
pub fn look(home: &Path) -> Result<Found, Box<dyn Error>> {
    let store = store(home)?;
    Ok(Found::new(&all_jobs(store.as_ref())?, &store.settings()?, store.now()?))
}

fn enqueue(home: &Path) -> Result<(), Box<dyn Error>> {
    let store = store(home)?;
    let caller = Caller { cwd: Some("/".to_owned()), environment: None, if_absent: false, batch: None };
    let request: JobRequest = serde_json::from_str(&format!(r#"{{"id":"{AFTERWARDS}","command":"true"}}"#))?;
    Enqueuer::new(store.as_ref(), caller)?.enqueue(vec![request])?;
    let stored = store.find(&AFTERWARDS.parse()?)?;
    Ok(stored.map(drop).ok_or("what was enqueued is not there")?)
}

/// Lets a worker finish everything, on a machine that was started anew.
fn drain(home: &Path) -> Vec<String> {
    let reboot = Connection::open(home.join(DATABASE))
        .and_then(|database| database.execute("update workers set boot_id = 'before the cut'", []));
    if let Err(error) = reboot {
        return vec![format!("its workers cannot be changed: {error}")];
    }
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(home).args(["worker", "run", "--quiet", "--until-empty", "--concurrency", "2"]);
    command.current_dir("/").env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = end_of(command.spawn().expect("a worker starts"));
    if !status.success() {
        return vec![format!("a worker cannot empty it: {status}")];
    }
    match look(home) {
        Ok(found) => found.unfinished().into_iter().map(|id| format!("job `{id}` was never run")).collect(),
        Err(error) => vec![format!("it cannot be read afterwards: {}", chain(error.as_ref()))],
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

//! `doctor`: diagnosing a queue and the machine that it is on.
//!
//! Every check produces a finding, even if it could not be completed, because `doctor` must be useful on a broken home.
//! A diagnosis creates, migrates and changes nothing. Each group of checks has its own file.

mod account;
mod database;
mod disk;
mod gate;
mod home;
mod job_limits;
mod limits;
mod machine;
mod queue;
mod recount;
#[cfg(feature = "postgres")]
mod server;
mod workers;

pub use recount::repair;

use std::path::Path;

use serde::Serialize;

use self::home::HomeCondition;
use super::OpError;
use super::config::how_to_repair;
use super::error::chain;
use super::home::location;
use super::home::location::{CONFIG_FILE, FoundHome, LocationArgs, StoreAddress};
use super::home::open::open_for_reading;
use super::home::ownership::advice_for_found;
use domain::settings::Settings;
use domain::values::clock::TimeFormat;
use store::postgres::Address;
use store::settings::in_force;
use store::sqlite::Depth;
use store::{Contradiction, Store, StoreError};
use sys::fs::owner_only;
use sys::fs::ownership::OwnershipError;

domain::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Level {
        Ok = "ok",
        /// It works, but needs attention.
        Warning = "warning",
        /// It does not work or is not safe.
        Error = "error",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    pub level: Level,
    #[serde(rename = "said")]
    pub message: String,
    /// How to solve the problem.
    pub advice: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), advice: None }
    }

    fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::ok(check, message) }
    }

    fn error(check: &'static str, message: impl Into<String>) -> Self {
        Self { level: Level::Error, ..Self::ok(check, message) }
    }

    fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

#[derive(Debug, Default)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    /// Why the queue cannot be used: the error that any other command would fail with.
    pub refusal: Option<OpError>,
    /// Where the store's derived data disagrees with the jobs.
    pub contradictions: Vec<Contradiction>,
}

impl Diagnosis {
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    /// Whether there are no errors; warnings are allowed.
    pub fn is_ok(&self) -> bool {
        self.count(Level::Error) == 0
    }

    fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Whether the database file itself is intact, which is required for a repair.
    pub fn is_database_whole(&self) -> bool {
        let is_broken = |finding: &Finding| finding.level == Level::Error && finding.check == "database";
        !self.findings.iter().any(is_broken)
    }

    /// Adds an error that makes every other command fail. The first one is kept as the refusal.
    fn refuse(&mut self, check: &'static str, error: impl Into<OpError>, advice: Option<&str>) {
        let error = error.into();
        let finding = Finding::error(check, chain(&error));
        self.add(advice.into_iter().fold(finding, Finding::advise));
        self.refusal.get_or_insert(error);
    }
}

/// The JSON of a diagnosis.
#[derive(Debug, Serialize)]
pub struct DiagnosisJson<'a> {
    ok: bool,
    /// How many contradictions `doctor --repair` repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<usize>,
    /// The contradictions that remain after the repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Vec<&'a str>>,
    findings: &'a [Finding],
}

impl<'a> DiagnosisJson<'a> {
    /// `repaired`: how many contradictions were repaired before this diagnosis, if a repair was requested.
    pub fn new(diagnosis: &'a Diagnosis, repaired: Option<usize>) -> Self {
        let left = diagnosis.contradictions.iter().map(|left| left.message.as_str());
        Self {
            ok: diagnosis.is_ok(),
            repaired,
            left: repaired.map(|_| left.collect()),
            findings: &diagnosis.findings,
        }
    }
}

/// How to examine the queue.
struct ExamineOptions<'a> {
    args: &'a LocationArgs,
    depth: Depth,
    on_full_read: &'a dyn Fn(u64),
    format: &'a TimeFormat,
}

/// Runs all checks. `on_full_read` is called with the size of the database before all of it is read; findings show times
/// in this format.
pub fn diagnose(
    args: &LocationArgs,
    depth: Depth,
    on_full_read: &dyn Fn(u64),
    format: &TimeFormat,
) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let options = ExamineOptions { args, depth, on_full_read, format };
    let settings = match location::find_home(args) {
        Ok(FoundHome { home, skipped_home, is_named: _ }) => {
            let warn =
                |skipped: OwnershipError| Finding::warning("home", format!("{skipped}; it was skipped"));
            skipped_home.map(warn).into_iter().for_each(|finding| diagnosis.add(finding));
            check_home(&mut diagnosis, &options, &home)
                .and_then(|store| check_queue(&mut diagnosis, &options, store.as_ref(), &home))
        }
        Err(error) => {
            let advice = if let OpError::ExposedHome { home, source } = &error {
                advice_for_found(home, source)
            } else {
                "choose a directory with --home".to_owned()
            };
            diagnosis.refuse("home", error, Some(&advice));
            None
        }
    };
    account::check(&mut diagnosis);
    machine::check(&mut diagnosis);
    let settings = settings.unwrap_or_default();
    limits::check(&mut diagnosis, &settings);
    job_limits::check(&mut diagnosis, &settings);
    diagnosis
}

/// Checks the home and returns its queue, open for reading, if there is one.
fn check_home(
    diagnosis: &mut Diagnosis,
    options: &ExamineOptions<'_>,
    home: &Path,
) -> Option<Box<dyn Store>> {
    if home::check(diagnosis, home) == HomeCondition::Broken {
        return None;
    }
    home::count_logs(diagnosis, home);
    match find_store(diagnosis, options.args, home)? {
        StoreAddress::Sqlite(database) => check_file(diagnosis, options, home, &database),
        StoreAddress::Postgres(address) => {
            disk::check(diagnosis, home, home);
            check_server(diagnosis, options, &address)
        }
    }
}

fn check_file(
    diagnosis: &mut Diagnosis,
    options: &ExamineOptions<'_>,
    home: &Path,
    database: &Path,
) -> Option<Box<dyn Store>> {
    disk::check(diagnosis, home, owner_only::folder_of(database));
    if owner_only::folder_of(database) != home {
        home::check_store(diagnosis, database);
    }
    let store = database::check(diagnosis, options, database);
    if let (Some(store), Depth::Full) = (&store, options.depth) {
        recount::check(diagnosis, store);
    }
    gate::check(diagnosis, database);
    store.map(|store| -> Box<dyn Store> { Box::new(store) })
}

#[cfg(feature = "postgres")]
fn check_server(
    diagnosis: &mut Diagnosis,
    options: &ExamineOptions<'_>,
    address: &Address,
) -> Option<Box<dyn Store>> {
    if !server::check(diagnosis, address) {
        return None;
    }
    match open_for_reading(address) {
        Ok(store) => {
            if options.depth == Depth::Full {
                recount::check(diagnosis, store.as_ref());
            }
            Some(store)
        }
        Err(error) => {
            diagnosis.refuse("queue", error, None);
            None
        }
    }
}

#[cfg(not(feature = "postgres"))]
fn check_server(
    diagnosis: &mut Diagnosis,
    _: &ExamineOptions<'_>,
    address: &Address,
) -> Option<Box<dyn Store>> {
    if let Err(error) = open_for_reading(address) {
        diagnosis.refuse("queue", error, None);
    }
    None
}

fn find_store(diagnosis: &mut Diagnosis, args: &LocationArgs, home: &Path) -> Option<StoreAddress> {
    // The owner of the file was checked with the other files.
    match location::find_store(args, home, |_, _| Ok(())) {
        Ok(address) => {
            if home.join(CONFIG_FILE).exists() {
                diagnosis.add(Finding::ok("config", format!("{CONFIG_FILE} is valid")));
            }
            Some(address)
        }
        Err(error) => {
            let advice = format!("correct {CONFIG_FILE}, --store or QUEUECTL_STORE");
            diagnosis.refuse("config", error, Some(&advice));
            None
        }
    }
}

/// Checks the queue and returns the settings in force, if they can be read.
fn check_queue(
    diagnosis: &mut Diagnosis,
    options: &ExamineOptions<'_>,
    store: &dyn Store,
    home: &Path,
) -> Option<Settings> {
    let settings = in_force(store);
    let lease = settings.as_ref().map_or_else(|_| store.default_settings().lease, |settings| settings.lease);
    let checked =
        workers::check(diagnosis, store, home, lease).and_then(|()| machine::check_clock(diagnosis, store));
    if let Err(error) = checked {
        diagnosis.refuse("queue", error, None);
    }
    match settings {
        Ok(settings) => {
            queue::check_settings(diagnosis, &settings);
            queue::check_problems(diagnosis, store, home, options.format);
            Some(settings)
        }
        Err(error) => {
            let advice =
                if let StoreError::BadSetting { key, .. } = &error { Some(how_to_repair(key)) } else { None };
            diagnosis.refuse("settings", error, advice.as_deref());
            None
        }
    }
}

fn cannot_open(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::CannotOpen { path: path.to_owned(), source: error.into() }
}

/// `1 file`, `2 files`
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

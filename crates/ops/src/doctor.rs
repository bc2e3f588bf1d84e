//! What is wrong with a queue, and with the machine that it is on.
//!
//! Every check becomes a finding, also one that could not be made: whoever asks has a reason, and a home that is broken
//! is the best of them. Nothing is made, migrated or changed. One file per group of checks.

mod account;
mod database;
mod disk;
mod gate;
mod home;
mod job_limits;
mod json;
mod limits;
mod machine;
mod queue;
mod recount;
mod workers;

pub use json::DiagnosisJson;
pub use recount::repair;

use std::path::Path;

use super::OpError;
use super::config::how_to_repair;
use super::doctor::home::Condition;
use super::error::chain;
use super::home::location;
use super::home::location::{CONFIG_FILE, Found, StoreAddress, Wanted};
use super::home::ownership::advice_for_found;
use domain::settings::Settings;
use store::settings::in_force;
use store::sqlite::{Depth, SqliteStore};
use store::{Contradiction, Store, StoreError};
use sys::fs::owner_only;
use sys::fs::ownership::OwnershipError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Ok,
    /// It works, but somebody should know.
    Warning,
    /// It does not work, or is not safe.
    Error,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, in one word.
    pub check: &'static str,
    pub level: Level,
    pub said: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, said: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, said: said.into(), advice: None }
    }

    fn warning(check: &'static str, said: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::ok(check, said) }
    }

    fn error(check: &'static str, said: impl Into<String>) -> Self {
        Self { level: Level::Error, ..Self::ok(check, said) }
    }

    fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

#[derive(Debug, Default)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    /// Why the queue cannot be used, where that was found: what any other verb would fail with.
    pub refusal: Option<OpError>,
    /// Where what the store keeps beside the jobs does not agree with them.
    pub contradictions: Vec<Contradiction>,
}

impl Diagnosis {
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    /// Whether there is no error; warnings are allowed.
    pub fn is_ok(&self) -> bool {
        self.count(Level::Error) == 0
    }

    fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Whether the file itself is whole, so that what is wrong in it can be mended.
    pub fn is_database_whole(&self) -> bool {
        let is_broken = |finding: &Finding| finding.level == Level::Error && finding.check == "database";
        !self.findings.iter().any(is_broken)
    }

    /// Adds an error for which every other verb would give up. The first one counts.
    fn refuse(&mut self, check: &'static str, error: impl Into<OpError>, advice: Option<&str>) {
        let error = error.into();
        let finding = Finding::error(check, chain(&error));
        self.add(advice.into_iter().fold(finding, Finding::advise));
        self.refusal.get_or_insert(error);
    }
}

/// How to look.
struct Examiner<'a> {
    wanted: &'a Wanted,
    depth: Depth,
    before_reading: &'a dyn Fn(u64),
}

/// Looks at everything. `before_reading` is told how large the database is, before it is read from end to end.
pub fn diagnose(wanted: &Wanted, depth: Depth, before_reading: &dyn Fn(u64)) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let examiner = Examiner { wanted, depth, before_reading };
    let settings = match location::find_home(wanted) {
        Ok(Found { home, passed_over }) => {
            let warn =
                |passed: OwnershipError| Finding::warning("home", format!("{passed}; it is passed over"));
            passed_over.map(warn).into_iter().for_each(|finding| diagnosis.add(finding));
            look_at_home(&mut diagnosis, &examiner, &home)
                .and_then(|store| look_at_queue(&mut diagnosis, &store, &home))
        }
        Err(error) => {
            let advice = if let OpError::ExposedHome { home, source } = &error {
                advice_for_found(home, source)
            } else {
                "name a folder with --home".to_owned()
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

/// Gives the queue in it, open for reading, if there is one.
fn look_at_home(diagnosis: &mut Diagnosis, examiner: &Examiner<'_>, home: &Path) -> Option<SqliteStore> {
    if home::check(diagnosis, home) == Condition::Broken {
        return None;
    }
    home::count_logs(diagnosis, home);
    let StoreAddress::Sqlite(database) = find_store(diagnosis, examiner.wanted, home)?;
    disk::check(diagnosis, home, owner_only::folder_of(&database));
    if owner_only::folder_of(&database) != home {
        home::check_store(diagnosis, &database);
    }
    let store = database::check(diagnosis, examiner, &database);
    if let (Some(store), Depth::Full) = (&store, examiner.depth) {
        recount::check(diagnosis, store);
    }
    gate::check(diagnosis, &database);
    store
}

fn find_store(diagnosis: &mut Diagnosis, wanted: &Wanted, home: &Path) -> Option<StoreAddress> {
    // Whose the file is was looked at with the others.
    match location::find_store(wanted, home, |_, _| Ok(())) {
        Ok(address) => {
            if home.join(CONFIG_FILE).exists() {
                diagnosis.add(Finding::ok("config", format!("{CONFIG_FILE} is understood")));
            }
            Some(address)
        }
        Err(error) => {
            let advice = format!("correct {CONFIG_FILE} or what --store and QUEUECTL_STORE say");
            diagnosis.refuse("config", error, Some(&advice));
            None
        }
    }
}

/// Gives the settings in force, if they can be read.
fn look_at_queue(diagnosis: &mut Diagnosis, store: &dyn Store, home: &Path) -> Option<Settings> {
    let settings = in_force(store);
    let lease = settings.as_ref().map_or_else(|_| Settings::default().lease, |settings| settings.lease);
    let looked =
        workers::check(diagnosis, store, home, lease).and_then(|()| machine::check_clock(diagnosis, store));
    if let Err(error) = looked {
        diagnosis.refuse("queue", error, None);
    }
    match settings {
        Ok(settings) => {
            queue::check(diagnosis, store, home, &settings);
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

//! What programs have promised by what they printed, or by ending well.
//!
//! A call is named `NUMBER#PROMISE`: `enqueue` promises that the ids it prints exist, `wait` that they are completed;
//! `exists ID`, `cancel ID`, `retry ID` and `set KEY VALUE` promise by their end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::job::Job;
use domain::job::life::StateName;
use domain::settings::SettingKey;
use domain::values::timestamp::Timestamp;

use super::record::Record;

/// Something that must be true after every cut from a position on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    Exists(String),
    Completed(String),
    Cancelled(String),
    /// It is not cancelled any more.
    Retried(String),
    Set(String, String),
}

impl Promise {
    fn kind(&self) -> &'static str {
        match self {
            Self::Exists(_) => "exists",
            Self::Completed(_) => "completed",
            Self::Cancelled(_) => "cancelled",
            Self::Retried(_) => "retried",
            Self::Set(..) => "set",
        }
    }
}

/// All promises, each with the position from which it holds.
#[derive(Clone, Debug)]
pub struct Promises(Vec<(usize, Promise)>);

impl Promises {
    /// Those that the records tell of; that these jobs exist was promised before.
    pub fn of(records: &[Record], old_jobs: &[&str]) -> Self {
        let mut lines: HashMap<&str, Vec<u8>> = HashMap::new();
        let mut promises: Vec<_> = old_jobs.iter().map(|id| (0, Promise::Exists((*id).to_owned()))).collect();
        for (at, record) in records.iter().enumerate() {
            if let Record::Say { call, text } = record {
                let said = lines.entry(call).or_default();
                said.extend_from_slice(text);
                let made = whole_lines(said).into_iter().filter_map(|line| by_line(promise_of(call), line));
                promises.extend(made.map(|promise| (at + 1, promise)));
            } else if let Record::End { call } = record {
                promises.extend(by_end(promise_of(call)).map(|promise| (at + 1, promise)));
            }
        }
        Self(promises)
    }

    /// Where each of those that the records tell of was made.
    pub fn positions(&self) -> Vec<usize> {
        self.0.iter().map(|(at, _)| *at).filter(|at| *at > 0).collect()
    }

    /// Which kinds there are.
    pub fn kinds(&self) -> BTreeSet<&'static str> {
        self.0.iter().map(|(_, promise)| promise.kind()).collect()
    }

    /// Those that a cut at this position must not break.
    pub fn before(&self, cut: usize) -> impl Iterator<Item = &Promise> {
        self.0.iter().take_while(move |(at, _)| *at <= cut).map(|(_, promise)| promise)
    }
}

fn promise_of(call: &str) -> &str {
    call.split_once('#').expect("a call has a number").1
}

/// Takes the lines that are complete.
fn whole_lines(said: &mut Vec<u8>) -> Vec<String> {
    let whole = said.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let text = String::from_utf8(said.drain(..whole).collect()).expect("ids are text");
    text.lines().map(str::to_owned).collect()
}

fn by_line(promise: &str, id: String) -> Option<Promise> {
    match promise {
        "enqueue" => Some(Promise::Exists(id)),
        "wait" => Some(Promise::Completed(id)),
        _ => None,
    }
}

fn by_end(promise: &str) -> Option<Promise> {
    let words: Vec<&str> = promise.split(' ').collect();
    match words[..] {
        ["exists", id] => Some(Promise::Exists(id.to_owned())),
        ["cancel", id] => Some(Promise::Cancelled(id.to_owned())),
        ["retry", id] => Some(Promise::Retried(id.to_owned())),
        ["set", key, value] => Some(Promise::Set(key.to_owned(), value.to_owned())),
        _ => None,
    }
}

/// A queue as it was found.
#[derive(Debug)]
pub struct Found {
    jobs: BTreeMap<String, StateName>,
    settings: BTreeMap<String, String>,
    /// Those whose time had not come.
    scheduled: BTreeSet<String>,
}

impl Found {
    pub fn new(jobs: &[Job], settings: &BTreeMap<SettingKey, String>, now: Timestamp) -> Self {
        let scheduled = jobs.iter().filter(|job| job.life.due_at > now);
        Self {
            scheduled: scheduled.map(|job| job.id.to_string()).collect(),
            jobs: jobs.iter().map(|job| (job.id.to_string(), job.life.state.name())).collect(),
            settings: settings.iter().map(|(key, value)| (key.name().to_owned(), value.clone())).collect(),
        }
    }

    pub fn ids(&self) -> BTreeSet<&str> {
        self.jobs.keys().map(String::as_str).collect()
    }

    /// What a worker should have finished.
    pub fn unfinished(&self) -> Vec<&str> {
        let over = [StateName::Completed, StateName::Cancelled];
        let rest =
            self.jobs.iter().filter(|(id, state)| !over.contains(state) && !self.scheduled.contains(*id));
        rest.map(|(id, _)| id.as_str()).collect()
    }

    pub fn keeps(&self, promise: &Promise) -> bool {
        match promise {
            Promise::Exists(id) => self.jobs.contains_key(id),
            Promise::Completed(id) => self.jobs.get(id) == Some(&StateName::Completed),
            Promise::Cancelled(id) => self.jobs.get(id) == Some(&StateName::Cancelled),
            Promise::Retried(id) => self.jobs.get(id).is_some_and(|state| *state != StateName::Cancelled),
            Promise::Set(key, value) => self.settings.get(key) == Some(value),
        }
    }
}

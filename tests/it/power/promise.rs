//! The promises that programs made by their output or by a successful exit.
//!
//! A call is named `NUMBER#PROMISE`: `enqueue` promises that the ids it prints exist, `wait` that they are completed;
//! `exists ID`, `cancel ID`, `retry ID` and `set KEY VALUE` are promised by the exit of the call.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::job::Job;
use domain::job::life::StateName;
use domain::settings::SettingKey;
use domain::values::timestamp::Timestamp;

use super::record::Record;

/// A fact that must hold after every cut from its position on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    Exists(String),
    Completed(String),
    Cancelled(String),
    /// The job is no longer cancelled.
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

/// All promises, each with the position from which on it must hold.
#[derive(Clone, Debug)]
pub struct Promises(Vec<(usize, Promise)>);

impl Promises {
    /// The promises in the records, and the existence of the old jobs.
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

    /// The positions of the promises in the records.
    pub fn positions(&self) -> Vec<usize> {
        self.0.iter().map(|(at, _)| *at).filter(|at| *at > 0).collect()
    }

    /// The kinds of promises that occur.
    pub fn kinds(&self) -> BTreeSet<&'static str> {
        self.0.iter().map(|(_, promise)| promise.kind()).collect()
    }

    /// The promises that a cut at this position must not break.
    pub fn before(&self, cut: usize) -> impl Iterator<Item = &Promise> {
        self.0.iter().take_while(move |(at, _)| *at <= cut).map(|(_, promise)| promise)
    }
}

fn promise_of(call: &str) -> &str {
    call.split_once('#').expect("a call has a number").1
}

/// Removes and returns the complete lines.
fn whole_lines(said: &mut Vec<u8>) -> Vec<String> {
    let whole = said.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let text = String::from_utf8(said.drain(..whole).collect()).expect("ids are UTF-8");
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

/// The contents of a queue after a cut.
#[derive(Debug)]
pub struct QueueContents {
    jobs: BTreeMap<String, StateName>,
    settings: BTreeMap<String, String>,
    /// Jobs that are not due yet.
    scheduled: BTreeSet<String>,
}

impl QueueContents {
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

    /// The jobs that a worker should have finished.
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

//! What the value of an argument names. The name of the value in the help decides, and the verb where that is not enough.

use clap::Arg;

use domain::hook::HookEvent;
use domain::job::OnDependencyFailure;
use domain::job::life::StateName;
use domain::job::priority;
use domain::schedule::{OnMissed, OnOverlap};
use domain::values::signal::USUAL;
use ops::jobs::columns;
use ops::jobs::list::order_names;
use store::postgres::grant::Part;
use store::{EndReason, Phase};

use super::Candidate;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Stored(Stored),
    SettingKey,
    SettingValue,
    Verb,
    /// One of these words.
    Words(Vec<Candidate>),
    TimeZone,
    Variable,
    Shell(ShellWord),
    /// Text, a number or a new name.
    Free,
}

/// What has names in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// A job in one of these states; any, if there are none.
    Job(&'static [StateName]),
    Queue,
    Batch,
    Schedule,
    Hook,
    Worker,
    Tag,
    /// Of dead jobs.
    Cause,
}

/// What the shell itself completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShellWord {
    File,
    Folder,
    Command,
}

const UNFINISHED: &[StateName] = &[StateName::Pending, StateName::Processing, StateName::Failed];
const NOT_RUNNING: &[StateName] =
    &[StateName::Pending, StateName::Completed, StateName::Failed, StateName::Dead, StateName::Cancelled];
const RETRIED: &[StateName] =
    &[StateName::Failed, StateName::Dead, StateName::Cancelled, StateName::Completed];

/// What the value of this argument of the verb names.
pub(crate) fn subject(verb: &str, argument: &Arg) -> Subject {
    let possible = argument.get_possible_values();
    if !possible.is_empty() && argument.get_action().takes_values() {
        let about = |value: &clap::builder::PossibleValue| {
            value.get_help().map(ToString::to_string).unwrap_or_default()
        };
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        return Subject::Words(shown.map(|value| Candidate::new(value.get_name(), about(value))).collect());
    }
    let id = argument.get_id().as_str();
    let value_name = argument.get_value_names().and_then(|names| names.first());
    match value_name.map_or(id, |name| name.as_str()) {
        "JOB" | "ID" if argument.get_long() != Some("id") => Subject::Stored(Stored::Job(states(verb))),
        "QUEUE" => Subject::Stored(Stored::Queue),
        "TAG" => Subject::Stored(Stored::Tag),
        "WORKER" => Subject::Stored(Stored::Worker),
        "CAUSE" => Subject::Stored(Stored::Cause),
        "REASON" => words(EndReason::all().map(EndReason::name)),
        "STATE" => Subject::Words(phases()),
        "SIGNAL" => words(USUAL),
        "PART" => words(Part::ALL.map(Part::name)),
        #[cfg(feature = "dashboard")]
        "SCOPE" => words(web::Scope::ALL.map(web::Scope::name)),
        "FILE" | "PATH" | "FROM" | "TO" => Subject::Shell(ShellWord::File),
        "DIR" => Subject::Shell(ShellWord::Folder),
        "COMMAND" => Subject::Shell(ShellWord::Command),
        "VERB" => Subject::Verb,
        "VARIABLE" => Subject::Variable,
        "ZONE" => Subject::TimeZone,
        "NAME" => named(verb, argument),
        "key" | "KEY" if verb.starts_with("config") => Subject::SettingKey,
        "value" | "VALUE" if verb.starts_with("config") => Subject::SettingValue,
        "NAMES" => words(columns::known().map(|(name, _)| *name)),
        "ORDER" => words(order_names()),
        "EVENT" => words(HookEvent::ALL.map(HookEvent::name_in_flags)),
        _ => by_flag(id),
    }
}

fn states(verb: &str) -> &'static [StateName] {
    match verb {
        "cancel" | "wait" => UNFINISHED,
        "pause" | "resume" => &[StateName::Processing],
        "retry" => RETRIED,
        "remove" | "edit" => NOT_RUNNING,
        _ if verb.starts_with("dlq") => &[StateName::Dead],
        _ => &[],
    }
}

/// A name belongs to what the verb is about, unless the verb adds it.
fn named(verb: &str, argument: &Arg) -> Subject {
    let is_flag = argument.get_long().is_some();
    match verb.split_once(' ') {
        _ if argument.get_long() == Some("batch") => Subject::Stored(Stored::Batch),
        _ if argument.get_long() == Some("schedule") => Subject::Stored(Stored::Schedule),
        Some(("batch", _)) if !is_flag => Subject::Stored(Stored::Batch),
        Some(("schedule", verb)) if !is_flag && verb != "add" => Subject::Stored(Stored::Schedule),
        Some(("hook", verb)) if !is_flag && verb != "add" => Subject::Stored(Stored::Hook),
        _ => Subject::Free,
    }
}

fn by_flag(id: &str) -> Subject {
    match id {
        "priority" => Subject::Words(
            priority::WORDS.map(|(word, number)| Candidate::new(word, number.to_string())).into(),
        ),
        "on_dependency_failure" => words(OnDependencyFailure::ALL.map(OnDependencyFailure::name)),
        "on_missed" => words(OnMissed::ALL.map(OnMissed::name)),
        "on_overlap" => words(OnOverlap::ALL.map(OnOverlap::name)),
        "unique_for" => words(["started", "finished"]),
        _ => Subject::Free,
    }
}

fn words<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Subject {
    Subject::Words(words.into_iter().map(|word| Candidate::new(word, "")).collect())
}

fn phases() -> Vec<Candidate> {
    let about = |phase: Phase| match phase {
        Phase::State(StateName::Pending) => "waiting to run",
        Phase::State(StateName::Processing) => "running",
        Phase::State(StateName::Completed) => "succeeded",
        Phase::State(StateName::Failed) => "waiting for a retry",
        Phase::State(StateName::Dead) => "out of retries",
        Phase::State(StateName::Cancelled) => "cancelled",
        Phase::Ready => "could run now",
        Phase::Scheduled => "waiting for its start time",
        Phase::Blocked => "waiting for another job",
        Phase::Paused => "running, but stopped for a while",
    };
    Phase::ALL.map(|phase| Candidate::new(phase.name(), about(phase))).into()
}

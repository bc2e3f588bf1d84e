//! Handles: what a person types to name a job.
//!
//! A handle is the id of a job, its number, or the beginning or the end of its id. They are tried in this order, so that
//! a complete id always stands for its own job. `%42` is the number 42, even if a job has the id `42`, and `%` alone is the
//! latest job, as in a shell. Digits alone are never a part of an id: once job 42 has been deleted, `42` must not mean
//! another job.

use domain::values::name::{JobId, NameError};
use store::{Store, StoreError};

/// At most this many candidates are named if a handle is ambiguous.
pub const MAX_CANDIDATES: usize = 10;
/// A shorter text is not searched for at the end of ids: it would match by chance.
const MIN_SUFFIX_LENGTH: usize = 3;
/// The end of an id is searched among this many of the newest jobs.
const SUFFIX_SEARCHED_JOBS: u64 = 100_000;

/// A handle, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handle {
    Latest,
    Number(u64),
    Text(JobId),
}

/// What a handle stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The job with this id or this number.
    Job(JobId),
    /// The only job with an id of which the handle is a part.
    Part { typed: JobId, only: JobId, place: Place },
    /// Several jobs; if there are too many, one more than [`MAX_CANDIDATES`].
    Ambiguous(Vec<JobId>),
    /// No job. The id is the one to report as missing.
    Nothing(JobId),
    /// No job has this number. A job may have it as its id, but that is not what was asked for.
    NoNumber(u64),
    /// The latest job was asked for, and there are no jobs.
    NoJobs,
}

/// Where in an id a handle was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Beginning,
    End,
}

/// `%` is in no id, so it always marks a number or the latest job.
impl std::str::FromStr for Handle {
    type Err = NameError;

    fn from_str(typed: &str) -> Result<Self, NameError> {
        if typed == "%" {
            return Ok(Self::Latest);
        }
        let digits =
            typed.strip_prefix('%').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok());
        number.map_or_else(|| typed.parse().map(Self::Text), |number| Ok(Self::Number(number)))
    }
}

pub fn resolve(store: &dyn Store, handle: &Handle) -> Result<Resolution, StoreError> {
    match handle {
        Handle::Latest => Ok(store.latest()?.map_or(Resolution::NoJobs, Resolution::Job)),
        Handle::Number(number) => {
            let found = store.id_of_number(*number)?;
            Ok(found.map_or(Resolution::NoNumber(*number), Resolution::Job))
        }
        Handle::Text(typed) => resolve_text(store, typed),
    }
}

fn resolve_text(store: &dyn Store, typed: &JobId) -> Result<Resolution, StoreError> {
    // The shortest comes first, so an exact match does.
    let mut begin = store.ids_with_prefix(typed, MAX_CANDIDATES + 1)?;
    if begin.first() == Some(typed) {
        return Ok(Resolution::Job(begin.remove(0)));
    }
    if typed.as_str().bytes().all(|byte| byte.is_ascii_digit()) {
        let number = typed.as_str().parse().ok();
        let found = number.map(|number| store.id_of_number(number)).transpose()?.flatten();
        return Ok(found.map_or_else(|| Resolution::Nothing(typed.clone()), Resolution::Job));
    }
    if begin.is_empty() {
        return resolve_suffix(store, typed);
    }
    Ok(only_or_ambiguous(typed, begin, Place::Beginning))
}

/// Chosen ids end alike (`backup-monday`, `upload-monday`), so only generated ones are searched.
fn resolve_suffix(store: &dyn Store, typed: &JobId) -> Result<Resolution, StoreError> {
    if typed.as_str().len() < MIN_SUFFIX_LENGTH {
        return Ok(Resolution::Nothing(typed.clone()));
    }
    let mut end = store.ids_with_suffix(typed, SUFFIX_SEARCHED_JOBS, MAX_CANDIDATES + 1)?;
    end.retain(JobId::is_generated);
    if end.is_empty() {
        return Ok(Resolution::Nothing(typed.clone()));
    }
    Ok(only_or_ambiguous(typed, end, Place::End))
}

fn only_or_ambiguous(typed: &JobId, mut found: Vec<JobId>, place: Place) -> Resolution {
    match found.len() {
        1 => Resolution::Part { typed: typed.clone(), only: found.remove(0), place },
        _ => Resolution::Ambiguous(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_marks_a_number_or_the_latest_job_and_everything_else_is_text() {
        assert_eq!("%42".parse(), Ok(Handle::Number(42)));
        assert_eq!("42".parse(), Ok(Handle::Text("42".parse().expect("an id"))));
        assert_eq!("%".parse(), Ok(Handle::Latest));
        for bad in ["%%", "%x", "%-1", "%+7", "%99999999999999999999", "", "a b"] {
            assert!(bad.parse::<Handle>().is_err(), "{bad}");
        }
    }
}

//! A schedule as a client describes it.

use serde::Deserialize;

use crate::problem::Problem;
use domain::job::spec::JobSpec;
use domain::schedule::{MAX_MISSED_LIMIT, OnMissed, OnOverlap, Policy, ScheduleError, When};
use domain::values::name::ScheduleName;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::home::location::{Location, StoreAddress};
use ops::jobs::enqueue::Caller;
use ops::schedule::{ScheduleRequest, cron};

/// A longer cron expression is refused before it is parsed.
const MAX_CRON_CHARS: usize = 256;

/// The fields have the names of the flags of `schedule add`; exactly one of `cron`, `every` and `at` is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewScheduleRequest {
    name: String,
    cron: Option<String>,
    tz: Option<String>,
    every: Option<String>,
    at: Option<Timestamp>,
    on_missed: Option<String>,
    missed_limit: Option<u32>,
    on_overlap: Option<String>,
    job: JobSpec,
}

/// The jobs of a schedule get the environment of the worker. On a server they start in the home directory of its account;
/// a schedule in a file names a directory, which is the home directory of the server's user.
pub(super) fn caller(location: &Location) -> Caller {
    match &location.store {
        StoreAddress::Postgres(_) => Caller { runs_elsewhere: true, ..Caller::default() },
        StoreAddress::Sqlite(_) => {
            let home = std::env::var("HOME").ok().filter(|home| home.starts_with('/'));
            Caller { cwd: Some(home.unwrap_or_else(|| "/".to_owned())), ..Caller::default() }
        }
    }
}

impl NewScheduleRequest {
    pub(super) fn resolve(&self) -> Result<ScheduleRequest, Problem> {
        let bad_name = |source| OpError::BadName { what: "name", typed: self.name.clone(), source };
        let name: ScheduleName = self.name.parse().map_err(bad_name)?;
        Ok(ScheduleRequest { name, when: self.when()?, policy: self.policy()?, job: self.job.clone() })
    }

    fn when(&self) -> Result<When, Problem> {
        Self::when_of(self.cron.as_deref(), self.tz.as_deref(), self.every.as_deref(), self.at)
    }

    /// The times of a schedule, from the texts of its fields.
    pub(super) fn when_of(
        cron_line: Option<&str>,
        zone: Option<&str>,
        every: Option<&str>,
        at: Option<Timestamp>,
    ) -> Result<When, Problem> {
        if zone.is_some() && cron_line.is_none() {
            return Err(Problem::invalid("`tz` needs `cron`"));
        }
        match (cron_line, every, at) {
            (Some(line), None, None) if line.chars().count() > MAX_CRON_CHARS => {
                Err(Problem::invalid(format!("`cron` may have at most {MAX_CRON_CHARS} characters")))
            }
            (Some(line), None, None) => Ok(cron(line, zone)?),
            (None, Some(period), None) => {
                let period = parse_span(period)
                    .map_err(|error| Problem::invalid(format!("invalid every `{period}` ({error})")))?;
                Ok(When::every(period).map_err(|error| OpError::from(ScheduleError::from(error)))?)
            }
            (None, None, Some(at)) => Ok(When::At(at)),
            (_, _, _) => Err(Problem::invalid("give exactly one of `cron`, `every` and `at`")),
        }
    }

    fn policy(&self) -> Result<Policy, Problem> {
        let on_missed = choice("on_missed", self.on_missed.as_deref(), OnMissed::from_name)?;
        let on_overlap = choice("on_overlap", self.on_overlap.as_deref(), OnOverlap::from_name)?;
        if self.missed_limit.is_some_and(|limit| !(1..=MAX_MISSED_LIMIT).contains(&limit)) {
            return Err(Problem::invalid(format!("`missed_limit` must be from 1 to {MAX_MISSED_LIMIT}")));
        }
        let policy = Policy::new(on_missed, self.missed_limit, on_overlap);
        Ok(policy.map_err(|error| OpError::from(ScheduleError::from(error)))?)
    }
}

fn choice<T>(field: &str, typed: Option<&str>, parse: fn(&str) -> Option<T>) -> Result<Option<T>, Problem> {
    let parse = |typed| parse(typed).ok_or_else(|| Problem::invalid(format!("invalid {field} `{typed}`")));
    typed.map(parse).transpose()
}

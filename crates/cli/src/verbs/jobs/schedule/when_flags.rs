//! The flags that say when a schedule runs.

use std::time::Duration;

use crate::failure::Failure;
use crate::flags::start_time::{StartTime, parse_time};
use crate::flags::whole_number::whole_number;
use domain::schedule::{MAX_MISSED_LIMIT, OnMissed, OnOverlap, Policy, ScheduleError, When};
use domain::values::span::parse_span;
use ops::OpError;
use ops::schedule::{cron, zone};
use sys::zone::local;

#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "When", group = clap::ArgGroup::new("when").args(["cron", "every", "at"]))]
pub(super) struct WhenFlags {
    /// At the times of this cron expression: "0 3 * * *", @daily
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// Time zone of --cron or --at: Europe/Berlin [default: that of this machine, else UTC]
    #[arg(long, value_name = "ZONE", conflicts_with = "every")]
    tz: Option<String>,
    /// At this interval, starting from now: 15m, 1h30m
    #[arg(long, value_name = "DURATION", value_parser = parse_span, allow_negative_numbers = true)]
    every: Option<Duration>,
    /// Once, at this time: "tomorrow 3am", "mon 10:30", "2027-01-01 10:00", 2026-12-31T23:59:00Z
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// How to treat runs missed while no worker was running: skip, once or all [default: once]
    #[arg(long, value_name = "CHOICE", value_parser = parse_on_missed)]
    on_missed: Option<OnMissed>,
    /// With --on-missed all: make up for at most this many runs, the latest ones [default: 10]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>(1..=MAX_MISSED_LIMIT.into()), allow_negative_numbers = true)]
    missed_limit: Option<u32>,
    /// How to treat a run while an earlier one has not finished: skip, queue or replace [default: skip]
    #[arg(long, value_name = "CHOICE", value_parser = parse_on_overlap)]
    on_overlap: Option<OnOverlap>,
}

impl WhenFlags {
    /// The times that the flags name, or change in those of an existing schedule; `None` if they change nothing.
    pub(super) fn when(&self, existing: Option<&When>) -> Result<Option<(When, Option<StartTime>)>, Failure> {
        if let Some(line) = &self.cron {
            let zone = self.tz.as_deref().or_else(|| existing.and_then(When::zone_name));
            return Ok(Some((cron(line, zone)?, None)));
        }
        if let Some(period) = self.every {
            let when = When::every(period).map_err(|error| OpError::from(ScheduleError::from(error)))?;
            return Ok(Some((when, None)));
        }
        match (&self.at, &self.tz, existing) {
            (Some(at), tz, _) => once(at, tz.as_deref()).map(Some),
            (None, Some(zone), Some(When::Cron { line, .. })) => {
                Ok(Some((cron(&line.to_string(), Some(zone))?, None)))
            }
            (None, Some(_), _) => Err(Failure::usage("--tz needs --cron or --at")),
            (None, None, _) => Ok(None),
        }
    }

    /// Whether the times depend on the zone of this machine.
    pub(super) fn uses_zone_of_machine(&self) -> bool {
        self.cron.is_some() && self.tz.is_none()
    }

    pub(super) fn policy(&self, existing: Option<Policy>) -> Result<Policy, Failure> {
        let on_missed = self.on_missed.or(existing.map(|policy| policy.on_missed));
        let limit =
            existing.filter(|policy| policy.on_missed == OnMissed::All && on_missed == Some(OnMissed::All));
        // A change to `all` also changes the treatment of overlapping runs, unless that is given, too.
        let overlap = existing.filter(|_| self.on_missed != Some(OnMissed::All));
        Policy::new(
            on_missed,
            self.missed_limit.or(limit.map(|policy| policy.missed_limit)),
            self.on_overlap.or(overlap.map(|policy| policy.on_overlap)),
        )
        .map_err(|error| OpError::from(ScheduleError::from(error)).into())
    }
}

/// A single time. It returns the time as typed if it is to be confirmed.
fn once(typed: &str, tz: Option<&str>) -> Result<(When, Option<StartTime>), Failure> {
    // A cron line needs a zone with a name; a single time can use any zone.
    let zone = tz.map(|name| zone(Some(name))).transpose()?;
    let start = parse_time(typed, || zone.unwrap_or_else(local))
        .map_err(|error| Failure::usage(format!("invalid value '{typed}' for '--at <TIME>': {error}")))?;
    match &start {
        StartTime::Exact(_) if tz.is_some() => {
            Err(Failure::usage(format!("--tz cannot be combined with `{typed}`, which has its own offset")))
        }
        StartTime::Exact(at) => Ok((When::At(*at), None)),
        StartTime::Relative(at, _) => Ok((When::At(*at), Some(start))),
        StartTime::After(_) => Err(Failure::usage("--at needs a time")),
    }
}

fn parse_on_missed(typed: &str) -> Result<OnMissed, String> {
    OnMissed::from_name(typed).ok_or_else(|| "expected skip, once or all".to_owned())
}

fn parse_on_overlap(typed: &str) -> Result<OnOverlap, String> {
    OnOverlap::from_name(typed).ok_or_else(|| "expected skip, queue or replace".to_owned())
}

//! The week: seven columns, with each run at its time on the clock of a zone that the reader chooses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::clock_change::{changes, effect};
use super::{Scheduled, bar, empty, in_words, ticks, url};
use crate::pages::visit::Visit;
use crate::parts::number::grouped;
use crate::parts::state;
use crate::problem::Problem;
use crate::request::query::encode;
use domain::job::life::StateName;
use domain::schedule::{Run, Schedule, When};
use domain::text::hostile::printable;
use domain::values::span::format_span;
use domain::values::timestamp::Timestamp;
use ops::schedule::zone;

const DAYS: usize = 7;
const DAY: Duration = Duration::from_secs(86_400);
/// A schedule with more runs in a day is one line.
const MAX_A_DAY: usize = 24;
/// More runs of a cron schedule in a day are not counted.
const MAX_COUNTED: usize = 3_000;

/// Seven days in a zone.
struct Week {
    zone: TimeZone,
    days: [Date; DAYS],
    from: jiff::Timestamp,
    to: jiff::Timestamp,
}

/// A run in the table.
struct Entry<'a> {
    schedule: &'a Schedule,
    at: Timestamp,
    shown: DateTime,
    run: Option<&'a Run>,
}

impl Week {
    fn of(visit: &Visit<'_>) -> Result<Self, Problem> {
        let named = visit.query.get("tz");
        let zone = zone(named)?;
        let today = zone.to_datetime(moment(visit.now)?).date();
        let day: Date = visit.query.read("week")?.unwrap_or(today);
        let first = day
            .checked_sub(jiff::Span::new().days(day.weekday().since(Weekday::Monday)))
            .map_err(|error| Problem::invalid(error.to_string()))?;
        let mut days = [first; DAYS];
        for (at, day) in days.iter_mut().enumerate() {
            *day = later(first, i64::try_from(at).unwrap_or(0))?;
        }
        let start = |day: Date| {
            zone.to_timestamp(day.at(0, 0, 0, 0)).map_err(|error| Problem::invalid(error.to_string()))
        };
        let (from, to) = (start(first)?, start(later(first, 7)?)?);
        Ok(Self { zone, days, from, to })
    }

    fn contains(&self, at: Timestamp) -> bool {
        (self.from.as_millisecond()..self.to.as_millisecond()).contains(&at.as_millis())
    }

    fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The page with another week or zone.
    fn url(&self, visit: &Visit<'_>, day: Date) -> String {
        visit.url(&format!("/schedules?view=week&week={day}&tz={}", encode(self.zone_name())))
    }
}

fn later(day: Date, days: i64) -> Result<Date, Problem> {
    day.checked_add(jiff::Span::new().days(days)).map_err(|error| Problem::invalid(error.to_string()))
}

fn moment(at: Timestamp) -> Result<jiff::Timestamp, Problem> {
    jiff::Timestamp::from_millisecond(at.as_millis()).map_err(|error| Problem::invalid(error.to_string()))
}

pub(super) fn content(visit: &Visit<'_>, schedules: &[Scheduled]) -> Result<Markup, Problem> {
    let week = Week::of(visit)?;
    let start = Timestamp::from_millis(week.from.as_millisecond());
    let (frequent, others): (Vec<&Scheduled>, Vec<&Scheduled>) =
        schedules.iter().partition(|(schedule, _)| runs_a_day(schedule, start, MAX_A_DAY + 1) > MAX_A_DAY);
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (schedule, runs) in others {
        entries.extend(of_schedule(visit, &week, schedule, runs));
    }
    entries.sort_by_key(|entry| entry.at);
    Ok(html! {
        (bar(visit, schedules.len(), true))
        @if schedules.is_empty() { (empty()) } @else {
            (controls(visit, &week, schedules)?)
            (table(visit, &week, &entries))
            (other_clocks(&week, schedules))
            (lines(visit, &frequent, start))
        }
    })
}

/// How many runs a schedule has in the day after this time, counted up to a bound.
fn runs_a_day(schedule: &Schedule, from: Timestamp, at_most: usize) -> usize {
    match &schedule.when {
        When::Every(period) => {
            usize::try_from(DAY.as_millis() / period.as_millis().max(1)).unwrap_or(at_most).max(1)
        }
        When::At(_) => 1,
        When::Cron { .. } => {
            let end = from.saturating_add(DAY);
            let times = std::iter::successors(schedule.next_after(from), |at| schedule.next_after(*at));
            times.take_while(|at| *at <= end).take(at_most).count()
        }
    }
}

/// The past runs of a schedule and its coming ones.
fn of_schedule<'a>(
    visit: &Visit<'_>,
    week: &Week,
    schedule: &'a Schedule,
    runs: &'a [Run],
) -> Vec<Entry<'a>> {
    let entry = |at: Timestamp, run| {
        let shown = week.zone.to_datetime(moment(at).ok()?);
        Some(Entry { schedule, at, shown, run })
    };
    let past = runs.iter().map(|run| (run.scheduled_for.unwrap_or(run.created_at), Some(run)));
    let end = Timestamp::from_millis(week.to.as_millisecond());
    let begin = Timestamp::from_millis(week.from.as_millisecond() - 1).max(visit.now);
    let first = if schedule.paused.is_some() { None } else { schedule.next_at };
    let first =
        first.filter(|at| *at > begin).or_else(|| schedule.next_after(begin).filter(|_| first.is_some()));
    let coming = std::iter::successors(first, |at| schedule.next_after(*at));
    let coming = coming.take_while(|at| *at < end).take(DAYS * MAX_A_DAY * 2).map(|at| (at, None));
    past.chain(coming).filter(|(at, _)| week.contains(*at)).filter_map(|(at, run)| entry(at, run)).collect()
}

fn controls(visit: &Visit<'_>, week: &Week, schedules: &[Scheduled]) -> Result<Markup, Problem> {
    let own = schedules.iter().filter_map(|(schedule, _)| schedule.when.zone_name());
    let machine = zone(None)?;
    let machine = machine.iana_name().unwrap_or("UTC");
    let zones: BTreeSet<&str> = own.chain(["UTC", machine, week.zone_name()]).collect();
    let (before, after) = (later(week.days[0], -7)?, later(week.days[0], 7)?);
    Ok(html! {
        div .bar {
            nav .ranges aria-label="Week" {
                a href=(week.url(visit, before)) { "‹ week before" }
                a href=(visit.url(&format!("/schedules?view=week&tz={}", encode(week.zone_name())))) { "this week" }
                a href=(week.url(visit, after)) { "next week ›" }
            }
            form .inline action=(visit.url("/schedules")) method="get" {
                input type="hidden" name="view" value="week";
                input type="hidden" name="week" value=(week.days[0]);
                label .row { span { "time zone" }
                    input name="tz" list="zones" value=(week.zone_name()) autocomplete="off";
                }
                datalist #zones { @for zone in &zones { option value=(zone) {} } }
                button type="submit" { "show" }
            }
        }
    })
}

fn table(visit: &Visit<'_>, week: &Week, entries: &[Entry<'_>]) -> Markup {
    let mut cells: BTreeMap<i8, [Vec<&Entry<'_>>; DAYS]> = BTreeMap::new();
    for entry in entries {
        let day = week.days.iter().position(|day| *day == entry.shown.date());
        if let Some(day) = day {
            cells.entry(entry.shown.hour()).or_default()[day].push(entry);
        }
    }
    let today = moment(visit.now).map(|now| week.zone.to_datetime(now).date()).ok();
    let marks = changes(&week.zone, week.from, week.to);
    html! {
        div .scroll {
            table .week {
                thead {
                    tr {
                        th scope="col" { span .hidden { "hour" } }
                        @for day in week.days {
                            th scope="col" .today[today == Some(day)] {
                                (day.strftime("%a %-d %b").to_string())
                                @for change in marks.iter().filter(|change| change.before.date() == day) {
                                    span .clock-change { "⚠ " (change.message()) }
                                }
                            }
                        }
                    }
                }
                tbody {
                    @for (hour, days) in &cells {
                        tr {
                            th scope="row" { (format!("{hour:02}")) }
                            @for (at, entries) in days.iter().enumerate() {
                                td .today[today == Some(week.days[at])] { @for entry in entries { (cell(visit, week, entry)) } }
                            }
                        }
                    }
                    @if cells.is_empty() { tr { td colspan="8" { p .empty { "No run in this week." } } } }
                }
            }
        }
    }
}

fn cell(visit: &Visit<'_>, week: &Week, entry: &Entry<'_>) -> Markup {
    let name = entry.schedule.name.as_str();
    let own = match &entry.schedule.when {
        When::Cron { zone, .. } if *zone != week.zone => {
            moment(entry.at).ok().map(|at| at.to_zoned(zone.clone()))
        }
        When::Cron { .. } | When::Every(_) | When::At(_) => None,
    };
    html! {
        div .entry {
            @match entry.run {
                Some(run) => a href=(visit.job_url(&run.id)) class={ "tick s-" (run.state.name()) } title=(run.state.name()) aria-label={ (run.state.name()) ", " (printable(name)) } { (state::icon(run.state.name())) },
                None => span .tick.s-scheduled title="planned" { (state::icon("scheduled")) },
            }
            " " span .at { (entry.shown.strftime("%H:%M").to_string()) }
            " " a .plain href=(url(visit, name)) { (printable(name)) }
            @if let Some(own) = own { span .note { (own.strftime("%a %H:%M %Z").to_string()) } }
            @if let Some(effect) = effect(&entry.schedule.when, entry.at) { span .clock-change { "⚠ " (effect) } }
        }
    }
}

/// Changes of the clocks of schedules in other zones.
fn other_clocks(week: &Week, schedules: &[Scheduled]) -> Markup {
    let mut zones: BTreeMap<&str, &TimeZone> = BTreeMap::new();
    for (schedule, _) in schedules {
        if let When::Cron { zone, .. } = &schedule.when
            && let Some(name) = zone.iana_name().filter(|name| *name != week.zone_name())
        {
            zones.insert(name, zone);
        }
    }
    html! {
        @for (name, zone) in zones {
            @for change in changes(zone, week.from, week.to) {
                p .clock-change { "⚠ " (name) ": on " (change.before.strftime("%a %-d %b").to_string()) " " (change.message()) }
            }
        }
    }
}

/// Schedules that run so often that their runs would fill the table.
fn lines(visit: &Visit<'_>, frequent: &[&Scheduled], from: Timestamp) -> Markup {
    html! {
        @if !frequent.is_empty() {
            h2 { "More often than every hour" }
            ul .list {
                @for (schedule, runs) in frequent.iter().copied() {
                    @let count = runs_a_day(schedule, from, MAX_COUNTED);
                    li {
                        a .id href=(url(visit, schedule.name.as_str())) { (printable(schedule.name.as_str())) } " "
                        @match &schedule.when {
                            When::Every(period) => { "every " (format_span(*period)) },
                            When::Cron { .. } | When::At(_) => (in_words(visit, schedule)),
                        }
                        " (" @if count == MAX_COUNTED { "more than " } (grouped(count as u64)) " a day) "
                        (ticks(visit, runs))
                        @if schedule.paused.is_some() { " " (state::badge("paused")) }
                        @if runs.iter().any(|run| run.state == StateName::Dead) { " " span .note { "some died" } }
                    }
                }
            }
        }
    }
}

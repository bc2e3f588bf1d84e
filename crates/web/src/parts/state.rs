//! The state of a job: an icon, a word and a colour.

use maud::{Markup, html};

use domain::job::Job;
use domain::job::life::{State, StateName};
use domain::values::timestamp::Timestamp;

/// The state as people see it: pending is ready, scheduled or blocked.
pub(crate) fn word(job: &Job, now: Timestamp) -> &'static str {
    match &job.life.state {
        State::Pending { blocked_by } if *blocked_by > 0 => "blocked",
        State::Pending { .. } if job.life.due_at > now => "scheduled",
        State::Processing(lease) if lease.paused_at.is_some() => "paused",
        state @ (State::Pending { .. }
        | State::Processing(_)
        | State::Completed { .. }
        | State::Failed
        | State::Dead { .. }
        | State::Cancelled { .. }) => state.name().name(),
    }
}

pub(crate) fn icon(word: &str) -> &'static str {
    match word {
        "scheduled" => "◷",
        "blocked" => "◫",
        "paused" => "‖",
        "processing" => "▶",
        "completed" => "✓",
        "failed" => "↻",
        "dead" => "✕",
        "cancelled" => "⊘",
        _ => "○",
    }
}

pub(crate) fn badge(word: &str) -> Markup {
    html! { span .state { span class={ "icon s-" (word) } aria-hidden="true" { (icon(word)) } " " (word) } }
}

pub(crate) fn of_job(job: &Job, now: Timestamp) -> Markup {
    badge(word(job, now))
}

pub(crate) fn of_name(state: StateName) -> Markup {
    badge(state.name())
}

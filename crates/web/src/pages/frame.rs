//! What surrounds every page: the rail, the problems, the age of the numbers, the zone and the theme.

pub(super) mod assets;
mod keys;
pub(super) mod login;
pub(crate) mod trouble;

use axum::http::StatusCode;
use axum::http::header::COOKIE;
use maud::{DOCTYPE, Markup, html};

use super::view::{Place, Section, View};
use super::visit::Visit;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::server::Server;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use ops::home::location::{StoreAddress, shortened};
use ops::status::Problem as QueueProblem;

use crate::parts::cli;
use crate::parts::number::{counted, grouped};

pub(super) const HTML: &str = "text/html; charset=utf-8";
/// The cookie in which the script keeps the theme that the user chose.
const THEME: &str = "queuectl-theme=";

struct Entry {
    place: Place,
    path: &'static str,
    icon: &'static str,
    name: &'static str,
    /// The key that leads there, after `g`.
    key: &'static str,
}

const RAIL: &[Entry] = &[
    Entry { place: Place::Overview, path: "/", icon: "◧", name: "Overview", key: "o" },
    Entry { place: Place::Jobs, path: "/jobs", icon: "≡", name: "Jobs", key: "j" },
    Entry { place: Place::Dead, path: "/dead", icon: "✕", name: "Dead", key: "d" },
    Entry { place: Place::Queues, path: "/queues", icon: "☰", name: "Queues", key: "q" },
    Entry { place: Place::Workers, path: "/workers", icon: "⚙", name: "Workers", key: "w" },
    Entry { place: Place::Schedules, path: "/schedules", icon: "◷", name: "Schedules", key: "s" },
    Entry { place: Place::Batches, path: "/batches", icon: "▤", name: "Batches", key: "b" },
    Entry { place: Place::Hooks, path: "/hooks", icon: "↪", name: "Hooks", key: "h" },
    Entry { place: Place::Events, path: "/events", icon: "▸", name: "Events", key: "e" },
    Entry { place: Place::Settings, path: "/settings", icon: "⚒", name: "Settings", key: "c" },
    Entry { place: Place::Enqueue, path: "/enqueue", icon: "+", name: "Enqueue", key: "n" },
];

/// The page of what is not there, with a way on.
pub(super) fn missing(call: &Call<'_>, visit: &Visit<'_>, problem: Problem) -> Answer {
    let is_above = |entry: &&Entry| entry.path != "/" && call.parts.route.path.starts_with(entry.path);
    let (place, path, name) = RAIL
        .iter()
        .find(is_above)
        .map_or((Place::Overview, "/", "Overview"), |entry| (entry.place, entry.path, entry.name));
    let list = match place {
        Place::Jobs => "list",
        Place::Dead => "dlq list --group",
        Place::Queues => "queue list",
        Place::Workers => "worker list",
        Place::Schedules => "schedule list",
        Place::Batches => "batch list",
        Place::Hooks => "hook list",
        Place::Events => "events",
        Place::Overview | Place::Settings | Place::Enqueue => "status",
    };
    let content = html! {
        h1 { "Not found" }
        p { a href=(visit.url(path)) { "Go to " (name) } }
        p { "The same on the command line: " (cli::copyable(&cli::typed(list))) }
    };
    let view = View::new("Not found", place).with_still("missing", "Not found", content);
    let page = framed(call, visit, &view, Some(&problem));
    let plain = Answer::from(problem);
    Answer { status: plain.status, ..page }
}

pub(super) fn answer(call: &Call<'_>, visit: &Visit<'_>, view: &View) -> Answer {
    framed(call, visit, view, None)
}

fn framed(call: &Call<'_>, visit: &Visit<'_>, view: &View, problem: Option<&Problem>) -> Answer {
    let token = call.parts.caller.session.and_then(|key| call.server.sessions.token(&key));
    let cookies = call.parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let theme = cookies
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(THEME))
        .filter(|theme| ["light", "dark"].contains(theme));
    let scripts: Vec<&str> = ["page.js", "live.js"].into_iter().chain(view.scripts.iter().copied()).collect();
    let head = head(call.server, &view.title, theme, token.as_deref(), &scripts);
    let options = &call.server.options;
    let (place, kind) = match &options.location.store {
        StoreAddress::Sqlite(_) => (shortened(&options.location.place().display().to_string()), "SQLite"),
        StoreAddress::Postgres(address) => (address.to_string(), "PostgreSQL"),
    };
    let body = html! {
        body data-base=(options.base_path) data-program=(cli::program()) {
            a .skip href="#main" { "Skip to the content" }
            (rail(visit, view.place).markup())
            header #top {
                span .where title="the store of this queue" { (printable(&place)) " · " (kind) }
                span #age data-now=(visit.now) { "as of " (visit.clock().time(visit.now)) " UTC" }
                span #age-said .hidden role="status" {}
                input #zone list="zones" placeholder="UTC" aria-label="Time zone" title="Show times in another zone" autocomplete="off";
                button #palette type="button" title="Go to a page or a job" { span { "Ctrl K" } span .hidden { ": go to a page or a job" } }
                button #theme type="button" title="Light or dark" aria-label="Light or dark" { "◐" }
                button #help type="button" title="Keys (?)" aria-label="Keys" { "?" }
            }
            (problems(visit).markup())
            (notice(problem).markup())
            main #main tabindex="-1" { @for section in &view.sections { (section.markup()) } }
            (keys::list())
            dialog #dialog aria-labelledby="dialog-title" {}
            div #toast role="status" {}
        }
    };
    page(StatusCode::OK, &head, theme, &body)
}

/// The sections around every page that change.
pub(super) fn live_sections(visit: &Visit<'_>, place: Place) -> [Section; 3] {
    [rail(visit, place), problems(visit), notice(None)]
}

/// A page without data: the login, or a problem.
pub(super) fn bare(server: &Server, title: &str, script: Option<&str>, content: &Markup) -> Answer {
    let head = head(server, title, None, None, script.as_slice());
    let body = html! {
        body .bare data-base=(server.options.base_path) {
            main #main { h1 { "queuectl" } (content) }
        }
    };
    page(StatusCode::OK, &head, None, &body)
}

fn page(status: StatusCode, head: &Markup, theme: Option<&str>, body: &Markup) -> Answer {
    let page = html! { (DOCTYPE) html lang="en" data-theme=[theme] { (head) (body) } };
    Answer::text(status, HTML, page.into_string())
}

fn head(server: &Server, title: &str, theme: Option<&str>, token: Option<&str>, scripts: &[&str]) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content=(theme.unwrap_or("light dark"));
            @if let Some(token) = token { meta name="session-token" content=(token); }
            title { (printable(title)) " · queuectl" }
            link rel="icon" href=(assets::url(server, "icon.svg"));
            link rel="stylesheet" href=(assets::url(server, "queuectl.css"));
            @for script in scripts { script type="module" src=(assets::url(server, script)) {} }
        }
    }
}

fn rail(visit: &Visit<'_>, place: Place) -> Section {
    let status = visit.status().ok();
    let dead = status.and_then(|status| status.jobs.get(&StateName::Dead)).copied().unwrap_or(0);
    let workers = status.map_or(0, |status| status.workers.len() as u64);
    let count = |place: Place| match place {
        Place::Dead => Some(dead).filter(|count| *count > 0),
        Place::Workers => Some(workers),
        Place::Overview
        | Place::Jobs
        | Place::Queues
        | Place::Schedules
        | Place::Batches
        | Place::Hooks
        | Place::Events
        | Place::Settings
        | Place::Enqueue => None,
    };
    let content = html! {
        nav aria-label="Pages" {
            a .brand href=(visit.url("/")) { "queuectl" }
            @for entry in RAIL {
                a href=(visit.url(entry.path)) data-place=(entry.key) aria-current=[(entry.place == place).then_some("page")] {
                    span .icon aria-hidden="true" { (entry.icon) }
                    span .name { (entry.name) }
                    @if let Some(count) = count(entry.place) { span .count { (grouped(count)) } }
                }
            }
            // A narrow window has room for the first pages alone. The script opens the list of all.
            button #more type="button" { "more" }
        }
    };
    Section { id: "rail", label: "Rail", content }
}

fn problems(visit: &Visit<'_>) -> Section {
    let content = match visit.status() {
        Ok(status) if status.problems.is_empty() => html! {},
        Ok(status) => html! {
            details .problems {
                summary {
                    @if let Some(first) = status.problems.first() { (first_problem(visit, first)) }
                    @if status.problems.len() > 1 { span .others { (counted(status.problems.len() as u64 - 1, "other problem", "other problems")) } }
                    span .fix { "how to fix" }
                }
                ul { @for problem in &status.problems { li { (queue_problem(visit, problem)) } } }
            }
        },
        Err(problem) => trouble(&problem),
    };
    Section { id: "problems", label: "Problems", content }
}

/// The problem without its remedy.
fn first_problem(visit: &Visit<'_>, problem: &QueueProblem) -> Markup {
    let what = problem.message.split_once("; ").map_or(problem.message.as_str(), |(what, _)| what);
    html! { span .mark aria-hidden="true" { "!" } " " span .what { (cli::with_times(visit.now, what)) } }
}

fn queue_problem(visit: &Visit<'_>, problem: &QueueProblem) -> Markup {
    let (what, how) = match problem.message.split_once("; ") {
        Some((what, how)) => (what, Some(how)),
        None => (problem.message.as_str(), None),
    };
    html! {
        span .mark aria-hidden="true" { "!" } " "
        span .what { (cli::with_times(visit.now, what)) }
        @if let Some(how) = how { " " span .how { (cli::sentence(visit.now, how)) } }
    }
}

/// What a visitor of a page should know that cannot be shown any more.
pub(super) fn notice(problem: Option<&Problem>) -> Section {
    let content = problem.map_or_else(|| html! {}, trouble);
    Section { id: "notice", label: "Notice", content }
}

fn trouble(problem: &Problem) -> Markup {
    html! {
        p .problem role="alert" {
            (printable(problem.detail()))
            @if let Some(hint) = problem.hint() { ". " (printable(hint)) }
        }
    }
}

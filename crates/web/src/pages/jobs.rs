//! The jobs that match: the filter and the page are in the URL.

use std::time::{Duration, Instant};

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::job_row::Column;
use crate::parts::number::{counted, grouped};
use crate::parts::{cli, job_fields, job_row, state, time};
use crate::problem::Problem;
use crate::request::filter::{FILTER, FilterRequest};
use crate::request::query::{NUMBER, Param, TEXT, encode};
use crate::routes::jobs::SEARCH_BUDGET;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use domain::text::nearest::suggestion;
use domain::text::shell::quote_words;
use domain::values::span::format_span;
use domain::values::timestamp::Timestamp;
use ops::jobs::bulk::BulkChange;
use ops::jobs::change::Verb;
use ops::jobs::list::{in_order_of, parse_order};
use store::{EndReason, JobCount, PageStart, Phase, Search, SearchResult};

pub(super) const PARAMS: &[Param] = &[
    Param::new("order", TEXT, "newest first unless given"),
    Param::new("after", TEXT, "The cursor of the page before"),
    Param::new("limit", NUMBER, "Rows; 50 unless given, at most 200"),
    Param::new("cols", TEXT, "Columns, with commas"),
    Param::new("tz", TEXT, "The zone in which times are shown"),
];

const DEFAULT_ROWS: usize = 50;
const MAX_ROWS: usize = 200;
/// The jobs of the other tabs are counted for at most this long.
const TABS_BUDGET: Duration = Duration::from_millis(50);
/// The states as people see them, in the order of a job's life.
const TABS: [Phase; 8] = [
    Phase::State(StateName::Pending),
    Phase::Scheduled,
    Phase::Blocked,
    Phase::State(StateName::Processing),
    Phase::State(StateName::Completed),
    Phase::State(StateName::Failed),
    Phase::State(StateName::Dead),
    Phase::State(StateName::Cancelled),
];
/// A field suggests at most this many names.
const MAX_SUGGESTED: usize = 100;
const ORDERS: [&str; 6] = ["newest", "oldest", "claim", "soonest", "longest_running", "last_failed"];
/// What a long search may be restricted to.
const NEWEST: Duration = Duration::from_secs(24 * 3_600);

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let query = visit.query;
    let request = FilterRequest::from_query(query)?;
    let filter = request.resolve(visit.store)?;
    let invalid = |error: ops::jobs::list::OrderError| Problem::invalid(error.to_string());
    let order = query.get("order").map(parse_order).transpose().map_err(invalid)?.unwrap_or_default();
    let after: Option<PageStart> = query.read("after")?;
    let limit = query.bounded("limit", DEFAULT_ROWS, MAX_ROWS)?;
    let columns = columns(query.get("cols"))?;
    let count = visit.store.count(&filter, Some(SEARCH_BUDGET))?;
    let filter = in_order_of(&filter, order).map_err(invalid)?;
    let search = Search { filter, order, limit, after, budget: Some(SEARCH_BUDGET) };
    let began = Instant::now();
    let found = visit.store.search(&search)?;
    let took = began.elapsed();
    let tabs = count_tabs(visit, &request, &count)?;
    let view =
        View::new("Jobs", Place::Jobs).with("filter", "Filter", filters(visit, &count, &tabs, &columns)?);
    let view = view.with("jobs", "Jobs", table(visit, &found, &columns, took)?);
    if !visit.may_operate() {
        return Ok(view);
    }
    Ok(view.with_still("chosen", "Chosen jobs", chosen(visit)).with_script("choose.js"))
}

/// The numbers of the tabs: the jobs that match the other filters, by state.
fn count_tabs(visit: &Visit<'_>, request: &FilterRequest, count: &JobCount) -> Result<JobCount, Problem> {
    if request.state.is_none() {
        return Ok(count.clone());
    }
    let others = FilterRequest { state: None, ..request.clone() };
    Ok(visit.store.count(&others.resolve(visit.store)?, Some(TABS_BUDGET))?)
}

/// What can be done with the chosen jobs. The script shows it when there are any.
fn chosen(visit: &Visit<'_>) -> Markup {
    // The states that a verb is for, if the filter names none.
    let states = |is_for: &dyn Fn(StateName) -> bool| {
        let names: Vec<&str> =
            StateName::ALL.into_iter().filter(|state| is_for(*state)).map(StateName::name).collect();
        names.join(",")
    };
    let of = |verb: Verb| {
        let phases = BulkChange::from(verb).default_phases();
        states(&|state| phases.contains(&Phase::State(state)))
    };
    let editable = states(&|state| !matches!(state, StateName::Processing | StateName::Completed));
    html! {
        span role="status" {}
        button type="button" data-do="all" {}
        span .apart {}
        button type="button" data-do="retry" data-key="r" data-states=(of(Verb::Retry)) { "retry" }
        button type="button" data-do="canary" { "retry one first" }
        @if visit.may_administer() {
            button type="button" data-do="edit" data-key="e" data-states=(editable) { "edit" }
            template #edit-many { div .wide { (job_fields::of_many()) } (cli::block("cli")) }
        }
        button type="button" data-do="cancel" data-key="c" data-states=(of(Verb::CANCEL)) { "cancel" }
        button .danger type="button" data-do="remove" data-states=(of(Verb::Remove)) { "remove" }
        button type="button" data-do="none" data-key="u" { "choose none" }
    }
}

fn columns(typed: Option<&str>) -> Result<Vec<Column>, Problem> {
    let Some(typed) = typed else {
        return Ok(Column::plain());
    };
    let names: Vec<&str> = Column::all().map(Column::name).collect();
    let parse = |name: &str| {
        Column::from_name(name).ok_or_else(|| {
            let hint = suggestion(name, "columns", &names);
            Problem::invalid(format!("unknown column `{name}`")).with_hint(hint)
        })
    };
    typed.split(',').map(str::trim).map(parse).collect()
}

/// The URL with some parameters changed; a changed filter begins on the first page.
fn url_with(visit: &Visit<'_>, changes: &[(&str, &str)]) -> String {
    let is_kept = |name: &str| name != "after" && !changes.iter().any(|(changed, _)| *changed == name);
    let kept = visit.query.pairs().filter(|(name, _)| is_kept(name));
    let all = kept.chain(changes.iter().copied().filter(|(_, value)| !value.is_empty()));
    let pairs: Vec<String> = all.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if pairs.is_empty() { visit.url("/jobs") } else { visit.url(&format!("/jobs?{}", pairs.join("&"))) }
}

fn filters(
    visit: &Visit<'_>,
    count: &JobCount,
    tabs: &JobCount,
    columns: &[Column],
) -> Result<Markup, Problem> {
    let query = visit.query;
    let chosen = query.get("state");
    let flags = flags(visit)?;
    Ok(html! {
        div .bar {
            h1 { "Jobs" }
            span #count data-count=(count.count) data-exact=(count.is_exact) data-flags=(quote_words(&flags)) data-filter=[FilterRequest::from_query(query)?.to_json()] { (found(count)) }
            (order_choice(visit))
            (column_choice(visit, columns))
            (cli::copyable(&command(visit, &flags)))
        }
        nav .states aria-label="State" {
            a href=(url_with(visit, &[("state", "")])) aria-current=[chosen.is_none().then_some("true")] { "all" }
            @for phase in TABS {
                @let name = phase.name();
                a href=(url_with(visit, &[("state", name)])) aria-current=[(chosen == Some(name)).then_some("true")] {
                    (state::badge(name)) @if let Some(number) = number_of_tab(phase, tabs) { " " span .count { (number) } }
                }
            }
        }
        div .chips {
            @for (name, value) in query.pairs().filter(|(name, _)| FILTER.iter().any(|param| param.name == *name)) {
                a .chip href=(url_with(visit, &[(name, "")])) title="Remove this filter" {
                    (name) ":" (printable(value)) span aria-hidden="true" { " ×" } span .hidden { " – remove this filter" }
                }
            }
            (form(visit))
        }
    })
}

fn found(count: &JobCount) -> String {
    match (count.is_exact, count.count) {
        (true, count) => counted(count, "job", "jobs"),
        (false, 0) => "none found yet".to_owned(),
        (false, count) => format!("at least {}", counted(count, "job", "jobs")),
    }
}

/// `None` if no job was found in the time for it. Scheduled and blocked jobs are among the pending ones, and are not counted
/// on their own.
fn number_of_tab(phase: Phase, tabs: &JobCount) -> Option<String> {
    let state = match phase {
        Phase::State(state) => state,
        Phase::Ready | Phase::Scheduled | Phase::Blocked | Phase::Paused => return None,
    };
    let count = tabs.by_state.get(&state).copied().unwrap_or(0);
    match (tabs.is_exact, count) {
        (true, count) => Some(grouped(count)),
        (false, 0) => None,
        (false, count) => Some(format!("≥{}", grouped(count))),
    }
}

/// All filters, for a browser without scripts too.
fn form(visit: &Visit<'_>) -> Markup {
    let query = visit.query;
    html! {
        details .more-filters {
            summary { "+ filter" }
            form method="get" action=(visit.url("/jobs")) {
                @for param in FILTER {
                    label { span { (param.name.replace('_', " ")) } input name=(param.name) value=[query.get(param.name)] title=(param.about) placeholder=(example(param.name)) list=[known(visit, param.name).map(|_| format!("known-{}", param.name))] autocomplete="off"; }
                }
                @for name in ["order", "cols", "tz"] {
                    @if let Some(value) = query.get(name) { input type="hidden" name=(name) value=(value); }
                }
                button type="submit" { "Show" }
                @for param in FILTER {
                    @if let Some(names) = known(visit, param.name) {
                        datalist id={ "known-" (param.name) } { @for name in &names { option value=(printable(name)) {} } }
                    }
                }
            }
        }
    }
}

/// An example of what can be typed.
fn example(name: &str) -> &'static str {
    match name {
        "state" => "dead,failed",
        "like" => "*smtp*",
        "exit_code" => "75",
        "since" | "until" => "2026-01-31T09:30:00Z",
        "older_than" => "7d",
        "id" => "report-",
        _ => "",
    }
}

/// The names that a field suggests.
fn known(visit: &Visit<'_>, name: &str) -> Option<Vec<String>> {
    match name {
        "state" => Some(Phase::ALL.map(|phase| phase.name().to_owned()).to_vec()),
        "reason" => Some(EndReason::all().map(|reason| reason.name().to_owned()).collect()),
        "queue" => {
            let status = visit.status().ok()?;
            Some(status.queues.iter().take(MAX_SUGGESTED).map(|queue| queue.name.to_string()).collect())
        }
        _ => None,
    }
}

/// The orders that an index has.
fn order_choice(visit: &Visit<'_>) -> Markup {
    let chosen = visit.query.get("order").unwrap_or(ORDERS[0]).replace('-', "_");
    html! {
        details .menu {
            summary { (chosen.replace('_', " ")) " first" }
            ul {
                @for order in ORDERS {
                    @let value = if order == ORDERS[0] { "" } else { order };
                    li { a href=(url_with(visit, &[("order", value)])) aria-current=[(chosen == order).then_some("true")] { (order.replace('_', " ")) } }
                }
            }
        }
    }
}

/// Each column as a link that adds or removes it.
fn column_choice(visit: &Visit<'_>, columns: &[Column]) -> Markup {
    let has = |name: &str| columns.iter().any(|column| column.name() == name);
    let toggled = |name: &str| {
        let names: Vec<&str> = Column::all()
            .map(Column::name)
            .filter(|known| if *known == name { !has(name) } else { has(known) })
            .collect();
        url_with(visit, &[("cols", &names.join(","))])
    };
    html! {
        details .menu {
            summary { "columns" }
            ul {
                @for column in Column::all() {
                    @let name = column.name();
                    li { a href=(toggled(name)) aria-current=[has(name).then_some("true")] { (name.replace('_', " ")) } }
                }
                @if visit.query.get("cols").is_some() { li { a href=(url_with(visit, &[("cols", "")])) { "as before" } } }
            }
        }
    }
}

/// The flag of the command line for each filter; `until` has none and becomes an age.
const FLAGS: [(&str, &str); 13] = [
    ("state", "--state"),
    ("queue", "--queue"),
    ("tag", "--tag"),
    ("batch", "--batch"),
    ("schedule", "--schedule"),
    ("worker", "--worker"),
    ("id", "--id-prefix"),
    ("cause", "--cause"),
    ("reason", "--reason"),
    ("exit_code", "--exit-code"),
    ("since", "--changed-after"),
    ("like", "--command-like"),
    ("older_than", "--older-than"),
];

/// The flags that select the same jobs.
fn flags(visit: &Visit<'_>) -> Result<Vec<String>, Problem> {
    let mut words = Vec::new();
    for (name, flag) in FLAGS {
        if let Some(value) = visit.query.get(name) {
            words.extend([flag.to_owned(), value.to_owned()]);
        }
    }
    let until: Option<Timestamp> = visit.query.read("until")?;
    if let (Some(until), None) = (until, visit.query.get("older_than")) {
        let seconds = visit.now.since(until).as_secs();
        words.extend(["--older-than".to_owned(), format_span(Duration::from_secs(seconds))]);
    }
    Ok(words)
}

/// The command that lists the same jobs.
fn command(visit: &Visit<'_>, flags: &[String]) -> String {
    let mut words = vec!["list"];
    words.extend(flags.iter().map(String::as_str));
    let order = visit.query.get("order").map(|order| order.replace('_', "-"));
    if let Some(order) = &order {
        words.extend(["--sort", order]);
    }
    cli::line(&words)
}

fn table(
    visit: &Visit<'_>,
    found: &SearchResult,
    columns: &[Column],
    took: Duration,
) -> Result<Markup, Problem> {
    let SearchResult { jobs, searched, is_complete, next } = found;
    let with_choice = visit.may_operate();
    let total: u64 = visit.status()?.jobs.values().sum();
    Ok(html! {
        @if jobs.is_empty() && *is_complete {
            (nothing(visit, total))
        } @else if !jobs.is_empty() {
            div .scroll {
                table .rows.jobs {
                    (job_row::head_of(with_choice, columns))
                    tbody { @for job in jobs { (job_row::row_of(visit, job, with_choice, columns)) } }
                }
            }
        }
        p .pager {
            @if !is_complete {
                span title={ "in " (time::span(took)) } { "searched " (grouped(*searched)) " of " (grouped(total)) @if jobs.is_empty() { " · none yet" } }
            }
            @if visit.query.get("after").is_some() { a href=(url_with(visit, &[])) { "first page" } }
            @if let Some(next) = next {
                @let cursor = next.to_string();
                a rel="next" href=(url_with(visit, &[("after", &cursor)])) { @if *is_complete { "next page" } @else { "continue" } }
            }
            @if !is_complete && visit.query.get("since").is_none() {
                a href=(url_with(visit, &[("since", &visit.now.saturating_sub(NEWEST).to_string())])) { "only the newest day" }
            }
        }
    })
}

fn nothing(visit: &Visit<'_>, total: u64) -> Markup {
    let is_filtered = visit.query.pairs().next().is_some();
    html! {
        div .empty {
            @if total == 0 {
                p { "No jobs yet. This enqueues one:" }
                p { (cli::copyable(&cli::typed("enqueue -- echo hello"))) }
            } @else if is_filtered {
                p { "No job matches." }
                p { a href=(visit.url("/jobs")) { "Show all " (counted(total, "job", "jobs")) } }
            }
        }
    }
}

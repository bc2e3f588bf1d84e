//! The jobs that match: the filter and the page are in the URL.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::number::{counted, grouped};
use crate::parts::{cli, job_row, state};
use crate::problem::Problem;
use crate::request::filter::{FILTER, FilterRequest};
use crate::request::query::{NUMBER, Param, TEXT, encode};
use crate::routes::jobs::SEARCH_BUDGET;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use ops::jobs::list::{in_order_of, parse_order};
use store::{JobCount, PageStart, Search, SearchResult};

pub(super) const PARAMS: &[Param] = &[
    Param::new("order", TEXT, "newest first unless given"),
    Param::new("after", TEXT, "The cursor of the page before"),
    Param::new("limit", NUMBER, "Rows; 50 unless given, at most 200"),
];

const DEFAULT_ROWS: usize = 50;
const MAX_ROWS: usize = 200;
const ORDERS: [&str; 6] = ["newest", "oldest", "claim", "soonest", "longest_running", "last_failed"];

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let query = visit.query;
    let request = FilterRequest::from_query(query)?;
    let filter = request.resolve(visit.store)?;
    let invalid = |error: ops::jobs::list::OrderError| Problem::invalid(error.to_string());
    let order = query.get("order").map(parse_order).transpose().map_err(invalid)?.unwrap_or_default();
    let after: Option<PageStart> = query.read("after")?;
    let limit = query.bounded("limit", DEFAULT_ROWS, MAX_ROWS)?.max(1);
    let count = visit.store.count(&filter, Some(SEARCH_BUDGET))?;
    let filter = in_order_of(&filter, order).map_err(invalid)?;
    let search = Search { filter, order, limit, after, budget: Some(SEARCH_BUDGET) };
    let found = visit.store.search(&search)?;
    let view = View::new("Jobs", Place::Jobs).with("filter", "Filter", filters(visit, &count)?);
    Ok(view.with("jobs", "Jobs", table(visit, &found)?))
}

/// The URL with some parameters changed; a changed filter begins on the first page.
fn url_with(visit: &Visit<'_>, changes: &[(&str, &str)]) -> String {
    let is_kept = |name: &str| name != "after" && !changes.iter().any(|(changed, _)| *changed == name);
    let kept = visit.query.pairs().filter(|(name, _)| is_kept(name));
    let all = kept.chain(changes.iter().copied().filter(|(_, value)| !value.is_empty()));
    let pairs: Vec<String> = all.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if pairs.is_empty() { visit.url("/jobs") } else { visit.url(&format!("/jobs?{}", pairs.join("&"))) }
}

fn filters(visit: &Visit<'_>, count: &JobCount) -> Result<Markup, Problem> {
    let query = visit.query;
    let chosen = query.get("state");
    let status = visit.status()?;
    let at_least = if count.is_exact { "" } else { "at least " };
    Ok(html! {
        div .bar {
            h1 { "Jobs" }
            span #count data-count=(count.count) data-exact=(count.is_exact) { (at_least) (counted(count.count, "job", "jobs")) }
            (command(visit))
        }
        nav .states aria-label="State" {
            a href=(url_with(visit, &[("state", "")])) aria-current=[chosen.is_none().then_some("true")] { "all" }
            @for name in StateName::ALL {
                a href=(url_with(visit, &[("state", name.name())])) aria-current=[(chosen == Some(name.name())).then_some("true")] {
                    (state::of_name(name)) " " span .count { (grouped(status.jobs.get(&name).copied().unwrap_or(0))) }
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

/// All filters, for a browser without scripts too.
fn form(visit: &Visit<'_>) -> Markup {
    let query = visit.query;
    html! {
        details .more-filters {
            summary { "+ filter" }
            form method="get" action=(visit.url("/jobs")) {
                @for param in FILTER {
                    label { span { (param.name.replace('_', " ")) } input name=(param.name) value=[query.get(param.name)] title=(param.about); }
                }
                label {
                    span { "order" }
                    select name="order" {
                        option value="" { "newest" }
                        @for order in &ORDERS[1..] {
                            option value=(order) selected[query.get("order") == Some(*order)] { (order.replace('_', " ")) }
                        }
                    }
                }
                button type="submit" { "Show" }
            }
        }
    }
}

/// The flag of `list` for each filter that has one.
const FLAGS: [(&str, &str); 6] = [
    ("state", "--state"),
    ("queue", "--queue"),
    ("tag", "--tag"),
    ("batch", "--batch"),
    ("older_than", "--older-than"),
    ("like", "--command-like"),
];

/// The command that lists the same jobs, or the call of the API if the command line lacks a filter.
fn command(visit: &Visit<'_>) -> Markup {
    let filters: Vec<(&str, &str)> =
        visit.query.pairs().filter(|(name, _)| FILTER.iter().any(|param| param.name == *name)).collect();
    let flag = |name: &str| FLAGS.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag);
    let mut words = vec!["list"];
    for (name, value) in &filters {
        let Some(flag) = flag(name) else {
            let pairs: Vec<String> =
                filters.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
            let path = visit.url(&format!("/api/v1/jobs?{}", pairs.join("&")));
            return html! { span .cli { code { "GET " (path) } } };
        };
        words.extend([flag, value]);
    }
    if let Some(order) = visit.query.get("order") {
        words.extend(["--sort", order]);
    }
    cli::copyable(&cli::line(&words))
}

fn table(visit: &Visit<'_>, found: &SearchResult) -> Result<Markup, Problem> {
    let SearchResult { jobs, searched, is_complete, next } = found;
    let with_choice = visit.may_operate();
    let total: u64 = visit.status()?.jobs.values().sum();
    Ok(html! {
        @if jobs.is_empty() && *is_complete {
            (nothing(visit, total))
        } @else if !jobs.is_empty() {
            div .scroll {
                table .rows.jobs {
                    (job_row::head(with_choice))
                    tbody { @for job in jobs { (job_row::row(visit, job, with_choice)) } }
                }
            }
        }
        p .pager {
            @if !is_complete {
                span { "searched " (grouped(*searched)) " of " (grouped(total)) @if jobs.is_empty() { " · none yet" } }
            }
            @if visit.query.get("after").is_some() { a href=(url_with(visit, &[])) { "first page" } }
            @if let Some(next) = next {
                @let cursor = next.to_string();
                a rel="next" href=(url_with(visit, &[("after", &cursor)])) { @if *is_complete { "next page" } @else { "go on" } }
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
                p { (cli::copyable("queuectl enqueue -- echo hello")) }
            } @else if is_filtered {
                p { "No job matches." }
                p { a href=(visit.url("/jobs")) { "Show all " (counted(total, "job", "jobs")) } }
            }
        }
    }
}

//! `GET /jobs`

use axum::http::HeaderName;

use super::SEARCH_BUDGET;
use crate::doors::limits::Place;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::filter::FilterRequest;
use crate::request::query::{NUMBER, Param, TEXT};
use domain::job::json::JobField;
use ops::jobs::columns::{Fields, parse_column};
use ops::jobs::list::{OrderError, in_order_of, parse_order};
use ops::json::JobJson;
use store::{PageStart, Search, SearchResult};

/// How far a search has looked, and whether its time was enough.
const SEARCHED: HeaderName = HeaderName::from_static("queuectl-searched");
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

pub(super) const PAGE: &[Param] = &[
    Param::new(
        "order",
        r#"{"enum":["newest","oldest","claim","soonest","longest_running","last_failed"]}"#,
        "newest first unless given; some orders have jobs of one state only",
    ),
    Param::new("limit", NUMBER, "At most this many; 100 unless given, at most 1,000"),
    Param::new("after", TEXT, "The cursor of the page before"),
    Param::new("columns", TEXT, "Only these fields, with commas"),
];

pub(super) fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    let (store, query) = (call.store()?, call.query());
    let request = FilterRequest::from_query(query)?;
    let _place = if request.is_search() { Some(enter_search(call)?) } else { None };
    let limit = query.bounded("limit", DEFAULT_LIMIT, MAX_LIMIT)?;
    let columns = query.get("columns").map(parse_columns).transpose()?;
    let order =
        query.get("order").map(parse_order).transpose().map_err(|error| invalid(&error))?.unwrap_or_default();
    let filter = in_order_of(&request.resolve(store)?, order).map_err(|error| invalid(&error))?;
    let after: Option<PageStart> = query.read("after")?;
    let search = Search { filter, order, limit, after, budget: Some(SEARCH_BUDGET) };
    let SearchResult { jobs, searched, is_complete, next } = store.search(&search)?;
    let answer = match columns {
        Some(columns) => Answer::json(&jobs.iter().map(|job| Fields::of(job, &columns)).collect::<Vec<_>>()),
        None => Answer::json(&jobs.iter().map(JobJson::from).collect::<Vec<_>>()),
    }?;
    let answer = answer.with(SEARCHED, &format!("rows={searched}; complete=?{}", u8::from(is_complete)));
    Ok(match next {
        Some(next) => answer.with_next(&next_page(call, &next)),
        None => answer,
    })
}

fn next_page(call: &Call<'_>, next: &PageStart) -> String {
    format!("{}?{}", call.path("/jobs"), call.query().with("after", &next.to_string()))
}

fn invalid(error: &OrderError) -> Problem {
    Problem::invalid(error.to_string())
}

/// A place for a search, which may take long.
pub(crate) fn enter_search(call: &Call<'_>) -> Result<Place, Problem> {
    let entered = call.server.searches.enter(&call.parts.caller.key());
    entered.ok_or_else(|| Problem::too_many("your other searches have to end first", 1))
}

fn parse_columns(text: &str) -> Result<Vec<&'static JobField>, Problem> {
    let parse = |typed: &str| parse_column(typed.trim()).map_err(|error| Problem::invalid(error.to_string()));
    text.split(',').map(parse).collect()
}

//! Streams of server-sent events: the state of what a client watches, and the output of a job.

pub(crate) mod client;
pub(crate) mod frame;
pub(crate) mod hub;
pub(crate) mod log;
pub(crate) mod topic;

use std::sync::Arc;

use self::topic::Topic;
use crate::doors::limits::Place;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Parts;
use crate::request::pieces::pieces;
use crate::request::query::{Param, TEXT};
use crate::routes::table::Route;
use crate::server::Server;

pub(crate) const ROUTES: &[Route] = &[Route::stream("/api/v1/stream", Scope::Read, start)
    .about("What changes, as it changes: first the whole state of each topic, then what differs.")
    .takes(&[&[Param::new(
        "topics",
        TEXT,
        "With commas: status, history, events, action:ID, job:ID, list:QUERY (a query of /jobs, percent-encoded)",
    )]])
    .fails(&[422, 429])];

pub(crate) const EVENTS: &str = "text/event-stream";
/// Parts that a slow client may be behind; one that is further behind is dropped.
pub(crate) const MAX_BEHIND: usize = 16;
/// Topics of one stream.
pub(crate) const MAX_TOPICS: usize = 16;

#[expect(clippy::needless_pass_by_value, reason = "the handler of another stream keeps the parts")]
fn start(server: &Arc<Server>, parts: Parts) -> Result<Answer, Problem> {
    let topics = parts.query.get("topics").unwrap_or("status");
    let topics: Vec<Topic> = topics.split(',').map(|text| text.trim().parse()).collect::<Result<_, _>>()?;
    if topics.len() > MAX_TOPICS {
        return Err(Problem::invalid(format!("a stream has at most {MAX_TOPICS} topics")));
    }
    // What only an operator may see must not be watched by a reader.
    if topics.iter().any(Topic::needs_operate) {
        parts.caller.require(Scope::Operate)?;
    }
    let place = enter(server)?;
    let (sender, body) = pieces(MAX_BEHIND);
    server.hub.join(server, topics, sender, place);
    Ok(Answer::pieces(EVENTS, body))
}

/// A place for a stream.
pub(crate) fn enter(server: &Server) -> Result<Place, Problem> {
    server.streams.enter().ok_or_else(|| {
        Problem::too_many("all streams are in use", 5)
            .with_hint("`queuectl dashboard --max-streams N` allows more")
    })
}

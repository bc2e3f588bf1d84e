//! The lines of an attempt for the script of the log: as they are printed, or a window on them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use maud::{Markup, html};
use serde_json::json;

use super::lines::{self, Lines, Wanted, Window};
use crate::pages::frame;
use crate::pages::visit::Visit;
use crate::parts::log_lines::{self, LogRow};
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::{Call, Parts};
use crate::request::pieces::pieces;
use crate::request::query::{NUMBER, Param, TEXT, encode};
use crate::routes::jobs::enter_search;
use crate::routes::logs::parse_stream;
use crate::server::{Server, wall_now};
use crate::stream::client::Client;
use crate::stream::{EVENTS, enter, frame as message};
use domain::job::{Attempt, JobRecord};
use domain::log as output;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::error::chain;
use ops::jobs::handle::Handle;
use ops::jobs::logs::choose;
use ops::jobs::logs::follow::{FollowEvent, Follower};

pub(in crate::pages) const PARAMS: &[Param] = &[
    Param::new("job", TEXT, "The id of the job"),
    Param::new("attempt", NUMBER, "Its attempt"),
    Param::new("stream", TEXT, "Only this stream: stdout or stderr"),
    Param::new("line", NUMBER, "From this line on"),
    Param::new("row", NUMBER, "The same, counting only the lines of the stream"),
    Param::new("q", TEXT, "Mark lines with this text, and begin with the first"),
];

/// While a command prints without a pause, rows are sent this often.
const SEND_INTERVAL: Duration = Duration::from_millis(100);
/// Parts that wait for a slow client. The follower waits with them.
const BUFFER: usize = 4;

/// The page of a job with the beginning of a query, which links to lines extend.
pub(super) fn line_url(server: &Server, id: &JobId, attempt: u32) -> String {
    server.options.base_path.join(&format!("/jobs/{}/log?attempt={attempt}&", encode(id.as_str())))
}

/// The list of rows, with what its script has to know of it.
pub(super) fn list(
    server: &Server,
    id: &JobId,
    attempt: &Attempt,
    window: &Window,
    now: Timestamp,
) -> Markup {
    let hits: Vec<String> = window.hits.iter().map(u64::to_string).collect();
    html! {
        ol .log tabindex="0" aria-label="Output" data-job=(id) data-attempt=(attempt.number)
            data-lines=(window.lines) data-rows=(window.shown) data-first=(window.first) data-running[attempt.ending.is_none()] data-hits=(hits.join(",")) {
            (log_lines::items(now, &window.rows, &line_url(server, id, attempt.number)))
        }
    }
}

fn record(call: &Call<'_>) -> Result<JobRecord, Problem> {
    let typed = call.query().get("job").unwrap_or_default();
    let bad = |source| OpError::BadName { what: "id", typed: typed.to_owned(), source };
    let _: Handle = typed.parse().map_err(bad)?;
    let id: JobId = typed.parse().map_err(bad)?;
    call.store()?.prepare_logs(&call.server.options.location.home.join(output::FOLDER))?;
    Ok(call.store()?.record(&id)?.ok_or(OpError::NoSuchJob(id))?)
}

fn attempt<'r>(call: &Call<'_>, record: &'r JobRecord) -> Result<&'r Attempt, Problem> {
    let home = &call.server.options.location.home;
    let found = choose(record, home, call.query().read("attempt")?)?;
    found.ok_or_else(|| Problem::not_found(format!("job `{}` has not run yet", record.job.id)))
}

/// A window, as the list of a page.
pub(in crate::pages) fn rows(call: &Call<'_>) -> Result<Answer, Problem> {
    let (record, query) = (record(call)?, call.query());
    let attempt = attempt(call, &record)?;
    let wanted = Wanted {
        only: parse_stream(query.get("stream"))?,
        text: query.get("q").map(str::to_owned),
        from: query.read("line")?,
        row: query.read("row")?,
        with_hits: false,
    };
    let _place = wanted.lists_hits().then(|| enter_search(call)).transpose()?;
    let window = lines::read(&Visit::of_call(call)?, &record, attempt, wanted)?;
    let list = list(call.server, &record.job.id, attempt, &window, wall_now());
    Ok(Answer::text(StatusCode::OK, frame::HTML, list.into_string()))
}

pub(in crate::pages) fn start(server: &Arc<Server>, parts: Parts) -> Result<Answer, Problem> {
    let place = enter(server)?;
    let (sender, body) = pieces(BUFFER);
    let server = Arc::clone(server);
    tokio::task::spawn_blocking(move || {
        let mut client = Client::new(sender, place);
        if let Err(problem) = follow(&server, &parts, &mut client) {
            client.send(message::event("refused", &json!({ "detail": problem.line() })));
        }
    });
    Ok(Answer::pieces(EVENTS, body))
}

fn follow(server: &Arc<Server>, parts: &Parts, client: &mut Client) -> Result<(), Problem> {
    let call = Call::new(server, parts);
    let record = record(&call)?;
    let attempt = attempt(&call, &record)?.clone();
    let wanted = Wanted { only: parse_stream(parts.query.get("stream"))?, ..Wanted::default() };
    let mut sent = Sent {
        url: line_url(server, &record.job.id, attempt.number),
        lines: Lines::new(wanted, attempt.started_at).after(parts.query.read("line")?.unwrap_or(0)),
    };
    // The store of a request is needed by others.
    drop(call);
    let store = server.pool.open()?;
    let home = server.options.location.home.clone();
    let mut follower = Follower::new(store.as_ref(), home, record.job.id, attempt.number);
    let stopping = server.stopping();
    while client.is_there() {
        if stopping.is_over() {
            client.send(message::bye("the server is being stopped"));
            return Ok(());
        }
        let events = follower.poll()?;
        let is_quiet = events.is_empty();
        for event in &events {
            if sent.lines.is_over(event, attempt.number) {
                client.send(sent.message(true));
                return Ok(());
            }
            if let FollowEvent::Unreadable(error) = event {
                client.send(message::event("unreadable", &json!({ "detail": chain(error) })));
            }
        }
        let is_due = is_quiet || client.quiet_for() >= SEND_INTERVAL;
        if is_due && sent.lines.has_changed() {
            client.send(sent.message(false));
        }
        if is_quiet {
            std::thread::sleep(follower.poll_delay());
        }
    }
    Ok(())
}

impl Lines {
    /// Adds what was printed; whether the attempt has ended.
    fn is_over(&mut self, event: &FollowEvent, attempt: u32) -> bool {
        match event {
            FollowEvent::Began(began) => began.number != attempt,
            FollowEvent::Output(pieces) => {
                for piece in pieces {
                    self.add(piece);
                }
                false
            }
            FollowEvent::Unreadable(_) => false,
            FollowEvent::Ended { .. } | FollowEvent::Finished(_) => true,
        }
    }
}

/// What the client has.
struct Sent {
    url: String,
    lines: Lines,
}

impl Sent {
    fn message(&mut self, is_over: bool) -> Bytes {
        let (rows, has_skipped): (Vec<LogRow>, bool) = self.lines.take();
        let html = log_lines::items(wall_now(), &rows, &self.url).into_string();
        let (lines, shown) = (self.lines.count(), self.lines.shown());
        message::event(
            "rows",
            &json!({ "html": html, "lines": lines, "rows": shown, "skipped": has_skipped, "over": is_over }),
        )
    }
}

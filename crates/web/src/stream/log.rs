//! Following the output of a job.

use std::sync::Arc;

use axum::body::Bytes;
use serde_json::json;

use super::client::Client;
use super::{EVENTS, enter, frame};
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::{Call, Parts};
use crate::request::pieces::pieces;
use crate::routes::logs::{parse_stream, piece_json};
use crate::server::Server;
use domain::log;
use domain::log::Stream;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::error::chain;
use ops::jobs::logs::follow::{FollowEvent, Follower};
use ops::jobs::logs::{Piece, choose};
use ops::json::{AttemptJson, JobJson};
use store::Store;

/// Parts that wait for a slow client. The follower waits with them, so nothing gets lost.
const BUFFER: usize = 4;

/// Where a stream begins, and what it shows.
struct Start {
    id: JobId,
    attempt: u32,
    from: u64,
    only: Option<Stream>,
}

pub(crate) fn start(server: &Arc<Server>, parts: Parts) -> Result<Answer, Problem> {
    let place = enter(server)?;
    let (sender, body) = pieces(BUFFER);
    let server = Arc::clone(server);
    tokio::task::spawn_blocking(move || {
        let mut client = Client::new(sender, place);
        if let Err(problem) = follow(&server, &parts, &mut client) {
            let data = json!({ "detail": problem.line(), "status": problem.status.as_u16() });
            client.send(frame::event("error", &data));
        }
    });
    Ok(Answer::pieces(EVENTS, body))
}

fn follow(server: &Arc<Server>, parts: &Parts, client: &mut Client) -> Result<(), Problem> {
    let begin = resolve(server, parts)?;
    let store = server.pool.open()?;
    let home = server.options.location.home.clone();
    let mut follower = Follower::new(store.as_ref(), home, begin.id.clone(), begin.attempt);
    let mut position = Position { attempt: 0, started_at: Timestamp::EPOCH, printed: 0, start: &begin };
    let stopping = server.stopping();
    while client.is_there() {
        if stopping.is_over() {
            client.send(frame::bye("the server is being stopped"));
            return Ok(());
        }
        let events = follower.poll()?;
        if events.is_empty() {
            std::thread::sleep(follower.poll_delay());
            continue;
        }
        for event in events {
            let is_last = matches!(event, FollowEvent::Finished(_));
            let messages = position.messages(event);
            let is_sent = messages.is_empty() || client.send(messages.concat().into());
            if is_last || !is_sent {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn resolve(server: &Arc<Server>, parts: &Parts) -> Result<Start, Problem> {
    let call = Call::new(server, parts);
    let (id, home) = (call.job()?, &server.options.location.home);
    let store: &dyn Store = call.store()?;
    store.prepare_logs(&home.join(log::FOLDER))?;
    let record = store.record(&id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let chosen = choose(&record, home, parts.query.read("attempt")?)?;
    Ok(Start {
        id,
        attempt: chosen.map_or(1, |attempt| attempt.number),
        from: parts.query.read("from")?.unwrap_or(0),
        only: parse_stream(parts.query.get("stream"))?,
    })
}

/// How far the stream has come.
struct Position<'a> {
    attempt: u32,
    started_at: Timestamp,
    /// Bytes that the attempt has printed so far.
    printed: u64,
    start: &'a Start,
}

impl Position<'_> {
    fn messages(&mut self, event: FollowEvent) -> Vec<Bytes> {
        match event {
            FollowEvent::Began(attempt) => {
                (self.attempt, self.started_at, self.printed) = (attempt.number, attempt.started_at, 0);
                vec![frame::event("began", &AttemptJson::from(&attempt))]
            }
            FollowEvent::Output(pieces) => pieces.iter().filter_map(|piece| self.piece(piece)).collect(),
            FollowEvent::Unreadable(error) => {
                vec![frame::event("unreadable", &json!({ "attempt": self.attempt, "detail": chain(&error) }))]
            }
            FollowEvent::Ended { attempt, .. } => vec![frame::event("ended", &AttemptJson::from(&attempt))],
            FollowEvent::Finished(job) => vec![frame::event("finished", &JobJson::from(&*job))],
        }
    }

    /// The message of a piece, unless the client has it or does not want it.
    fn piece(&mut self, piece: &Piece) -> Option<Bytes> {
        let (begin, end) = (self.printed, self.printed + piece.printed());
        self.printed = end;
        let from = if self.attempt == self.start.attempt { self.start.from } else { 0 };
        let (name, is_wanted) = match piece {
            Piece::Output(chunk) => ("output", self.start.only.is_none_or(|only| only == chunk.stream)),
            Piece::Cut { .. } => ("cut", true),
        };
        if end <= from || !is_wanted {
            return None;
        }
        let skip = usize::try_from(from.saturating_sub(begin)).unwrap_or(usize::MAX);
        Some(frame::event(name, &piece_json(piece, begin, skip, self.started_at)))
    }
}

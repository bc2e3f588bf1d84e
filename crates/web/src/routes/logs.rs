//! The output of attempts.

use axum::http::StatusCode;
use axum::http::header::CONTENT_DISPOSITION;
use serde::Serialize;

use super::jobs::enter_search;
use super::table::{Produces, Route};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::{NUMBER, Param, TEXT, encode};
use crate::stream::log as log_stream;
use domain::job::{Attempt, JobRecord};
use domain::log;
use domain::log::Stream;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::jobs::logs::find::Line;
use ops::jobs::logs::follow::missing;
use ops::jobs::logs::tail::Tail;
use ops::jobs::logs::{AttemptOutput, Piece, choose, has_ended};

/// How much output one answer has.
const DEFAULT_BYTES: usize = 1 << 20;
const MAX_BYTES: usize = 16 << 20;

const LOG: &[Param] = &[
    Param::new("from", NUMBER, "Begin after this many printed bytes"),
    Param::new("tail", NUMBER, "Only the last lines"),
    Param::new("limit", NUMBER, "At most about this many bytes; 1 MiB unless given, at most 16 MiB"),
    Param::new("stream", r#"{"enum":["stdout","stderr"]}"#, "Only this stream"),
    Param::new("as", r#"{"enum":["json","text"]}"#, "`text` is a download"),
];

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/jobs/{id}/attempts/{attempt}/log", Scope::Read, read)
        .about("The output of an attempt, in the order of printing; `Link` names what follows.")
        .takes(&[LOG])
        .answers(200, "LogPiece[]")
        .producing(&[Produces::Json, Produces::Text])
        .fails(&[404, 410, 422]),
    Route::get("/api/v1/jobs/{id}/attempts/{attempt}/find", Scope::Read, find)
        .about("The lines of an attempt's output that contain a text.")
        .takes(&[&[
            Param::new("text", TEXT, "What to find"),
            Param::new("stream", r#"{"enum":["stdout","stderr"]}"#, "Only this stream"),
            Param::new("limit", NUMBER, "At most this many lines; 200 unless given, at most 1,000"),
        ]])
        .answers(200, "FoundLine[]")
        .fails(&[404, 410, 422]),
    Route::stream("/api/v1/jobs/{id}/log/stream", Scope::Read, log_stream::start)
        .about("Follows the output of a job, attempt by attempt, until the job has finished.")
        .takes(&[&[
            Param::new("attempt", NUMBER, "Begin with this attempt"),
            Param::new("from", NUMBER, "Begin after this many printed bytes of that attempt"),
            Param::new("stream", TEXT, "Only this stream: stdout or stderr"),
        ]])
        .fails(&[429]),
];

/// A piece of output as JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum PieceJson {
    Output {
        /// How many bytes the attempt had printed before.
        from: u64,
        stream: &'static str,
        at: Timestamp,
        text: String,
    },
    Cut {
        from: u64,
        cut_bytes: u64,
    },
}

/// The piece, of which the first `skip` bytes are left out.
pub(crate) fn piece_json(piece: &Piece, from: u64, skip: usize, started_at: Timestamp) -> PieceJson {
    match piece {
        Piece::Output(chunk) => PieceJson::Output {
            from: from + skip as u64,
            stream: chunk.stream.name(),
            at: started_at.saturating_add(chunk.at),
            text: String::from_utf8_lossy(chunk.bytes.get(skip..).unwrap_or_default()).into_owned(),
        },
        Piece::Cut { bytes } => PieceJson::Cut { from, cut_bytes: *bytes },
    }
}

/// The output of one attempt, from a position on.
struct Excerpt {
    attempt: Attempt,
    /// Each with its position, and how many of its bytes are left out.
    pieces: Vec<(u64, usize, Piece)>,
    /// Where the rest begins, if there is more.
    next: Option<u64>,
}

fn read(call: &Call<'_>) -> Result<Answer, Problem> {
    let query = call.query();
    let only = parse_stream(query.get("stream"))?;
    let as_text = match query.get("as") {
        None | Some("json") => false,
        Some("text") => true,
        Some(other) => return Err(Problem::invalid(format!("unknown form `{other}`: use json or text"))),
    };
    let record = record(call)?;
    let attempt = attempt(call, &record)?;
    let excerpt = excerpt(call, &record, attempt, only)?;
    let answer = if as_text { text(&excerpt, only, &record) } else { json(&excerpt, only)? };
    let Some(next) = excerpt.next else {
        return Ok(answer);
    };
    let (id, number) = (encode(record.job.id.as_str()), excerpt.attempt.number);
    let path = call.path(&format!("/jobs/{id}/attempts/{number}/log"));
    Ok(answer.with_next(&format!("{path}?{}", query.with("from", &next.to_string()))))
}

pub(crate) fn parse_stream(typed: Option<&str>) -> Result<Option<Stream>, Problem> {
    let parse = |typed: &str| {
        Stream::from_name(typed)
            .ok_or_else(|| Problem::invalid(format!("unknown stream `{typed}`: use stdout or stderr")))
    };
    typed.map(parse).transpose()
}

fn record(call: &Call<'_>) -> Result<JobRecord, Problem> {
    let (id, store) = (call.job()?, call.store()?);
    store.prepare_logs(&call.server.options.location.home.join(log::FOLDER))?;
    Ok(store.record(&id)?.ok_or(OpError::NoSuchJob(id))?)
}

/// The attempt in the path; `latest` is the last one that runs or has output.
fn attempt(call: &Call<'_>, record: &JobRecord) -> Result<Attempt, Problem> {
    let typed = call.param("attempt");
    let wanted = match typed {
        "latest" => None,
        typed => {
            Some(typed.parse().map_err(|_| Problem::not_found(format!("there is no attempt `{typed}`")))?)
        }
    };
    let found = choose(record, &call.server.options.location.home, wanted)?;
    found.cloned().ok_or_else(|| Problem::not_found(format!("job `{}` has not run yet", record.job.id)))
}

fn excerpt(
    call: &Call<'_>,
    record: &JobRecord,
    attempt: Attempt,
    only: Option<Stream>,
) -> Result<Excerpt, Problem> {
    let query = call.query();
    let (from, limit) = (query.read("from")?.unwrap_or(0), query.bounded("limit", DEFAULT_BYTES, MAX_BYTES)?);
    let tail = query.read("tail")?.map(|lines| Tail { lines, only });
    let home = &call.server.options.location.home;
    let mut output = AttemptOutput::new(home, &record.job, &attempt).with_tail(tail);
    let has_ended = has_ended(&record.job, attempt.number);
    let (mut position, mut taken, mut pieces) = (0, 0, Vec::new());
    loop {
        let read = output.read(call.store()?, has_ended)?;
        if read.is_empty() {
            break;
        }
        for piece in read {
            let (start, end) = (position, position + piece.printed());
            position = end;
            if end <= from {
                continue;
            }
            if taken >= limit as u64 {
                return Ok(Excerpt { attempt, pieces, next: Some(start) });
            }
            let skip = usize::try_from(from.saturating_sub(start)).unwrap_or(usize::MAX);
            taken += if matches!(piece, Piece::Output(_)) { piece.printed() } else { 0 };
            pieces.push((start, skip, piece));
        }
    }
    match missing(&record.job.id, &attempt).filter(|_| position == 0) {
        Some(error) => Err(error.into()),
        None => Ok(Excerpt { attempt, pieces, next: None }),
    }
}

/// A line that was found.
#[derive(Serialize)]
struct LineJson {
    line: u64,
    from: u64,
    at: Timestamp,
    stream: &'static str,
    text: String,
}

fn find(call: &Call<'_>) -> Result<Answer, Problem> {
    let query = call.query();
    let text = query.get("text").ok_or_else(|| Problem::invalid("`text` is missing"))?;
    let only = parse_stream(query.get("stream"))?;
    let limit = query.bounded("limit", 200, 1_000)?;
    let _place = enter_search(call)?;
    let record = record(call)?;
    let attempt = attempt(call, &record)?;
    let mut output = AttemptOutput::new(&call.server.options.location.home, &record.job, &attempt);
    let has_ended = has_ended(&record.job, attempt.number);
    let lines = output.find_lines(call.store()?, has_ended, text, only, limit)?;
    if lines.is_empty()
        && let Some(error) = kept_nothing(call, &record, &attempt)?
    {
        return Err(error.into());
    }
    let json = |line: Line| LineJson {
        line: line.number,
        from: line.from,
        at: attempt.started_at.saturating_add(line.at),
        stream: line.stream.name(),
        text: String::from_utf8_lossy(&line.bytes).into_owned(),
    };
    Answer::json(&lines.into_iter().map(json).collect::<Vec<_>>())
}

/// Why an attempt has no output: it was not kept, or the attempt has printed nothing.
fn kept_nothing(call: &Call<'_>, record: &JobRecord, attempt: &Attempt) -> Result<Option<OpError>, Problem> {
    let mut output = AttemptOutput::new(&call.server.options.location.home, &record.job, attempt);
    let read = output.read(call.store()?, has_ended(&record.job, attempt.number))?;
    Ok(missing(&record.job.id, attempt).filter(|_| read.is_empty()))
}

fn is_shown(piece: &Piece, only: Option<Stream>) -> bool {
    match piece {
        Piece::Output(chunk) => only.is_none_or(|only| only == chunk.stream),
        Piece::Cut { .. } => true,
    }
}

fn json(excerpt: &Excerpt, only: Option<Stream>) -> Result<Answer, Problem> {
    let shown = excerpt.pieces.iter().filter(|(_, _, piece)| is_shown(piece, only));
    let pieces: Vec<PieceJson> = shown
        .map(|(from, skip, piece)| piece_json(piece, *from, *skip, excerpt.attempt.started_at))
        .collect();
    Answer::json(&pieces)
}

/// The bytes as they were printed, as a download: they are hostile, and no browser may interpret them.
fn text(excerpt: &Excerpt, only: Option<Stream>, record: &JobRecord) -> Answer {
    let mut bytes = Vec::new();
    for (_, skip, piece) in excerpt.pieces.iter().filter(|(_, _, piece)| is_shown(piece, only)) {
        match piece {
            Piece::Output(chunk) => bytes.extend(chunk.bytes.get(*skip..).unwrap_or_default()),
            Piece::Cut { bytes: cut } => {
                bytes.extend(format!("\n[{cut} bytes were not kept here]\n").into_bytes());
            }
        }
    }
    let name = log::file_name(record.job.number, excerpt.attempt.number);
    Answer::text(StatusCode::OK, "text/plain; charset=utf-8", bytes)
        .with(CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\""))
}

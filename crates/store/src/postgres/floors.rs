//! Raising the floors of queues: where their ready rows begin.
//!
//! A claim reads `ready` from the floor on. Without floors it would pass the dead rows of all earlier claims that the server
//! could not remove yet, because some old transaction might still see them. One worker raises the floors for all, alone in
//! the gate, so that no transaction is under way that inserts a row before the new floor and has seen the old one.

use std::borrow::Cow;
use std::time::Duration;

use tokio_postgres::types::Type;

use super::session::error::Failure;
use super::session::flight::Request;
use super::session::{CLOCK, Session};
use sys::guards;
use sys::guards::Guard;

/// How long to wait for the gate: the floors can be raised later.
const PATIENCE: Duration = Duration::from_millis(20);

/// The row of `duties` that says when floors are raised next.
const DUE: &str = "select 1 from duties
     where name = 'floors' and due_at > coalesce($1, (SELECT_CLOCK)) and due_at <= coalesce($1, (SELECT_CLOCK)) + $2";

const POSTPONE: &str = "insert into duties (name, due_at) values ('floors', $1 + $2)
     on conflict (name) do update set due_at = excluded.due_at";

/// To the first ready job of each queue, or to those that become ready from now on.
const RAISE: &str = "insert into floors (queue_id, rank, due_at, seq)
     select q.id, coalesce(h.rank, 0), coalesce(h.due_at, $1), coalesce(h.seq, 0)
     from queues q left join floors f on f.queue_id = q.id left join lateral (
       select r.rank, r.due_at, r.seq from ready r
       where r.queue_id = q.id
             and (r.rank, r.due_at, r.seq) >= (coalesce(f.rank, -2147483648), coalesce(f.due_at, 0), coalesce(f.seq, 0))
       order by r.rank, r.due_at, r.seq limit 1) h on true
     where f.queue_id is null or h.seq is null or (h.rank, h.due_at, h.seq) <> (f.rank, f.due_at, f.seq)
     on conflict (queue_id) do update set rank = excluded.rank, due_at = excluded.due_at, seq = excluded.seq";

/// A statement that makes jobs ready and lowers the floors of their queues, unless a test has switched that off.
pub(super) fn lowering(sql: &str) -> Cow<'_, str> {
    if guards::is_off(Guard::FloorGuard) {
        Cow::Owned(sql.replace("where f.queue_id = l.queue_id and", "where false and"))
    } else {
        Cow::Borrowed(sql)
    }
}

/// Raises the floors, unless another worker has done it within `every`. `clock` is the time of a test.
pub(super) fn raise(session: &Session, clock: Option<i64>, every: Duration) -> Result<(), Failure> {
    let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
    let due = DUE.replace("SELECT_CLOCK", CLOCK);
    let params = vec![(&clock as _, Type::INT8), (&every as _, Type::INT8)];
    let done = session.ask(Request { sql: &due, params })?;
    if done.rows.iter().any(|rows| !rows.is_empty()) {
        return Ok(());
    }
    let server = session.begin_alone(PATIENCE)?;
    let now = clock.unwrap_or(server.millis);
    let requests = [
        Request { sql: POSTPONE, params: vec![(&now, Type::INT8), (&every, Type::INT8)] },
        Request { sql: RAISE, params: vec![(&now, Type::INT8)] },
    ];
    session.fly(None, &requests, Some("commit")).map(drop)
}

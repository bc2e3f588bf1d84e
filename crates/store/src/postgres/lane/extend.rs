//! Extending leases in the lane: what its first flight reads.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Lane;
use super::answers::parts;
use super::exchange::{WORKER, know_worker};
use crate::postgres::session::flight::Request;
use crate::rows::jobs::leases;
use crate::rows::jobs::row::select_jobs;
use crate::rows::tables::settings;

/// As [`leases::HELD_BY`].
const HELD: &str = select_jobs!(
    "",
    "where j.state = 'processing' and j.worker_seq = (select seq from workers where id = $1)
     order by j.seq for no key update of j"
);

pub(in crate::postgres) fn requests<'a>(worker: &'a &'a str) -> Vec<Request<'a>> {
    vec![
        Request { sql: WORKER, params: vec![(worker, Type::TEXT)] },
        Request { sql: settings::ALL, params: Vec::new() },
        Request { sql: HELD, params: vec![(worker, Type::TEXT)] },
    ]
}

/// Makes the answers of the first flight known to the lane. Returns the number of the worker, if it is known.
pub(in crate::postgres) fn board(lane: &mut Lane<'_>, worker: &str, rows: Vec<Vec<Row>>) -> Option<i64> {
    let mut rows = rows.into_iter();
    let mut next = || rows.next().unwrap_or_default();
    let (found, stored, held) = (next(), next(), next());
    let seq = know_worker(lane, worker, found.into_iter().next()?);
    lane.answers.otherwise(settings::ALL, parts(stored));
    lane.answers.of_integer(leases::HELD_BY, seq, parts(held));
    Some(seq)
}

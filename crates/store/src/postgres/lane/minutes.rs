//! The rows of `minutes` in a worker's turn: it adds to those of its own shard. The first flight has locked the row of the
//! worker, so no other turn reads or writes them until the commit.

use std::rc::Rc;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::Lane;
use super::answers::Answer;
use crate::postgres::session::flight::Request;
use crate::rows::keys::QueueKey;
use crate::rows::tables::minutes::{MinuteKey, shards};
use domain::metrics::resolution::{Resolution, minute_of};
use domain::values::timestamp::Timestamp;

/// How far the time of the server may be from the expected one. Beyond that a turn leaves the lane, which corrects the
/// expectation.
const TOLERANCE: Duration = Duration::from_secs(5);

/// The worker's rows of two minutes, for all queues. Finds each by the primary key of minutes.
const OF_WORKER: &str = "select m.id, m.content from workers w cross join queues q cross join lateral (
       select m.id, m.content from minutes m
       where m.id = any(array[$2 + q.id, $3 + q.id]) and m.shard = w.seq limit 2) m
     where w.id = $1";

/// The minutes that a turn may belong to. They are asked for before its time is known.
pub(super) struct Minutes([Minute; 2]);

struct Minute {
    number: i64,
    /// The id of its row for a queue is larger by the number of the queue.
    id: i64,
}

impl Minutes {
    /// `None` if they are beyond all that is counted.
    pub(super) fn around(now: Timestamp) -> Option<Self> {
        let before = Timestamp::from_millis(now.as_millis() - i64::try_from(TOLERANCE.as_millis()).ok()?);
        Some(Self([Minute::of(before)?, Minute::of(now.saturating_add(TOLERANCE))?]))
    }

    pub(super) fn request<'a>(&'a self, worker: &'a (dyn ToSql + Sync)) -> Request<'a> {
        let [first, second] = &self.0;
        Request {
            sql: OF_WORKER,
            params: vec![(worker, Type::TEXT), (&first.id, Type::INT8), (&second.id, Type::INT8)],
        }
    }

    /// Makes the rows known to the lane, if they are those of this time.
    pub(super) fn know(&self, lane: &mut Lane<'_>, rows: Vec<Row>, now: Timestamp) {
        if self.0.iter().all(|minute| minute.number != minute_of(now)) {
            return;
        }
        lane.answers.otherwise(shards::OF_SHARD, Vec::new());
        for row in rows {
            let id = row.get(0);
            lane.answers.of_integer(shards::OF_SHARD, id, vec![Answer::Part(Rc::new(row), 1)]);
        }
    }
}

impl Minute {
    fn of(time: Timestamp) -> Option<Self> {
        let number = minute_of(time);
        let key = MinuteKey { resolution: Resolution::Minute, minute: number, queue_id: QueueKey(0) };
        Some(Self { number, id: key.id()? })
    }
}

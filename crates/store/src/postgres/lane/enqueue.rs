//! Enqueuing in the lane: what its first flight reads. If queues are missing, a further flight creates them. Jobs with
//! dependencies, unique keys, a batch, or the first job of an environment leave the lane, and so do jobs whose ids are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Lane;
use super::answers::{Answer, parts};
use crate::postgres::session::error::Failure;
use crate::postgres::session::flight::Request;
use crate::postgres::session::{ServerTime, Session};
use crate::rows::jobs::environments;
use crate::rows::tables::{queues, settings, workers};
use domain::job::NewJob;
use domain::job::environment::Environment;

/// Enqueuers do not wait for each other if they add to different counters.
const SHARDS: std::ops::RangeInclusive<i64> = -16..=-1;

/// None while a queue is missing: they are asked for again when it was created.
const NUMBERS: &str = "select coalesce(array_agg(nextval('jobs_seq_seq')), '{}') from generate_series(1, $1)
     where (select count(*) from queues where name = any($2)) = cardinality($2)";
/// Another enqueue may be creating the same queues: this one waits for it, and finds them. All create them in the order of
/// their names, so that no two wait for each other.
const CREATE_QUEUES: &str = "insert into queues (name, created_at)
     select u.name, coalesce($2, cast(extract(epoch from clock_timestamp()) * 1000 as bigint))
     from unnest($1::text[]) as u(name) where not exists (select 1 from queues q where q.name = u.name)
     order by u.name collate \"C\"
     on conflict do nothing";
const QUEUES: &str = "select name, id from queues where name = any($1)";
const ENVIRONMENTS: &str = "select u.fingerprint, e.id
     from unnest($1::bigint[], $2::bytea[]) as u(fingerprint, variables)
     join environments e on e.fingerprint = u.fingerprint and e.variables = u.variables";

/// Where the answer about queues is: behind the numbers.
const QUEUES_AT: usize = 1;

/// What an enqueue asks in its first flight.
pub(in crate::postgres) struct Questions<'a> {
    count: i64,
    queues: Vec<&'a str>,
    fingerprints: Vec<i64>,
    variables: Vec<Vec<u8>>,
}

impl<'a> Questions<'a> {
    /// `None` if the jobs have to be enqueued alone in any case.
    pub(in crate::postgres) fn of(jobs: &'a [NewJob]) -> Option<Self> {
        let is_plain =
            |job: &NewJob| job.depends_on.is_empty() && job.unique_key.is_none() && job.batch.is_none();
        if jobs.is_empty() || !jobs.iter().all(is_plain) {
            return None;
        }
        let queues: BTreeSet<&str> = jobs.iter().map(|job| job.queue.as_str()).collect();
        let environments = distinct(jobs)?;
        Some(Self {
            count: i64::try_from(jobs.len()).ok()?,
            queues: queues.into_iter().collect(),
            fingerprints: environments.keys().copied().collect(),
            variables: environments.into_values().collect(),
        })
    }

    pub(in crate::postgres) fn have_environments(&self) -> bool {
        !self.fingerprints.is_empty()
    }

    /// Begins the transaction and asks. Queues that are missing are created in it, at the time of a test if there is one.
    pub(in crate::postgres) fn ask(
        &self,
        session: &Session,
        now: Option<i64>,
    ) -> Result<(ServerTime, Vec<Vec<Row>>), Failure> {
        let (time, mut flown) = session.begin_together(&self.requests())?;
        if flown.rows[QUEUES_AT].len() < self.queues.len() {
            let create = Request {
                sql: CREATE_QUEUES,
                params: vec![(&self.queues, Type::TEXT_ARRAY), (&now, Type::INT8)],
            };
            let [numbers, queues] = self.numbers_and_queues();
            let created = session.fly(None, &[create, numbers, queues], None)?;
            flown.rows.splice(..=QUEUES_AT, created.rows.into_iter().skip(1));
        }
        Ok((time, flown.rows))
    }

    fn numbers_and_queues(&self) -> [Request<'_>; 2] {
        [
            Request {
                sql: NUMBERS,
                params: vec![(&self.count, Type::INT8), (&self.queues, Type::TEXT_ARRAY)],
            },
            Request { sql: QUEUES, params: vec![(&self.queues, Type::TEXT_ARRAY)] },
        ]
    }

    fn requests(&self) -> Vec<Request<'_>> {
        let mut requests = Vec::from(self.numbers_and_queues());
        requests.push(Request { sql: workers::ANY_LIVE, params: Vec::new() });
        requests.push(Request { sql: settings::ALL, params: Vec::new() });
        if self.have_environments() {
            let params: Vec<(&(dyn tokio_postgres::types::ToSql + Sync), Type)> =
                vec![(&self.fingerprints, Type::INT8_ARRAY), (&self.variables, Type::BYTEA_ARRAY)];
            requests.push(Request { sql: ENVIRONMENTS, params });
        }
        requests
    }
}

/// The environments by their fingerprints; `None` if two have the same.
fn distinct(jobs: &[NewJob]) -> Option<BTreeMap<i64, Vec<u8>>> {
    let mut distinct = BTreeMap::new();
    let mut last: Option<&Arc<Environment>> = None;
    for environment in jobs.iter().filter_map(|job| job.environment.as_ref()) {
        if last.is_some_and(|last| Arc::ptr_eq(last, environment)) {
            continue;
        }
        last = Some(environment);
        let variables = environment.to_bytes();
        let fingerprint = environments::fingerprint(&variables);
        if distinct.insert(fingerprint, variables.clone()).is_some_and(|other| other != variables) {
            return None;
        }
    }
    Some(distinct)
}

/// Makes the answers of the first flight known to the lane.
pub(in crate::postgres) fn board(lane: &mut Lane<'_>, rows: Vec<Vec<Row>>) {
    let mut rows = rows.into_iter();
    let mut next = || rows.next().unwrap_or_default();
    let (numbers, queue_rows, live, stored, environment_rows) = (next(), next(), next(), next(), next());
    lane.answers.otherwise(settings::ALL, parts(stored));
    let numbers: Vec<i64> = numbers.first().map(|row| row.get(0)).unwrap_or_default();
    lane.answers.numbers.replace(numbers.into());
    for row in queue_rows {
        let (name, id): (String, i64) = (row.get(0), row.get(1));
        lane.answers.of_text(queues::FIND_ID, name, vec![Answer::Integers(vec![Some(id)])]);
    }
    for row in environment_rows {
        let (fingerprint, id): (i64, i64) = (row.get(0), row.get(1));
        lane.answers.of_integer(environments::FIND, fingerprint, vec![Answer::Integers(vec![Some(id)])]);
    }
    lane.answers.otherwise(environments::CAN_COMPARE, vec![Answer::Integers(vec![Some(1)])]);
    let live = live.iter().map(|_| Answer::Integers(vec![Some(1)])).collect();
    lane.answers.otherwise(workers::ANY_LIVE, live);
}

pub(in crate::postgres) fn shard() -> i64 {
    fastrand::i64(SHARDS)
}

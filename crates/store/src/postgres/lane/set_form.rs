//! The set-based forms of the statements that verbs run for one row: a parameter becomes a column of `unnest`, which has
//! one row for each call.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::postgres::floors::lowering;
use crate::rows::jobs;
use crate::rows::jobs::{causes, history, ready, unique_keys};
use crate::rows::tables::{counters, minutes, workers};
use crate::rows::verbs::{enqueue, remove};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Text,
    Blob,
}

pub(super) struct SetForm {
    pub(super) sql: String,
    pub(super) kinds: Vec<Kind>,
}

/// How a statement changes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Exactly one for each call. Otherwise another transaction was quicker, and the flight must fail.
    One,
    /// As `One`, for an insert that otherwise leaves out rows that exist: without `on conflict` the server checks its
    /// indexes once for each row instead of twice.
    New,
    Any,
}

/// The statements with a set-based form, and the kinds of their parameters: `i`nteger, `t`ext or `b`lob. A new table that
/// turns write to needs its statement here.
const STATEMENTS: [(&str, &str, Effect); 20] = [
    (jobs::UPDATE, "iittiiiiitiiiiitiiti", Effect::One),
    (history::INSERT, "iiiiiitiitiii", Effect::Any),
    (history::INSERT_OUTPUT, "iib", Effect::Any),
    (ready::INSERT_WAITING, "ii", Effect::Any),
    (ready::INSERT.postgres, "iiii", Effect::Any),
    (counters::ADD_TO_SHARD, "itiii", Effect::Any),
    (causes::ASSIGN, "ii", Effect::One),
    (causes::ADD_TO_SHARD, "iitiitiiii", Effect::Any),
    (minutes::shards::REPLACE, "iib", Effect::Any),
    (workers::BEAT, "ii", Effect::One),
    // An id that is taken fails the flight.
    (enqueue::INSERT, "itiiiiiiittiitttti", Effect::New),
    (enqueue::INSERT_TAG, "ti", Effect::Any),
    (unique_keys::DELETE, "ti", Effect::Any),
    (remove::DELETE_TAG, "ti", Effect::Any),
    (remove::DELETE_WORKERS, "i", Effect::Any),
    (remove::DELETE_OUTPUTS, "i", Effect::Any),
    (remove::DELETE_OUTPUT_PARTS, "i", Effect::Any),
    (remove::DELETE_ATTEMPTS, "i", Effect::Any),
    (remove::DELETE_EVENTS, "i", Effect::Any),
    (remove::DELETE_JOB, "i", Effect::One),
];

static FORMS: LazyLock<HashMap<&'static str, SetForm>> = LazyLock::new(|| {
    let form = |(sql, letters, effect): (&'static str, &str, Effect)| (sql, set_form(sql, letters, effect));
    STATEMENTS.into_iter().map(form).collect()
});

/// Deletes rows of `ready` by their places, which stay the same while they are locked.
pub(super) static CTID_FORM: LazyLock<SetForm> = LazyLock::new(|| SetForm {
    sql: checked("delete from ready where ctid = any(cast($1 as tid[]))"),
    kinds: vec![Kind::Text],
});

/// The set-based form of a statement, if it has one.
pub(super) fn form_of(sql: &str) -> Option<(&'static str, &'static SetForm)> {
    FORMS.get_key_value(sql).map(|(sql, form)| (*sql, form))
}

fn set_form(sql: &str, letters: &str, effect: Effect) -> SetForm {
    let kinds: Vec<Kind> = letters.chars().map(kind).collect();
    let sql = match effect {
        Effect::New => sql.split("on conflict").next().unwrap_or(sql).trim_end(),
        Effect::One | Effect::Any => sql,
    };
    let source = rows_of(&kinds);
    let body = if sql == ready::INSERT.postgres {
        lowering(INSERT_READY).replace("ROWS", &source)
    } else if sql == remove::DELETE_WORKERS {
        // A query that depends on a row would run for each worker.
        sql.replace("seq in (select worker_seq from attempts where seq = ?1)", DELETED_WORKERS)
    } else if sql.starts_with("delete ") {
        delete_all(sql, &source)
    } else if sql.starts_with("update ") {
        update_all(sql, &source)
    } else {
        insert_all(sql, &source)
    };
    let sql = match effect {
        Effect::One => checked(&body),
        Effect::New | Effect::Any => body,
    };
    SetForm { sql, kinds }
}

fn kind(letter: char) -> Kind {
    match letter {
        't' => Kind::Text,
        'b' => Kind::Blob,
        _ => Kind::Integer,
    }
}

/// `unnest($1::bigint[], …) as u(p1, …)`
fn rows_of(kinds: &[Kind]) -> String {
    let array = |(at, kind): (usize, &Kind)| {
        let element = match kind {
            Kind::Integer => "bigint",
            Kind::Text => "text",
            Kind::Blob => "bytea",
        };
        format!("${}::{element}[]", at + 1)
    };
    let arrays: Vec<String> = kinds.iter().enumerate().map(array).collect();
    let columns: Vec<String> = (1..=kinds.len()).map(|number| format!("p{number}")).collect();
    format!("unnest({}) as u({})", arrays.join(", "), columns.join(", "))
}

/// Each row is found by its key, because the lane allows no other join: see [`crate::postgres::session`].
fn update_all(sql: &str, source: &str) -> String {
    let (changes, condition) = sql.split_once("where ").expect("an update has a condition");
    let (changes, condition) = (changes.replace('?', "u.p"), condition.replace('?', "u.p"));
    format!("{changes} from {source} where {condition}")
}

fn delete_all(sql: &str, source: &str) -> String {
    let (table, condition) = sql.split_once("where ").expect("a delete has a condition");
    format!("{table} using {source} where {}", condition.replace('?', "u.p"))
}

const DELETED_WORKERS: &str =
    "seq = any(array(select distinct a.worker_seq from attempts a where a.seq = any($1::bigint[])))";

fn insert_all(sql: &str, source: &str) -> String {
    let (table, values) = sql.split_once("values (").expect("an insert has values");
    let (values, rest) = values.split_once(')').expect("values end");
    format!("{table} select {} from {source}{rest}", values.replace('?', "u.p"))
}

/// As [`ready::INSERT`]: of several rows in a queue the first lowers its floor.
const INSERT_READY: &str = "with new as materialized (
       select p1 as queue_id, -p2 as rank, p3 as due_at, p4 as seq from ROWS),
     lowest as (select distinct on (queue_id) * from new order by queue_id, rank, due_at, seq),
     lowered as (update floors f set rank = l.rank, due_at = l.due_at, seq = l.seq from lowest l
                 where f.queue_id = l.queue_id and (f.rank, f.due_at, f.seq) > (l.rank, l.due_at, l.seq))
     insert into ready (queue_id, rank, due_at, seq) select queue_id, rank, due_at, seq from new";

/// Fails, by a division by zero, unless each row of the first parameter has changed one row. The commit is on its way
/// already, so the statement itself has to prevent it.
fn checked(sql: &str) -> String {
    format!(
        "with changed as ({sql} returning 1) select 1 / cast(count(*) = cardinality($1) as int) from changed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_has_as_many_kinds_as_parameters() {
        for (sql, letters, _) in STATEMENTS {
            let count = letters.len();
            assert!(sql.contains(&format!("?{count}")) && !sql.contains(&format!("?{}", count + 1)), "{sql}");
        }
    }

    #[test]
    fn a_parameter_becomes_a_column() {
        let insert =
            set_form("insert into t (a, b) values (?1, ?2) on conflict do nothing", "ti", Effect::Any);
        assert_eq!(
            insert.sql,
            "insert into t (a, b)  select u.p1, u.p2 from unnest($1::text[], $2::bigint[]) as u(p1, p2) \
             on conflict do nothing"
        );
        let update = set_form("update t set a = ?2 where seq = ?1", "ib", Effect::Any);
        assert_eq!(
            update.sql,
            "update t set a = u.p2  from unnest($1::bigint[], $2::bytea[]) as u(p1, p2) \
             where seq = u.p1"
        );
        let delete = set_form("delete from t where a = ?1 and b = ?2", "ti", Effect::Any);
        assert_eq!(
            delete.sql,
            "delete from t  using unnest($1::text[], $2::bigint[]) as u(p1, p2) where a = u.p1 and b = u.p2"
        );
        let workers = set_form(remove::DELETE_WORKERS, "i", Effect::Any);
        assert!(workers.sql.contains("= any($1::bigint[])") && !workers.sql.contains('?'), "{}", workers.sql);
        let new = set_form("insert into t (a) values (?1) on conflict do nothing", "i", Effect::New);
        assert_eq!(new.sql, "insert into t (a)  select u.p1 from unnest($1::bigint[]) as u(p1)");
        assert!(checked(&update.sql).ends_with("cardinality($1) as int) from changed"));
    }
}

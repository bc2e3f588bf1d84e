//! Making due jobs ready, together with others: two that promote the same jobs wait for each other.

/// Moves at most `$2` jobs that are due at `$1` from `waiting` to `ready`, as [`crate::rows::jobs::ready::promote`].
pub(in crate::postgres) const PROMOTE: &str = "with due as materialized (
       select w.ctid as place, w.due_at, w.seq from waiting w
       where w.due_at <= $1 order by w.due_at, w.seq limit $2 for update),
     gone as (delete from waiting where ctid = any(array(select place from due))),
     new as materialized (
       select j.queue_id, -j.priority as rank, d.due_at, d.seq from due d join jobs j on j.seq = d.seq),
     lowest as (select distinct on (queue_id) * from new order by queue_id, rank, due_at, seq),
     lowered as (update floors f set rank = l.rank, due_at = l.due_at, seq = l.seq from lowest l
                 where f.queue_id = l.queue_id and (f.rank, f.due_at, f.seq) > (l.rank, l.due_at, l.seq))
     insert into ready (queue_id, rank, due_at, seq) select queue_id, rank, due_at, seq from new";

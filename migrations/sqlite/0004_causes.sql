-- What dead jobs died of, and which attempts failed last.

-- How many dead jobs of each queue died of each cause. The number of a cause is computed from the texts beside it
-- (domain/job/cause.rs). The times are those of the first and the last death since the row exists.
create table causes (
  id integer not null,
  queue_id integer not null,
  reason text not null,
  exit_code integer,
  signal integer,
  message text not null,
  count integer not null,
  first_at integer not null,
  last_at integer not null,
  primary key (id, queue_id)
) strict, without rowid;

-- Of a dead job.
alter table jobs add column cause_id integer;
create index jobs_by_cause on jobs (cause_id, seq) where cause_id is not null;

-- The attempts that failed, by when they ended.
create index attempts_failed on attempts (finished_at, seq) where outcome = 'failure' or outcome = 'signal' or outcome = 'timeout' or outcome = 'spawn_error' or outcome = 'lost';

-- The last results of deliveries: a JSON array, the newest first; null: none yet.
alter table hooks add column results text;

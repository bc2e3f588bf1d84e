-- What dead jobs died of, and which attempts failed last: as migrations/sqlite/0004_causes.sql, except where a comment says
-- otherwise.

-- The key also has a shard: each worker adds to rows of its own, so that workers do not wait for each other. The number of
-- jobs is the sum of all shards, and one of them may be negative.
create table causes (
  id bigint not null,
  queue_id bigint not null,
  shard bigint not null default 0,
  reason text not null,
  exit_code bigint,
  signal bigint,
  message text not null,
  count bigint not null,
  first_at bigint not null,
  last_at bigint not null,
  primary key (id, queue_id, shard)
) with (fillfactor = 50);

alter table jobs add column cause_id bigint;
create index jobs_by_cause on jobs (cause_id, seq) where cause_id is not null;

create index attempts_failed on attempts (finished_at, seq) where outcome = 'failure' or outcome = 'signal' or outcome = 'timeout' or outcome = 'spawn_error' or outcome = 'lost';

alter table hooks add column results text;

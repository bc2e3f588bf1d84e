-- What happened in each queue, minute by minute: as migrations/sqlite/0003_minutes.sql, except where a comment says otherwise.

-- The key also has a shard: each worker adds to a row of its own, so that workers do not wait for each other. What happened
-- is the sum of all shards. The shards of past minutes become part of shard 0, which verbs that run alone use.
create table minutes (
  id bigint not null,
  shard bigint not null default 0,
  content bytea not null,
  primary key (id, shard)
) with (fillfactor = 50);

alter table counters add column entered bigint not null default 0;
alter table queues add column sampled bigint;

-- Order and time: what queues, schedules, batches, hooks and history need beside what was there.

-- More reasons for an end, and one more for which a running job is to be cancelled (2: it is replaced). SQLite
-- cannot change a check of a table, but it documents this way of changing its text; the statements below that add columns
-- make every other process read the schema again.
pragma writable_schema = on;
update sqlite_schema
set sql = replace(replace(sql, 'or reason = ''dependency'')',
                               'or reason = ''dependency'' or reason = ''not_retried'' or reason = ''replaced'')'),
                  'or cancel_requested = 1)', 'or cancel_requested = 1 or cancel_requested = 2)')
where type = 'table' and name = 'jobs';
pragma writable_schema = off;

-- Queues

alter table queues add column retry_on text; -- a JSON array of exit codes; null: all
alter table queues add column no_retry_on text; -- a JSON array of exit codes; null: none

-- Dependencies

-- A row stays when it no longer blocks, so that everybody can see who depended on whom; until one of the two jobs is gone.
-- Those that a job waits for are in its depends_on, so they need no index here.
alter table dependencies add column blocks integer not null default 1 check (blocks = 0 or blocks = 1);
drop index dependencies_by_child;

insert into dependencies (parent_seq, child_seq, blocks)
select parent.seq, child.seq, 0
from jobs child cross join json_each(child.depends_on) named cross join jobs parent on parent.id = named.value
where child.depends_on is not null
on conflict (parent_seq, child_seq) do nothing;

alter table releases add column after_seq integer not null default 0; -- those who wait were told up to here

-- Batches

alter table batches add column finished_at integer; -- null: some of its jobs are not finished

-- Jobs by batch and state, changed like `counters`.
create table batch_counters (
  batch_id integer not null,
  state text not null,
  count integer not null check (count >= 0),
  primary key (batch_id, state)
) strict, without rowid;

create index jobs_by_batch on jobs (batch_id, seq) where batch_id is not null;

-- Schedules

alter table schedules add column environment_id integer; -- of whoever added it; null: the worker's
alter table schedules add column missed_limit integer not null default 1 check (missed_limit >= 1); -- for on_missed = 'all'
alter table schedules add column skipped_at integer; -- the last occurrence that was left out because a run was unfinished
alter table schedules add column created_by text not null default '';
alter table schedules add column missed_at integer; -- the last occurrence for which nobody was there in time

-- The runs of a schedule, the newest last.
create index jobs_by_schedule on jobs (schedule_id, seq) where schedule_id is not null;

create index schedules_due on schedules (next_at) where next_at is not null and paused_at is null;

-- Hooks

create table hooks (
  id integer primary key,
  name text not null unique,
  event text not null,
  queue text,        -- null: all queues
  threshold integer check (threshold >= 0),
  command text,
  url text,
  secret text,
  cwd text,
  environment_id integer,
  created_at integer not null,
  created_by text not null,
  delivered_at integer,  -- the last time that it was told something
  failing_since integer, -- null: the last try was none that failed
  error text,            -- of the last try that failed
  gave_up integer not null default 0 check (gave_up >= 0), -- how many events it could not be told of
  gave_up_at integer,    -- the last time
  check ((command is null) <> (url is null))
) strict;

-- What hooks are still to be told: written with the change that they are about, deleted when it was delivered.
-- A number is never used again: a report that comes late must not be taken for one of another event.
create table deliveries (
  id integer primary key autoincrement,
  name text not null,    -- what receivers know it by: unlike the number no other queue has it
  hook_id integer not null,
  payload text not null, -- an event as JSON
  created_at integer not null,
  due_at integer not null,
  tries integer not null default 0,
  worker_seq integer     -- who is sending it; due again when that takes too long
) strict;

create index deliveries_by_hook on deliveries (hook_id, due_at);
create index deliveries_sent on deliveries (worker_seq) where worker_seq is not null;

-- Upkeep

-- What workers do now and then, one of them for all.
create table duties (
  name text primary key,
  due_at integer not null
) strict, without rowid;

-- Keys that outlive their jobs, by when they end.
create index unique_keys_ending on unique_keys (held_until) where held_until is not null;

-- The newest job when it stopped: it ran none that is newer.
alter table workers add column last_seq integer;

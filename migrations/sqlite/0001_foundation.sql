-- A check says `a = 1 or a = 2` instead of `a in (1, 2, 3)`: for a list SQLite builds a table each time it is evaluated,
-- which cost a third of the time of an insert.
--
-- Times are milliseconds of UTC, but for jobs.lease_until (see there). `seq` is a job's place in the order of enqueuing
-- and never used twice. Foreign keys are not declared: the store is the only writer, each verb is one transaction, and
-- the checks would cost as much as the writes.

create table settings (
  key text primary key,
  value text not null
) strict, without rowid;

-- The least that the next jobs.seq may be. Written when a job is removed, so that its number does not come back.
create table sequence (
  next_seq integer not null
) strict;

insert into sequence (next_seq) values (1);

create table queues (
  id integer primary key,
  name text not null unique,
  created_at integer not null,
  paused_at integer,
  paused_by text,
  pause_reason text,
  concurrency integer check (concurrency >= 1),
  rate_count integer check (rate_count >= 1),
  rate_period_ms integer check (rate_period_ms >= 1),
  rate_tokens real,
  rate_refilled_at integer,
  limits text,
  check ((paused_at is null) = (paused_by is null)),
  check ((rate_count is null) = (rate_period_ms is null))
) strict;

-- Environments of callers, each distinct one once: `NAME=value` strings, each ended by a NUL.
create table environments (
  id integer primary key,
  fingerprint integer not null,
  variables blob not null
) strict;

create index environments_by_fingerprint on environments (fingerprint);

create table workers (
  seq integer primary key,
  id text not null unique,
  host text not null,
  boot_id text not null,
  pid integer not null,
  supervisor_pid integer,
  queues text, -- a JSON array in order of preference; null: all queues
  concurrency integer not null check (concurrency >= 1),
  state text not null check (state = 'running' or state = 'draining' or state = 'stopped'),
  started_at integer not null,
  last_heartbeat integer not null
) strict;

create table batches (
  id integer primary key,
  name text not null unique,
  created_at integer not null
) strict;

create table schedules (
  id integer primary key,
  name text not null unique,
  kind text not null check (kind = 'cron' or kind = 'every' or kind = 'at'),
  expression text not null,
  time_zone text,
  job text not null, -- a job as JSON
  on_missed text not null check (on_missed = 'skip' or on_missed = 'once' or on_missed = 'all'),
  on_overlap text not null check (on_overlap = 'skip' or on_overlap = 'queue' or on_overlap = 'replace'),
  created_at integer not null,
  last_at integer,
  next_at integer,
  paused_at integer,
  paused_by text,
  pause_reason text,
  check ((paused_at is null) = (paused_by is null))
) strict;

create table jobs (
  seq integer primary key,
  id text not null unique,
  queue_id integer not null,
  priority integer not null,
  state text not null check (state = 'pending' or state = 'processing' or state = 'completed' or state = 'failed' or state = 'dead' or state = 'cancelled'),
  blocked_by integer not null default 0 check (blocked_by >= 0),
  run_at integer,
  due_at integer not null,
  attempts integer not null default 0,
  max_retries integer not null check (max_retries >= 0),
  failures integer not null default 0,
  losses integer not null default 0 check (losses >= 0),
  loss_boot text,
  worker_seq integer,
  lease_until integer, -- on the lease clock: milliseconds since the machine booted, so that sleep and clock jumps expire nothing
  cancel_requested integer not null default 0 check (cancel_requested = 0 or cancel_requested = 1),
  started_at integer,
  finished_at integer,
  exit_code integer,
  signal integer check (signal between 1 and 64),
  error text,
  reason text check (reason = 'retries_exhausted' or reason = 'crash_limit' or reason = 'user' or reason = 'dependency'),
  created_at integer not null,
  updated_at integer not null,
  command text not null,
  cwd text,
  environment_id integer,
  timeout_ms integer check (timeout_ms > 0),
  unique_key text,
  tags text,       -- a JSON array; null: none
  depends_on text, -- a JSON array; null: nothing
  options text,    -- what few jobs set, as a JSON object; null: nothing
  batch_id integer,
  schedule_id integer,
  scheduled_for integer,
  check (failures between 0 and attempts),
  check (blocked_by = 0 or state = 'pending'),
  check (cancel_requested = 0 or state = 'processing'),
  check ((state = 'processing') = (worker_seq is not null)),
  check ((state = 'processing') = (lease_until is not null)),
  check ((state = 'completed' or state = 'dead' or state = 'cancelled') = (finished_at is not null)),
  check ((state = 'dead' or state = 'cancelled') = (reason is not null))
) strict;

create index jobs_by_state on jobs (state, seq);
create index jobs_by_queue on jobs (queue_id, state, seq);
create index jobs_blocked on jobs (seq) where blocked_by > 0;
create unique index jobs_by_occurrence on jobs (schedule_id, scheduled_for) where schedule_id is not null;

-- Jobs that could run now, in the order in which they are claimed. Kept apart from `jobs`, so that a claim never walks
-- over what cannot run.
create table ready (
  queue_id integer not null,
  priority integer not null,
  due_at integer not null,
  seq integer not null,
  primary key (queue_id, priority desc, due_at, seq)
) strict, without rowid;

-- Jobs whose time has not come: scheduled ones, and failed ones in their backoff.
create table waiting (
  due_at integer not null,
  seq integer not null,
  primary key (due_at, seq)
) strict, without rowid;

-- Who waits for whom. A row goes when it no longer blocks.
create table dependencies (
  parent_seq integer not null,
  child_seq integer not null,
  primary key (parent_seq, child_seq)
) strict, without rowid;

create index dependencies_by_child on dependencies (child_seq);

-- Finished jobs with more dependents than one transaction releases.
create table releases (
  parent_seq integer primary key,
  failed integer not null check (failed = 0 or failed = 1)
) strict;

create table unique_keys (
  key text primary key,
  seq integer not null,
  held_until integer -- null: until the job is finished
) strict, without rowid;

create table job_tags (
  tag text not null,
  seq integer not null,
  primary key (tag, seq)
) strict, without rowid;

-- History: one row for each attempt that ended, never changed.
create table attempts (
  seq integer not null,
  number integer not null check (number >= 1),
  worker_seq integer not null,
  started_at integer not null,
  finished_at integer not null,
  duration_ms integer not null check (duration_ms >= 0),
  outcome text not null
    check (outcome = 'success' or outcome = 'failure' or outcome = 'signal' or outcome = 'timeout' or outcome = 'spawn_error' or outcome = 'lost' or outcome = 'cancelled' or outcome = 'released'),
  exit_code integer,
  signal integer check (signal between 1 and 64),
  error text,
  cpu_ms integer,
  max_rss_bytes integer,
  log_bytes integer not null default 0,
  primary key (seq, number),
  check ((outcome = 'success' or outcome = 'failure') = (exit_code is not null)),
  check ((outcome = 'signal') = (signal is not null))
) strict, without rowid;

-- Output that was small enough to be stored with its attempt.
create table outputs (
  seq integer not null,
  number integer not null,
  content blob not null,
  primary key (seq, number)
) strict, without rowid;

-- What people did.
create table events (
  id integer primary key,
  at integer not null,
  seq integer, -- of a job, where it was done to one
  event text not null,
  by text not null,
  detail text
) strict;

create index events_by_job on events (seq) where seq is not null;

-- Jobs by queue and state, changed once in every transaction that changes them.
create table counters (
  queue_id integer not null,
  state text not null,
  count integer not null check (count >= 0),
  primary key (queue_id, state)
) strict, without rowid;

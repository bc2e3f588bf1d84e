-- The schema of a queue.
--
-- Times are milliseconds of UTC, except on the lease clock (see jobs.lease_until). `seq` is a job's place in the order of
-- enqueuing and is never used twice.
--
-- No foreign keys are declared: the store is the only writer, each verb is one transaction, and the checks would cost as
-- much as the writes.
--
-- A check says `a = 1 or a = 2 or a = 3` instead of `a in (1, 2, 3)`: for a list SQLite builds a table each time it
-- evaluates the check, which cost a third of the time of an insert.

create table settings (
  key text primary key,
  value text not null
) strict, without rowid;

-- A lower bound of the next jobs.seq. Written when a job is removed, so that its number is not used again.
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
  retry_on text,    -- a JSON array of exit codes; null: all
  no_retry_on text, -- a JSON array of exit codes; null: none
  check ((paused_at is null) = (paused_by is null)),
  check ((rate_count is null) = (rate_period_ms is null))
) strict;

-- Environments of callers, each distinct one stored once: `NAME=value` strings, each ended by a NUL.
create table environments (
  id integer primary key,
  fingerprint integer not null,
  variables blob not null
) strict;

create index environments_by_fingerprint on environments (fingerprint);

-- A worker that has stopped keeps its row, because the history of attempts refers to it.
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
  last_heartbeat integer not null,
  folder text not null default '', -- where its files are: an absolute path, byte for byte as the system has it
  stop_seen integer not null default 0, -- the newest row of `stops` that does not apply to it
  last_seq integer, -- the newest job when it stopped: it ran none that is newer
  -- The machine, home and pid namespace that it runs in, and the file that its liveness lock is on. Other workers trust a
  -- pid, a session or a lock of this worker only where all of these match their own.
  machine_id text not null default '',
  home_id text not null default '',
  pid_namespace integer not null default 0,
  lock_device integer not null default 0,
  lock_inode integer not null default 0,
  -- How many attempts it may have running, where that is more than its concurrency, which was lowered while they ran;
  -- null: as many as its concurrency.
  slots integer check (slots > concurrency)
) strict;

-- Finds the workers that have not stopped without reading those that have.
create index workers_live on workers (seq) where state <> 'stopped';

-- Orders to stop, numbered by `id`. An order applies to the workers of the pools that existed when it was given, and to
-- the workers that replace crashed ones of these pools. The newest row is never deleted, so that no number is used twice.
create table stops (
  id integer primary key,
  at integer not null,
  by text not null,
  kill_at integer, -- when attempts that still run are killed, on the lease clock like jobs.lease_until; null: never
  -- A home on a machine, by their ids: the name of a machine can change while workers run. Both null: all homes.
  machine_id text,
  home_id text
) strict;

create table batches (
  id integer primary key,
  name text not null unique,
  created_at integer not null,
  finished_at integer -- null: some of its jobs are not finished
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
  environment_id integer, -- of the caller that added it; null: the worker's
  missed_limit integer not null default 1 check (missed_limit >= 1), -- for on_missed = 'all'
  skipped_at integer, -- the last occurrence that was skipped because an earlier run was not finished
  created_by text not null default '',
  missed_at integer, -- the last occurrence that no worker fired in time
  check ((paused_at is null) = (paused_by is null))
) strict;

create index schedules_due on schedules (next_at) where next_at is not null and paused_at is null;

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
  lease_until integer, -- on the lease clock: milliseconds since the machine booted, so that neither sleep nor a clock jump expires a lease
  cancel_requested integer not null default 0 check (cancel_requested = 0 or cancel_requested = 1 or cancel_requested = 2), -- 1: by a user; 2: because it is replaced
  started_at integer,
  finished_at integer,
  exit_code integer,
  signal integer check (signal between 1 and 64),
  error text,
  reason text check (reason = 'retries_exhausted' or reason = 'crash_limit' or reason = 'user' or reason = 'dependency' or reason = 'not_retried' or reason = 'replaced'),
  created_at integer not null,
  updated_at integer not null,
  command text not null,
  cwd text,
  environment_id integer,
  timeout_ms integer check (timeout_ms > 0),
  unique_key text,
  tags text,       -- a JSON array; null: none
  depends_on text, -- a JSON array; null: nothing
  options text,    -- a JSON object with the fields that few jobs set; null: none
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
create index jobs_by_batch on jobs (batch_id, seq) where batch_id is not null;
-- The runs of a schedule, the newest last.
create index jobs_by_schedule on jobs (schedule_id, seq) where schedule_id is not null;

-- Jobs that can run now, in claim order. Kept apart from `jobs`, so that a claim never reads a job that cannot run.
create table ready (
  queue_id integer not null,
  priority integer not null,
  due_at integer not null,
  seq integer not null,
  primary key (queue_id, priority desc, due_at, seq)
) strict, without rowid;

-- Jobs that are not due yet: scheduled ones, and failed ones in their backoff.
create table waiting (
  due_at integer not null,
  seq integer not null,
  primary key (due_at, seq)
) strict, without rowid;

-- Which job depends on which. A row stays when it no longer blocks, for `graph`, until one of the two jobs is deleted. The
-- parents of a job are also in its depends_on, so they need no index here.
create table dependencies (
  parent_seq integer not null,
  child_seq integer not null,
  blocks integer not null default 1 check (blocks = 0 or blocks = 1),
  primary key (parent_seq, child_seq)
) strict, without rowid;

-- Finished jobs that have more dependents than one transaction unblocks.
create table pending_unblocks (
  parent_seq integer primary key,
  failed integer not null check (failed = 0 or failed = 1),
  after_seq integer not null default 0 -- dependents up to this seq have been unblocked
) strict;

create table unique_keys (
  key text primary key,
  seq integer not null,
  held_until integer -- null: until the job is finished
) strict, without rowid;

-- Keys that are held longer than their jobs exist, by when they expire.
create index unique_keys_ending on unique_keys (held_until) where held_until is not null;

create table job_tags (
  tag text not null,
  seq integer not null,
  primary key (tag, seq)
) strict, without rowid;

-- History: one row for each attempt that has ended, never changed.
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

-- Output that is small enough to be stored with its attempt instead of in a log file.
create table outputs (
  seq integer not null,
  number integer not null,
  content blob not null,
  primary key (seq, number)
) strict, without rowid;

-- Processes of running attempts that could not be killed, such as one that sudo started. A row counts while its job runs
-- this attempt.
create table unkillable (
  seq integer not null,
  attempt integer not null,
  pid integer not null,
  start_time integer not null, -- in clock ticks since boot: another process may get the pid later
  why text not null,
  primary key (seq, pid)
) strict, without rowid;

-- What people did.
create table events (
  id integer primary key,
  at integer not null,
  seq integer, -- of the job that it was done to, if any
  event text not null,
  by text not null,
  detail text
) strict;

create index events_by_job on events (seq) where seq is not null;

-- Number of jobs by queue and state, updated once in every transaction that changes it.
create table counters (
  queue_id integer not null,
  state text not null,
  count integer not null check (count >= 0),
  primary key (queue_id, state)
) strict, without rowid;

-- Number of jobs by batch and state, updated like `counters`.
create table batch_counters (
  batch_id integer not null,
  state text not null,
  count integer not null check (count >= 0),
  primary key (batch_id, state)
) strict, without rowid;

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
  delivered_at integer,  -- the last time that a delivery succeeded
  failing_since integer, -- null: the last try did not fail
  error text,            -- of the last try that failed
  gave_up integer not null default 0 check (gave_up >= 0), -- number of events that could not be delivered
  gave_up_at integer,    -- the last time that it gave up
  check ((command is null) <> (url is null))
) strict;

-- Events that hooks have not been notified of yet: written with the change that they are about, deleted when delivered.
-- A number is never used twice: a late report must not be taken for one about another event.
create table deliveries (
  id integer primary key autoincrement,
  name text not null,    -- the id that receivers see: unlike the number it is unique across queues
  hook_id integer not null,
  payload text not null, -- an event as JSON
  created_at integer not null,
  due_at integer not null,
  tries integer not null default 0,
  worker_seq integer     -- the worker that is sending it; due again when that takes too long
) strict;

create index deliveries_by_hook on deliveries (hook_id, due_at);
create index deliveries_sent on deliveries (worker_seq) where worker_seq is not null;

-- Periodic work that one worker does for all.
create table duties (
  name text primary key,
  due_at integer not null
) strict, without rowid;

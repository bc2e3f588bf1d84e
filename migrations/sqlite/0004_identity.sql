-- Which machine, home and pid namespace a worker runs in, and which file its liveness lock is on. Other workers believe
-- a pid, a session or a lock only where all of these match their own. Rows of earlier programs have none of it.

alter table workers add column machine_id text not null default '';
alter table workers add column home_id text not null default '';
alter table workers add column pid_namespace integer not null default 0;
alter table workers add column lock_device integer not null default 0;
alter table workers add column lock_inode integer not null default 0;

-- A stop order names a home on a machine by its ids: the name of a machine can change while workers run.
alter table stops drop column host;
alter table stops add column machine_id text;
alter table stops add column home_id text; -- null: everywhere

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

-- How many attempts a worker can have started, where that is more than its concurrency: this was lowered while they ran.
alter table workers add column slots integer check (slots > concurrency); -- null: as many as its concurrency

-- What a worker must know to be watched over and told what to do.

alter table workers add column folder text not null default ''; -- where its files are: absolute, byte for byte as the system has it
alter table workers add column stop_seen integer not null default 0; -- the newest of `stops` that does not concern it

-- Workers that have stopped stay, for the history. Those that have not are found without walking over them.
create index workers_live on workers (seq) where state <> 'stopped';

-- Orders to stop, numbered. Each concerns the workers of the pools that were there when it was given, those that come in
-- the place of a crashed one too. The newest is never deleted, so that no number is used twice.
create table stops (
  id integer primary key,
  at integer not null,
  by text not null,
  host text,      -- null: everywhere
  kill_at integer -- when what still runs is killed, on the lease clock, like jobs.lease_until; null: never
) strict;

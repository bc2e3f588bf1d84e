-- Workers on several machines, as migrations/sqlite/0002_hosts.sql except where a comment says otherwise.

-- Raised by every heartbeat. A worker on another machine is dead when an observer saw this number unchanged for a whole
-- lease on its own clock: no wall clock decides that, so none can jump.
alter table workers add column beat bigint not null default 0;
-- Its current problem, for readers that do not find its lock file; null: none.
alter table workers add column health text;
-- It sleeps, and hears notifications.
alter table workers add column listens bigint not null default 0 check (listens = 0 or listens = 1);

-- The output of attempts whose log file is on another machine, in parts of whole entries; `part_at` is the offset of the
-- part in the log file.
create table output_parts (
  seq bigint not null,
  number bigint not null,
  part_at bigint not null,
  content bytea not null,
  primary key (seq, number, part_at)
);

do $$
begin
  alter table output_parts alter column content set compression lz4;
exception
  when feature_not_supported then null;
end
$$;

-- Workers on several machines.

-- Raised by every heartbeat. A worker on another machine is dead when an observer saw this number unchanged for a whole
-- lease on its own clock: no wall clock decides that, so none can jump.
alter table workers add column beat integer not null default 0;
-- Its current problem, for readers that do not find its lock file; null: none.
alter table workers add column health text;

-- The output of attempts whose log file is on another machine, in parts of whole entries; `part_at` is the offset of the
-- part in the log file. Only a database that machines share has any.
create table output_parts (
  seq integer not null,
  number integer not null,
  part_at integer not null,
  content blob not null,
  primary key (seq, number, part_at)
) strict, without rowid;

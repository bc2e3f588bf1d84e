-- What happened in each queue, minute by minute.

-- One row per queue and time. Its number is made of the resolution (a minute, ten minutes, an hour), the first minute that it
-- covers, and the queue. Rows become part of coarser ones as they grow old, and at last of one that holds all that is older.
-- So the sum over all rows of a queue is everything that happened in it since the table exists.
--
-- `content` holds attempts, enqueued jobs and how many jobs there were, as the store encodes them. The statement is short and
-- has few columns, because every process parses it when it starts, and every turn of a worker writes a row.
create table minutes (
  id integer primary key,
  content blob not null
) strict;

-- How often a job entered this state since the column exists; `pending` only by being enqueued, `processing` not at all:
-- that is in `minutes`.
alter table counters add column entered integer not null default 0;

-- How many of the jobs that were enqueued the rows of `minutes` contain; null before the first sample.
alter table queues add column sampled integer;

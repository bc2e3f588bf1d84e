-- Version 3 for a reader that knows this version: views that last for one transaction. No cause is known there, so its
-- readers compute the causes of dead jobs.

create temp view causes as
  select cast(0 as bigint) as id, cast(0 as bigint) as queue_id, cast(0 as bigint) as shard, cast('' as text) as reason,
         cast(0 as bigint) as exit_code, cast(0 as bigint) as signal, cast('' as text) as message, cast(0 as bigint) as count,
         cast(0 as bigint) as first_at, cast(0 as bigint) as last_at where false;
create temp view jobs as select *, cast(null as bigint) as cause_id from jobs;
create temp view hooks as select *, cast(null as text) as results from hooks;

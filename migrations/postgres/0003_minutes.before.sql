-- Version 2 for a reader that knows this version: views that last for one transaction.

create temp view minutes as
  select cast(0 as bigint) as id, cast(0 as bigint) as shard, cast('' as bytea) as content where false;
create temp view counters as select *, cast(0 as bigint) as entered from counters;
create temp view queues as select *, cast(null as bigint) as sampled from queues;

-- Version 1 for a reader that knows this version: views that last for one transaction.

create temp view workers as
  select *, cast(0 as bigint) as beat, cast(null as text) as health, cast(0 as bigint) as listens from workers;
create temp view output_parts as
  select cast(0 as bigint) as seq, cast(0 as bigint) as number, cast(0 as bigint) as part_at, cast('' as bytea) as content
  where false;

//! A benchmark on a server uses a schema of its own.

use super::Machine;
use crate::store::fixture::schema::Schema;

#[test]
fn a_benchmark_leaves_the_queue_as_it_was_and_no_schema_behind() {
    let schema = Schema::new();
    let machine = Machine::new(&schema, "near");
    machine.enqueue("first", "true");
    let results = machine.run("bench --seconds 1 --json").ok().json();
    assert_eq!(results["store"], "postgres", "{results}");
    assert_eq!(results["results"][0]["limit_of"], "start a process");
    let jobs = machine.run("list --json").ok().json();
    assert_eq!(jobs.as_array().map(Vec::len), Some(1), "{jobs}");
    let left = "select nspname from pg_namespace where nspname like 'queuectl_scratch_%'";
    assert_eq!(schema.session().run(left), Vec::<String>::new());
    machine.run("status").ok().shows_no("served");
}

//! Exporting a queue that is larger than the memory.

use super::Machine;
use crate::store::fixture::schema::Schema;

const JOBS: usize = 40_000;
/// Less than the jobs take.
const MEMORY_KIB: u64 = 128 << 10;

#[test]
fn an_export_holds_only_a_part_of_the_jobs_in_memory() {
    let schema = Schema::new();
    let machine = Machine::new(&schema, "near");
    machine.enqueue("first", "true");
    schema.session().run(&format!(
        "insert into jobs (id, queue_id, priority, state, due_at, max_retries, created_at, updated_at, command)
         select 'j' || number, q.id, 0, 'pending', 1, 3, 1, 1, repeat('x', 4000)
         from generate_series(1, {JOBS}) number cross join queues q"
    ));
    let file = machine.home.folder().join("exported");
    let call = machine.call(&["export", &file.display().to_string()]).with_memory(MEMORY_KIB);
    call.run().ok();
    let exported = std::fs::read_to_string(&file).expect("it was written");
    assert_eq!(exported.lines().filter(|line| line.contains(r#""kind":"job""#)).count(), JOBS + 1);
}

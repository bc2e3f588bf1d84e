//! The SQL that gives a role the rights for its part in a queue. Direct grants are enough: no function of ours runs with
//! other rights than those of its caller.

use super::address::Address;
use super::identifier::{literal, quoted};
use crate::Result;
use crate::rows::params;
use crate::rows::tx::Tx;

domain::named_enum! {
    /// What a role does with a queue.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Part {
        /// Adds jobs; reads neither commands, environments nor output, and changes no job.
        Enqueuer = "enqueuer",
        /// Runs jobs, and does everything that the commands of queuectl do, except for migrations.
        Worker = "worker",
        /// Sees everything but environments and the secrets of hooks, and changes nothing.
        Reader = "reader",
        /// As a worker; also migrates the schema and grants rights.
        Admin = "admin",
    }
}

/// The rights of an enqueuer. A row may be locked by a role that may change some column of it; that is the reason for
/// rights to change columns which an enqueuer leaves alone.
const ENQUEUER: [(&str, &str); 17] = [
    ("meta", "select"),
    // The gate opens for writers that may insert, and closes only for those that may delete.
    ("gate_1", "insert"),
    ("settings", "select"),
    (
        "jobs",
        "select (seq, id, queue_id, state, due_at, blocked_by, worker_seq, unique_key, batch_id, created_at), insert, \
         update (blocked_by, depends_on)",
    ),
    ("queues", "select, insert, update (created_at)"),
    ("environments", "select (id, fingerprint), insert"),
    ("batches", "select, insert, update (finished_at)"),
    ("batch_counters", "select, insert, update (count)"),
    ("ready", "select, insert"),
    ("waiting", "select, insert"),
    ("floors", "select, insert, update"),
    ("dependencies", "select, insert"),
    ("unique_keys", "select, insert, update (seq, held_until)"),
    ("job_tags", "select, insert"),
    ("outputs", "insert"),
    ("counters", "select, insert, update (count, entered)"),
    // It names a worker that sleeps.
    ("workers", "select (seq, id, state, queues, listens), update (listens)"),
];

/// The first right that the role of this transaction lacks of those that [`Part::Worker`] has.
const MISSING_OF_WORKER: &str = "select cast(current_user as text), p.verb, cast(c.relname as text)
     from pg_class c cross join unnest(array['select', 'insert', 'update', 'delete']) with ordinality as p(verb, nth)
     where c.relnamespace = cast(current_schema() as regnamespace) and c.relkind = 'r' and c.relname <> 'meta'
           and not has_table_privilege(c.oid, p.verb)
     order by c.relname, p.nth limit 1";

/// Says which right the role lacks to run jobs, if it lacks any.
pub(super) fn missing_of_worker(tx: &Tx<'_>) -> Result<Option<String>> {
    tx.first(MISSING_OF_WORKER, params![], |row| {
        let (role, verb, table): (&str, &str, &str) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("role `{role}` cannot run jobs: it lacks the right to {verb} on the table `{table}`"))
    })
}

/// The columns of `hooks` without its secret.
const HOOK_COLUMNS: &str = "id, name, event, queue, threshold, command, url, cwd, environment_id, created_at, created_by, \
                            delivered_at, failing_since, error, gave_up, gave_up_at, results";

/// Statements for the owner of the schema to run, as one transaction. They first take away the rights that the role has
/// in the schema, so that its part can also become smaller.
pub fn grant(address: &Address, role: &str, part: Part) -> String {
    let (schema, database, role_name) = (quoted(&address.schema), quoted(&address.database), quoted(role));
    let mut statements = vec![
        format!("revoke all on all tables in schema {schema} from {role_name}"),
        format!("revoke all on all sequences in schema {schema} from {role_name}"),
        format!("revoke all on schema {schema} from {role_name}"),
        format!("grant connect on database {database} to {role_name}"),
        format!("grant usage on schema {schema} to {role_name}"),
    ];
    let on = |table: &str| format!("{schema}.{table}");
    match part {
        Part::Enqueuer => {
            let table =
                |(table, rights): (&str, &str)| format!("grant {rights} on {} to {role_name}", on(table));
            statements.extend(ENQUEUER.map(table));
            // The numbers of new jobs are taken before the jobs are inserted.
            statements.push(format!("grant usage on sequence {} to {role_name}", on("jobs_seq_seq")));
        }
        Part::Reader => {
            statements.push(format!("grant select on all tables in schema {schema} to {role_name}"));
            statements.extend(
                ["environments", "hooks"]
                    .map(|table| format!("revoke select on {} from {role_name}", on(table))),
            );
            statements
                .push(format!("grant select (id, fingerprint) on {} to {role_name}", on("environments")));
            statements.push(format!("grant select ({HOOK_COLUMNS}) on {} to {role_name}", on("hooks")));
        }
        Part::Worker => {
            let all = "select, insert, update, delete";
            statements.push(format!("grant {all} on all tables in schema {schema} to {role_name}"));
            statements.push(format!("revoke insert, update, delete on {} from {role_name}", on("meta")));
            statements.push(format!("grant usage on all sequences in schema {schema} to {role_name}"));
        }
        Part::Admin => {
            // Only an owner can migrate, and a member of the owner's role is one.
            let find_owner = format!(
                "select pg_get_userbyid(nspowner) from pg_namespace where nspname = {}",
                literal(&address.schema)
            );
            let body =
                format!("begin execute format('grant %I to %I', ({find_owner}), {}); end", literal(role));
            statements.push(format!("do {}", literal(&body)));
        }
    }
    let body: String = statements.into_iter().map(|statement| statement + ";\n").collect();
    format!("begin;\n{body}commit;\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_in_every_statement() {
        let address = Address::parse("postgres://h/d%22b?schema=s%22%27c").expect("valid");
        for part in Part::ALL {
            let sql = grant(&address, "r\"o'le\\", part);
            assert!(sql.starts_with("begin;\n") && sql.ends_with("commit;\n"), "{sql}");
            for statement in
                sql.lines().filter(|line| line.starts_with("grant") || line.starts_with("revoke"))
            {
                assert!(statement.contains("\"r\"\"o'le\\\""), "{statement}");
            }
            assert!(!sql.contains("s\"'c\".") && !sql.contains(" d\"b"), "{sql}");
        }
    }
}

//! The settings under which the statements of a store run. A session of ours has them from its startup packet. A pooler gives
//! each transaction to any session, so there every transaction begins with them.

use super::{IDLE_TIMEOUT, LOCK_TIMEOUT, STATEMENT_TIMEOUT, quoted};

/// The settings for the startup packet, in the form of the server's option `-c NAME=VALUE`.
pub(super) fn of_session(schema: &str) -> String {
    settings(schema).map(|(name, value)| format!("-c {name}={}", escaped(&value))).join(" ")
}

/// The same as statements for the beginning of a transaction.
pub(super) fn of_transaction(schema: &str) -> String {
    settings(schema).map(|(name, value)| format!("set local {name} = {value}; ")).concat()
}

/// As the server says it back, if the session has these settings.
pub(super) fn search_path(schema: &str) -> String {
    format!("{},pg_temp", quoted(schema))
}

/// The plans of queuectl's statements do not depend on their parameters, and planning them each time or compiling them costs
/// more than running them.
fn settings(schema: &str) -> [(&'static str, String); 6] {
    [
        ("search_path", search_path(schema)),
        ("jit", "off".to_owned()),
        ("plan_cache_mode", "force_generic_plan".to_owned()),
        ("statement_timeout", STATEMENT_TIMEOUT.as_millis().to_string()),
        ("lock_timeout", LOCK_TIMEOUT.as_millis().to_string()),
        ("idle_in_transaction_session_timeout", IDLE_TIMEOUT.as_millis().to_string()),
    ]
}

/// The server splits its options at white space, unless a backslash is before it.
fn escaped(value: &str) -> String {
    let escape = |c: char| if c.is_whitespace() || c == '\\' { format!("\\{c}") } else { c.to_string() };
    value.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_schema_survives_the_startup_packet() {
        assert!(of_session("queuectl").starts_with("-c search_path=\"queuectl\",pg_temp -c jit=off "));
        assert!(of_session(r#"my "x\"#).starts_with(r#"-c search_path="my\ ""x\\",pg_temp -c"#));
    }
}

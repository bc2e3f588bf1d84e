//! Ends sessions of other processes, as a restart of the server does.

use super::identifier::literal;
use super::session::Session;
use super::{Address, Target};
use crate::Result;

/// Which sessions to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    All,
    /// Those that listen for notifications.
    Listening,
}

/// Ends sessions that have the application name of this address, each of them with the given chance. Returns how many.
pub fn end_sessions(address: &Address, sessions: Sessions, chance: f64) -> Result<u64> {
    let session = Session::open(address, Target::Primary)?;
    let only = match sessions {
        Sessions::All => "",
        Sessions::Listening => " and query like 'listen %'",
    };
    let name = literal(&address.application_name);
    let ended = session.batch(&format!(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity
         where application_name = {name} and pid <> pg_backend_pid() and random() < {chance}{only}"
    ))?;
    Ok(ended.and_then(|count| count.parse().ok()).unwrap_or(0))
}

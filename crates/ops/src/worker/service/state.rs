//! How a service is doing, as systemd reports it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::systemd::{is_booted, systemctl};
use super::{Scope, ServiceError, ServiceName};
use domain::values::timestamp::Timestamp;
use sys::clock::{Clock, SystemClock, since_boot};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServiceState {
    pub unit: String,
    pub scope: Scope,
    /// The file of the unit.
    pub path: String,
    /// Whether the service is up.
    pub active: bool,
    /// As systemd names it: `active`, `activating`, `deactivating`, `inactive`, `failed`.
    pub state: String,
    /// Whether the service starts with the machine, or with the user's systemd.
    pub enabled: bool,
    /// Why the last run ended, if it failed.
    pub failure: Option<String>,
    /// When it came up.
    pub since: Option<Timestamp>,
    pub pid: Option<u32>,
    /// The line that the supervisor reports.
    pub status: Option<String>,
    /// Of the supervisor, the workers and their jobs.
    pub memory_bytes: Option<u64>,
    /// How often systemd has started it again after a failure.
    pub restarts: u64,
}

const PROPERTIES: &str = "--property=LoadState,FragmentPath,ActiveState,UnitFileState,Result,MainPID,StatusText,\
                          ActiveEnterTimestampMonotonic,MemoryCurrent,NRestarts";

/// Asks systemd.
pub fn state(scope: Scope, name: &ServiceName) -> Result<ServiceState, ServiceError> {
    if !is_booted() {
        return Err(ServiceError::NoSystemd);
    }
    let shown = systemctl(scope, &["show", PROPERTIES, &name.unit()])?;
    let now = Timestamp::from_millis(SystemClock.wall_millis());
    let state = read(scope, name, &shown, now, since_boot());
    let mut state = state.ok_or_else(|| ServiceError::NotInstalled(name.clone()))?;
    if let Some(socket) = name.socket() {
        state.add_socket(&systemctl(scope, &["show", PROPERTIES, &socket])?);
    }
    Ok(state)
}

impl ServiceState {
    /// A dashboard that has no client is up as long as its socket is.
    fn add_socket(&mut self, shown: &str) {
        let has = |line: &str| shown.lines().any(|found| found == line);
        self.enabled = has("UnitFileState=enabled");
        if !self.active && has("ActiveState=active") {
            self.active = true;
            "listening".clone_into(&mut self.state);
        }
    }
}

/// `None` if there is no such unit. `awake` is the time since boot at `now`.
fn read(
    scope: Scope,
    name: &ServiceName,
    shown: &str,
    now: Timestamp,
    awake: Duration,
) -> Option<ServiceState> {
    let properties: BTreeMap<&str, &str> = shown.lines().filter_map(|line| line.split_once('=')).collect();
    let property = |name| properties.get(name).copied().unwrap_or_default();
    if property("LoadState") != "loaded" {
        return None;
    }
    let text = |name| Some(property(name).to_owned()).filter(|text| !text.is_empty());
    let state = property("ActiveState");
    let active = matches!(state, "active" | "reloading");
    let entered = property("ActiveEnterTimestampMonotonic").parse().ok().filter(|micros| *micros > 0);
    let since = entered.map(|micros| now.saturating_sub(awake.saturating_sub(Duration::from_micros(micros))));
    Some(ServiceState {
        unit: name.unit(),
        scope,
        path: property("FragmentPath").to_owned(),
        active,
        state: state.to_owned(),
        enabled: property("UnitFileState").starts_with("enabled"),
        failure: text("Result").filter(|result| result != "success"),
        since: since.filter(|_| active),
        pid: property("MainPID").parse().ok().filter(|pid| *pid > 0),
        status: text("StatusText").filter(|_| state != "inactive"),
        // systemd writes `[not set]`, or the largest number, where it does not count.
        memory_bytes: property("MemoryCurrent").parse().ok().filter(|bytes| *bytes < u64::MAX),
        restarts: property("NRestarts").parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(shown: &str) -> Option<ServiceState> {
        let now = Timestamp::from_millis(1_000_000);
        read(Scope::System, &ServiceName::default(), shown, now, Duration::from_secs(100))
    }

    #[test]
    fn a_running_service_has_a_pid_a_start_and_a_status() {
        let shown = "LoadState=loaded\nFragmentPath=/etc/x\nActiveState=active\nUnitFileState=enabled\nResult=success\n\
                     MainPID=7\nStatusText=2 workers up, a=b\nActiveEnterTimestampMonotonic=40000000\n\
                     MemoryCurrent=18446744073709551615\nNRestarts=3\n";
        let state = parsed(shown).expect("it is loaded");
        assert!(state.active && state.enabled && state.failure.is_none());
        assert_eq!((state.pid, state.restarts, state.memory_bytes), (Some(7), 3, None));
        assert_eq!(state.since, Some(Timestamp::from_millis(940_000)));
        assert_eq!(state.status.as_deref(), Some("2 workers up, a=b"));
    }

    #[test]
    fn a_dashboard_without_clients_listens() {
        let shown = "LoadState=loaded\nActiveState=inactive\nUnitFileState=indirect\n";
        let mut state = parsed(shown).expect("it is loaded");
        state.add_socket("LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n");
        assert_eq!((state.active, state.enabled, state.state.as_str()), (true, true, "listening"));
    }

    #[test]
    fn a_failed_service_says_why_and_a_missing_one_is_not_found() {
        let shown = "LoadState=loaded\nActiveState=failed\nUnitFileState=disabled\nResult=exit-code\nMainPID=0\n\
                     ActiveEnterTimestampMonotonic=0\nMemoryCurrent=[not set]\n";
        let state = parsed(shown).expect("it is loaded");
        assert!(!state.active && !state.enabled);
        assert_eq!((state.failure.as_deref(), state.pid, state.since), (Some("exit-code"), None, None));
        assert_eq!(parsed("LoadState=not-found\nActiveState=inactive\n"), None);
    }
}

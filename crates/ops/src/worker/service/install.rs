//! Installing, restarting and removing a service.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::account::{ensure_account, ensure_home};
use super::state::state;
use super::systemd::{is_booted, run, systemctl, unit_folder};
use super::unit::{hidden_path, socket_unit, unit};
use super::{Scope, Service, ServiceError, ServiceName};
use sys::process::user;

domain::named_enum! {
    /// What installing changed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UnitChange {
        New = "new",
        Replaced = "replaced",
        None = "none",
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Installed {
    /// The file of the unit.
    pub path: PathBuf,
    pub change: UnitChange,
    /// Whether a user's service also runs while that user is not logged in; `None` for a service of the machine.
    pub lingers: Option<bool>,
}

/// Refuses what cannot be done on this machine or by this user.
fn check(scope: Scope) -> Result<(), ServiceError> {
    if !is_booted() {
        return Err(ServiceError::NoSystemd);
    }
    if scope == Scope::System && user::number() != user::ROOT {
        return Err(ServiceError::NotRoot);
    }
    Ok(())
}

/// Writes the unit and starts the service. A service that runs with an older unit is restarted: its jobs finish first.
pub fn install(service: &Service) -> Result<Installed, ServiceError> {
    check(service.scope)?;
    if let Some(missing) = service.writable.iter().find(|folder| !folder.is_dir()) {
        return Err(ServiceError::NotADirectory(missing.clone()));
    }
    if let Some(hidden) = hidden_path(service) {
        return Err(ServiceError::HiddenByPrivateTmp(hidden.to_owned()));
    }
    if let Some(account) = &service.account {
        ensure_account(account, &service.home)?;
        ensure_home(account, &service.home)?;
    }
    let (scope, name) = (service.scope, &service.name.unit());
    let folder = unit_folder(scope)?;
    let path = folder.join(name);
    let mut change = put(&path, &unit(service)?)?;
    let socket = service.name.socket();
    if let (Some(socket), Some(text)) = (&socket, socket_unit(service)?) {
        let changed = put(&folder.join(socket), &text)?;
        change = if change == UnitChange::None { changed } else { change };
    }
    systemctl(scope, &["daemon-reload"])?;
    let started = socket.as_ref().unwrap_or(name);
    systemctl(scope, &["enable", "--quiet", started])?;
    if change == UnitChange::Replaced {
        if socket.is_some() {
            // A socket cannot be opened anew while its service has it.
            systemctl(scope, &["stop", name])?;
        }
        systemctl(scope, &["restart", started])?;
    } else {
        systemctl(scope, &["start", started])?;
    }
    let lingers = (scope == Scope::User).then(enable_lingering);
    Ok(Installed { path, change, lingers })
}

/// Restarts the service: its jobs finish first, then it starts with the program that is installed now.
pub fn restart(scope: Scope, name: &ServiceName) -> Result<(), ServiceError> {
    check(scope)?;
    state(scope, name)?;
    systemctl(scope, &["restart", &name.unit()]).map(|_| ())
}

/// Stops the service after its running jobs, and removes its unit. A unit of a package is only disabled.
pub fn uninstall(scope: Scope, name: &ServiceName) -> Result<(), ServiceError> {
    check(scope)?;
    state(scope, name)?;
    let folder = unit_folder(scope)?;
    // The socket first: otherwise a client that connects now would start the service again.
    for unit in name.socket().into_iter().chain([name.unit()]) {
        systemctl(scope, &["disable", "--quiet", "--now", &unit])?;
        let path = folder.join(unit);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(ServiceError::CannotWrite { path, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    systemctl(scope, &["daemon-reload"])?;
    // There is nothing to reset unless the service had failed.
    let _ = systemctl(scope, &["reset-failed", &name.unit()]);
    Ok(())
}

fn put(path: &Path, text: &str) -> Result<UnitChange, ServiceError> {
    write_unit(path, text).map_err(|source| ServiceError::CannotWrite { path: path.to_owned(), source })
}

/// Replaces the unit in one step, so that systemd never reads half of it.
fn write_unit(path: &Path, text: &str) -> io::Result<UnitChange> {
    let before = fs::read_to_string(path);
    if before.as_ref().is_ok_and(|before| before == text) {
        return Ok(UnitChange::None);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, path)?;
    Ok(if before.is_ok() { UnitChange::Replaced } else { UnitChange::New })
}

/// Without it, the systemd of a user, and the service with it, runs only while that user is logged in.
fn enable_lingering() -> bool {
    run("loginctl", &["enable-linger"]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_written_only_if_it_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("user/queuectl-worker.service");
        let write = |text| write_unit(&path, text).expect("it is written");
        let changes = [write("a"), write("a"), write("b")];
        assert_eq!(changes, [UnitChange::New, UnitChange::None, UnitChange::Replaced]);
        assert_eq!(fs::read_to_string(&path).expect("a unit"), "b");
        let files = fs::read_dir(folder.path().join("user")).expect("a folder").count();
        assert_eq!(files, 1, "no other file is left");
    }
}

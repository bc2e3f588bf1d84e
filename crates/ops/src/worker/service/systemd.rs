//! Talking to systemd, by its programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Scope, ServiceError, ServiceName};

/// Exists while systemd runs the machine: sd_booted(3).
const BOOTED: &str = "/run/systemd/system";

/// Whether systemd runs this machine.
pub fn is_booted() -> bool {
    Path::new(BOOTED).is_dir()
}

/// The folder of the units that `service install` writes.
pub(crate) fn unit_folder(scope: Scope) -> Result<PathBuf, ServiceError> {
    Ok(match scope {
        Scope::System => PathBuf::from("/etc/systemd/system"),
        Scope::User => {
            let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
            let config = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
            config.ok_or(ServiceError::NoConfigFolder)?.join("systemd/user")
        }
    })
}

/// Runs `systemctl`, and returns what it printed.
pub(crate) fn systemctl(scope: Scope, arguments: &[&str]) -> Result<String, ServiceError> {
    let scope: &[&str] = match scope {
        Scope::User => &["--user"],
        Scope::System => &[],
    };
    run("systemctl", &[scope, arguments].concat())
}

/// The command that shows the log of a service.
pub fn log_command(scope: Scope, name: &ServiceName, lines: u64, is_followed: bool) -> Command {
    let mut command = Command::new("journalctl");
    command.arg(match scope {
        Scope::User => "--user-unit",
        Scope::System => "--unit",
    });
    command.arg(name.unit()).arg("--lines").arg(lines.to_string()).args(["--output", "cat", "--no-pager"]);
    if is_followed {
        command.arg("--follow");
    }
    command
}

/// Runs a program to its end. Its failure is reported with the line that says why.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, ServiceError> {
    let shown = || [&[program], arguments].concat().join(" ");
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ServiceError::CannotRun { command: shown(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    // `systemctl start` says on its first line what failed, and then where to look.
    let said = lines().find(|line| line.starts_with("Job for")).or_else(|| lines().next_back());
    let said = said.unwrap_or_default().trim_end_matches('.').to_owned();
    Err(ServiceError::Refused { command: shown(), said })
}

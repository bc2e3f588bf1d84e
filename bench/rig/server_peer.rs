//! Job queues for Node.js that keep their jobs in PostgreSQL. Their tasks are functions; here one that starts a program.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use store::postgres::Address;

use crate::REPOSITORY;
use crate::rig::peer::install_folder;

/// Each drains jobs in the way that was fastest for it.
pub(crate) const SERVER_PEERS: [ServerPeer; 2] = [
    ServerPeer { name: "graphile-worker", script: "graphile_worker.cjs" },
    ServerPeer { name: "pg-boss", script: "pg_boss.cjs" },
];

#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerPeer {
    pub(crate) name: &'static str,
    script: &'static str,
}

impl ServerPeer {
    pub(crate) fn is_installed(self) -> bool {
        modules().join(self.name).is_dir()
    }

    pub(crate) fn version(self) -> Result<String> {
        let file = modules().join(self.name).join("package.json");
        let package: serde_json::Value = serde_json::from_slice(&std::fs::read(file)?)?;
        Ok(package["version"].as_str().context("the package has no version")?.to_owned())
    }

    /// The seconds that this number of tasks takes, each of which starts `command`, or does nothing for `None`.
    pub(crate) fn drain(self, server: &Address, jobs: u32, slots: u32, command: Option<&str>) -> Result<f64> {
        let script = Path::new(REPOSITORY).join("bench/rig/peer").join(self.script);
        let output = Command::new("node")
            .arg(script)
            .arg(node_address(server))
            .args([&jobs.to_string(), &slots.to_string(), command.unwrap_or("none")])
            .env("NODE_PATH", modules())
            .output()
            .context("failed to start node")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} failed: {errors}", self.name);
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    }
}

/// Their driver takes the folder of the socket as a parameter.
fn node_address(server: &Address) -> String {
    let shown = server.to_string();
    match (shown.split_once('@'), shown.split_once("%2F")) {
        (Some((user, rest)), Some(_)) => match rest.split_once('/') {
            Some((host, database)) => format!("{user}@/{database}?host={}", host.replace("%2F", "/")),
            None => shown,
        },
        (Some(_) | None, Some(_) | None) => shown,
    }
}

fn modules() -> PathBuf {
    install_folder().join("npm/node_modules")
}

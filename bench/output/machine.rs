//! Where and when a run took place, in one line and without the host name or any path.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::{Context, Result};
use jiff::Timestamp;

/// The day, the commit, and the machine with the filesystem of this folder.
pub(crate) fn origin(folder: &Path, quick: bool) -> Result<String> {
    let now = Timestamp::now().to_string();
    let day = now.split('T').next().unwrap_or_default();
    let size = if quick { "a quick run: smaller, with fewer rounds" } else { "a full run" };
    Ok(format!("{day}, {}, {size}; {}.", commit(), machine(folder)?))
}

fn machine(folder: &Path) -> Result<String> {
    let cores = available_parallelism()?;
    let processors = fs::read_to_string("/proc/cpuinfo").context("failed to read /proc/cpuinfo")?;
    let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("{cores} cores ({model}), Linux {}, {}", kernel.trim(), filesystem(folder)?))
}

/// The filesystem type of the mount point that is the longest prefix of the folder.
fn filesystem(folder: &Path) -> Result<String> {
    let folder = folder.canonicalize()?;
    let mounts = fs::read_to_string("/proc/self/mounts").context("failed to read /proc/self/mounts")?;
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        folder.starts_with(place).then_some((place.len(), kind))
    });
    // Of two mounts at the same path, the later one hides the earlier.
    Ok(mounted.max_by_key(|(length, _)| *length).map_or("unknown", |(_, kind)| kind).to_owned())
}

/// The commit that was built. Changes in `docs` do not affect the measurements.
fn commit() -> String {
    let Some(head) = git(&["rev-parse", "--short=10", "HEAD"]) else {
        return "outside a repository".to_owned();
    };
    match git(&["status", "--porcelain", "--", ".", ":!docs"]) {
        Some(changed) if !changed.is_empty() => format!("commit {head} with changes"),
        Some(_) | None => format!("commit {head}"),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let root = crate::REPOSITORY;
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! A PostgreSQL server of its own, beside the measured programs, on which each commit reaches the disk.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Pid;
use store::postgres::Address;

use crate::REPOSITORY;
use crate::rig::usage::{cpu, proportional_megabytes};

/// Ends, and deletes all its data, when it is dropped or this process ends.
pub(crate) struct Cluster {
    script: Child,
    address: String,
    databases: AtomicU32,
}

impl Cluster {
    pub(crate) fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// As `start`, with changed settings of the server: `name=value`.
    pub(crate) fn start_with(settings: &[&str]) -> Result<Self> {
        let mut script = Command::new(Path::new(REPOSITORY).join("tests/with-postgres"))
            .arg("--durable")
            .args(settings.iter().flat_map(|setting| ["--set", setting]))
            .args(["sh", "-c", r#"echo "$QUEUECTL_TEST_POSTGRES"; cat"#])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to start tests/with-postgres")?;
        let output = script.stdout.take().context("the script has no output")?;
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address)?;
        ensure!(!address.trim().is_empty(), "the server did not start");
        Ok(Self { script, address: address.trim().to_owned(), databases: AtomicU32::new(0) })
    }

    /// A new database.
    pub(crate) fn database(&self) -> Result<Address> {
        let name = format!("bench{}", self.databases.fetch_add(1, Ordering::Relaxed));
        psql(&self.address, &format!("create database {name}"))?;
        Ok(Address::parse(&self.address.replacen("/postgres?", &format!("/{name}?"), 1))?)
    }

    /// The CPU time of all processes of the server, without those that have ended.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut total = cpu(self.postmaster()?)?;
        for child in self.children()? {
            // One that has just ended is left out.
            total += cpu(child).unwrap_or_default();
        }
        Ok(total)
    }

    /// The memory of the processes of the server. Each has its share of what they have in common.
    pub(crate) fn memory_megabytes(&self) -> Result<f64> {
        let share = |child: Pid| proportional_megabytes(child).unwrap_or_default();
        Ok(self.children()?.into_iter().map(share).sum())
    }

    fn children(&self) -> Result<Vec<Pid>> {
        let first = self.postmaster()?;
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"))?;
        let pid = |child: &str| Pid::from_raw(child.parse()?).context("the pid is not positive");
        children.split_whitespace().map(pid).collect()
    }

    fn postmaster(&self) -> Result<Pid> {
        let (_, folder) = self.address.split_once("host=").context("the address has no folder")?;
        let lines = fs::read_to_string(PathBuf::from(folder).join("data/postmaster.pid"))?;
        let pid = lines.lines().next().context("the file is empty")?.trim().parse()?;
        Pid::from_raw(pid).context("the pid is not positive")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The script ends with its input.
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

/// Executes statements as another program would.
pub(crate) fn psql(address: &str, statements: &str) -> Result<()> {
    let mut psql = Command::new("psql");
    let psql = psql.args(["-qXtA", "-v", "ON_ERROR_STOP=1", "-c", statements, address]).stdout(Stdio::null());
    ensure!(psql.status().context("failed to start psql")?.success(), "psql failed: {statements}");
    Ok(())
}

/// The rows of a query, each with the text of its columns.
pub(crate) fn rows(address: &Address, query: &str) -> Result<Vec<Vec<String>>> {
    let mut psql = Command::new("psql");
    let output = psql.args(["-qXtA", "-F", "\t", "-c", query, &address.to_string()]).output()?;
    ensure!(output.status.success(), "psql failed: {query}");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// A transaction that keeps the server from removing old versions of rows, as a dump does.
pub(crate) struct Snapshot(Child);

impl Snapshot {
    pub(crate) fn hold(address: &Address) -> Result<Self> {
        let mut psql = Command::new("psql")
            .args(["-qXtA", &address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to start psql")?;
        let input = psql.stdin.as_mut().context("it has an input")?;
        writeln!(input, "begin isolation level repeatable read; select count(*) from pg_class;")?;
        let mut answer = String::new();
        BufReader::new(psql.stdout.as_mut().context("it has an output")?).read_line(&mut answer)?;
        ensure!(!answer.trim().is_empty(), "psql did not answer");
        Ok(Self(psql))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

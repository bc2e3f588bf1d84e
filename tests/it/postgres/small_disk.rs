//! A server with a small disk.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::cluster::{Cluster, eventually, programs, server_account};

/// Mounts a disk, prints the result, and keeps it mounted until standard input is closed.
const HOLD: &str =
    "mount -t tmpfs -o size=$1,mode=0777 tmpfs \"$0\" && echo mounted || echo refused; exec cat";
/// More than the disk has.
const BALLAST: usize = 64 << 20;
/// The server refuses every new job and every outcome.
const REFUSE: &str = "create function queuectl.refuse() returns trigger language plpgsql as
    $$ begin raise 'could not extend file' using errcode = '53100'; end $$;
    create trigger refuse before insert or update on queuectl.jobs execute function queuectl.refuse()";

/// A server with a part of its files on a small disk that only its own processes see. If mounting is not permitted, the
/// server answers as if the disk were full, with a warning on standard error.
pub(crate) struct SmallDisk {
    // Ends before the disk is gone.
    pub(crate) cluster: Cluster,
    holder: Option<Child>,
}

impl SmallDisk {
    /// With the database `jobs` on the disk.
    pub(crate) fn with_database() -> Self {
        let disk = Self::mount("24m", "fsync = off\nmax_connections = 80");
        if disk.holder.is_some() {
            let space = disk.folder_of_server("space");
            disk.cluster.crash();
            disk.launch();
            let statement = format!("create tablespace small location '{}'", space.display());
            disk.cluster.sql("postgres", &statement);
            disk.cluster.sql("postgres", "alter database jobs set tablespace small");
        }
        disk
    }

    /// With the write-ahead log on the disk.
    pub(crate) fn with_log() -> Self {
        let disk = Self::mount("56m", "fsync = off\nmin_wal_size = 32MB\nmax_wal_size = 32MB");
        if disk.holder.is_some() {
            let log = disk.cluster.path().join("data/pg_wal");
            let outside = disk.folder_of_server("wal");
            disk.cluster.crash();
            let moved = Command::new("cp")
                .arg("-a")
                .arg(log.join("."))
                .arg(disk.inside().expect("it is mounted").join("wal"))
                .status();
            assert!(moved.expect("cp").success(), "the log is copied");
            fs::remove_dir_all(&log).expect("it was there");
            symlink(&outside, &log).expect("a link");
            disk.launch();
        }
        disk
    }

    fn mount(size: &str, settings: &str) -> Self {
        let cluster = Cluster::start(settings);
        let folder = cluster.path().join("small");
        fs::create_dir(&folder).expect("a folder");
        let mut command = Command::new("unshare");
        command.args(["-m", "/bin/sh", "-c", HOLD]).arg(&folder).arg(size).current_dir("/");
        let holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut disk = Self { cluster, holder: holder.ok() };
        if !disk.is_mounted() {
            eprintln!("WARNING: no disk can be mounted here, so the server only says that it is full");
            disk.holder = None;
        }
        disk
    }

    fn is_mounted(&mut self) -> bool {
        let Some(holder) = &mut self.holder else { return false };
        let mut said = String::new();
        let out = holder.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut said).expect("the holder prints a line");
        said == "mounted\n"
    }

    /// The folder as the holder sees it.
    fn inside(&self) -> Option<PathBuf> {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.as_ref()?.id()));
        Some(root.join(self.cluster.path().join("small").strip_prefix("/").expect("absolute")))
    }

    /// Makes a folder on the disk. Returns its path as the server sees it.
    fn folder_of_server(&self, name: &str) -> PathBuf {
        let folder = self.inside().expect("it is mounted").join(name);
        fs::create_dir(&folder).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("a mode");
        let (user, group) = server_account().expect("only root can mount");
        chown(&folder, Some(user), Some(group)).expect("the folder is given away");
        self.cluster.path().join("small").join(name)
    }

    /// Starts the server where it sees the disk.
    fn launch(&self) {
        assert!(self.try_launch(), "the server starts");
    }

    fn try_launch(&self) -> bool {
        let Some(holder) = &self.holder else { return false };
        let (user, group) = server_account().expect("only root can mount");
        let mut start = Command::new("nsenter");
        start.arg(format!("--mount=/proc/{}/ns/mnt", holder.id()));
        start.args([format!("--setuid={user}"), format!("--setgid={group}")]).current_dir("/");
        start.arg(programs().join("pg_ctl")).args(["-D", &self.cluster.data(), "-w", "-l"]);
        start.arg(self.cluster.path().join("log")).arg("start").stdout(Stdio::null()).stderr(Stdio::null());
        start.status().expect("nsenter starts").success()
    }

    /// Whether it is a disk of its own.
    pub(crate) fn is_real(&self) -> bool {
        self.holder.is_some()
    }

    /// Starts the server unless it has survived.
    pub(crate) fn wait_until_up(&self) {
        let is_up = || self.cluster.try_sql("postgres", "jobs", "select 1").status.success();
        eventually("the server answers", || (is_up() || (self.try_launch() && is_up())).then_some(()));
    }

    pub(crate) fn fill(&self) {
        match self.inside() {
            Some(inside) => {
                assert!(fs::write(inside.join("ballast"), vec![0; BALLAST]).is_err(), "it is full");
            }
            None => drop(self.cluster.sql("jobs", REFUSE)),
        }
    }

    pub(crate) fn empty(&self) {
        match self.inside() {
            Some(inside) => fs::remove_file(inside.join("ballast")).expect("it was there"),
            None => drop(self.cluster.sql("jobs", "drop function queuectl.refuse() cascade")),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.cluster.stop();
        if let Some(holder) = &mut self.holder {
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}

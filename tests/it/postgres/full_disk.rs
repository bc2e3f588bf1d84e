//! A server whose disk is full. Its write-ahead log is on another disk: without space for that the server itself ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::cluster::{Cluster, programs, server_account};
use super::working_machine::WorkingMachine;
use crate::cli::harness::working_home::wait_until;

/// Mounts a disk, prints the result, and keeps it mounted until standard input is closed.
const HOLD: &str =
    "mount -t tmpfs -o size=24m,mode=0777 tmpfs \"$0\" && echo mounted || echo refused; exec cat";
/// More than the disk has.
const BALLAST: usize = 32 << 20;
/// The server refuses every new job and every outcome.
const REFUSE: &str = "create function queuectl.refuse() returns trigger language plpgsql as
    $$ begin raise 'could not extend file' using errcode = '53100'; end $$;
    create trigger refuse before insert or update on queuectl.jobs execute function queuectl.refuse()";

/// A server with the database `jobs` on a small disk that only its own processes see. If mounting is not permitted, the
/// server answers as if the disk were full, with a warning on standard error.
struct SmallDisk {
    // Ends before the disk is gone.
    cluster: Cluster,
    holder: Option<Child>,
}

impl SmallDisk {
    fn new() -> Self {
        let cluster = Cluster::start("fsync = off");
        let folder = cluster.path().join("small");
        fs::create_dir(&folder).expect("a folder");
        let mut command = Command::new("unshare");
        command.args(["-m", "/bin/sh", "-c", HOLD]).arg(&folder).current_dir("/");
        let holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut disk = Self { cluster, holder: holder.ok() };
        if disk.is_mounted() {
            disk.move_database();
        } else {
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

    /// Starts the server again where it sees the disk, and moves the database there.
    fn move_database(&self) {
        let (cluster, inside) = (&self.cluster, self.inside().expect("it is mounted"));
        let space = inside.join("space");
        fs::create_dir(&space).expect("a folder");
        fs::set_permissions(&space, fs::Permissions::from_mode(0o700)).expect("a mode");
        let (user, group) = server_account().expect("only root can mount");
        chown(&space, Some(user), Some(group)).expect("the folder is given away");
        cluster.crash();
        let holder = self.holder.as_ref().expect("it is mounted").id();
        let mut start = Command::new("nsenter");
        start.arg(format!("--mount=/proc/{holder}/ns/mnt"));
        start.args([format!("--setuid={user}"), format!("--setgid={group}")]).current_dir("/");
        start.arg(programs().join("pg_ctl")).args(["-D", &cluster.data(), "-w", "-l"]);
        start.arg(cluster.path().join("log")).arg("start").stdout(Stdio::null());
        assert!(start.status().expect("nsenter starts").success(), "the server starts");
        let location = cluster.path().join("small/space").display().to_string();
        cluster.sql("postgres", &format!("create tablespace small location '{location}'"));
        cluster.sql("postgres", "alter database jobs set tablespace small");
    }

    fn fill(&self) {
        match self.inside() {
            Some(inside) => {
                assert!(fs::write(inside.join("ballast"), vec![0; BALLAST]).is_err(), "it is full");
            }
            None => drop(self.cluster.sql("jobs", REFUSE)),
        }
    }

    fn empty(&self) {
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

#[test]
fn fault_37_a_full_disk_of_the_server_refuses_jobs_and_keeps_outcomes_waiting() {
    let disk = SmallDisk::new();
    let machine = WorkingMachine::new(&disk.cluster.socket_url("keeper"));
    machine.start_worker();
    let folder = machine.home.folder().display().to_string();
    // Too long for the free space of pages that exist.
    let held =
        "until [ -e go ]; do sleep 0.02; done; head -c 20000 /dev/urandom | base64 -w 0; echo done > ended";
    machine.run(["enqueue", "-q", "--id", "held", "--cwd", &folder, "-c", held]).ok();
    machine.wait_for_state("held", "processing");

    disk.fill();
    let random: String = (0..60_000).map(|_| fastrand::alphanumeric()).collect();
    let long = format!(": {random}");
    let refused = machine.run(["enqueue", "-q", "--id", "refused", "-c", &long]).fails(5);
    let refused =
        refused.says("the disk of the PostgreSQL server is full").says("free some space on the server");
    assert_eq!(refused.stderr.lines().count(), 2, "an error and a hint: {refused}");
    machine.run(["status"]).ok();
    machine.go();
    wait_until("the command has ended", || machine.home.folder().join("ended").exists());
    let journal = || fs::read_to_string(machine.home.path().join("worker.log")).unwrap_or_default();
    wait_until("the worker reports the full disk", || {
        journal().contains("the disk of the PostgreSQL server is full")
    });
    assert_eq!(machine.show("held")["state"], "processing", "its outcome could not be recorded");

    disk.empty();
    machine.run(["wait", "-q", "held"]).ok();
    assert_eq!(machine.show("held")["history"].as_array().map(Vec::len), Some(1), "it ran once");
    assert_eq!(machine.run(["logs", "held"]).ok().stdout.len(), 26_668);
    machine.run(["show", "refused"]).fails(3);
    machine.run(["enqueue", "-q", "--id", "refused", "-c", &long]).ok();
    machine.run(["wait", "-q", "refused"]).ok();
}

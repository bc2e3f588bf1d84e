//! Records programs while they write to a folder that represents a disk.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::disk::Disk;
use super::record;
use super::record::Record;
use crate::cli::harness::PROGRAM;
use crate::cli::harness::background::end_of;

/// The home on the disk. Its parent folder does not exist at first either.
pub const HOME: &str = "made/home";

pub struct Recording {
    folder: TempDir,
    /// The disk before the recording.
    pub start: Disk,
    /// The jobs that were on it before.
    pub old_jobs: &'static [&'static str],
    calls: AtomicUsize,
    /// Environment variables of every call.
    variables: &'static [(&'static str, &'static str)],
}

impl Recording {
    /// Records this work on an empty disk.
    pub fn of(work: impl FnOnce(&Self)) -> Self {
        Self::with(&[], work)
    }

    /// The same with these environment variables.
    pub fn with(variables: &'static [(&'static str, &'static str)], work: impl FnOnce(&Self)) -> Self {
        Self { variables, ..Self::on_home(|_| {}, &[]) }.record(work)
    }

    /// A recording that starts with an existing home with these jobs.
    pub fn on_home(make: impl FnOnce(&Path), old_jobs: &'static [&'static str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let disk = folder.path().join("disk");
        fs::create_dir(&disk).expect("the disk is created");
        fs::write(folder.path().join("record"), "").expect("the record is created");
        make(&disk.join(HOME));
        Self { start: Disk::holding(&disk), folder, old_jobs, calls: AtomicUsize::new(0), variables: &[] }
    }

    /// Records this work. If `QUEUECTL_POWER_RECORD` names an earlier record, that one is used instead.
    pub fn record(self, work: impl FnOnce(&Self)) -> Self {
        match std::env::var_os("QUEUECTL_POWER_RECORD") {
            Some(earlier) => drop(fs::copy(earlier, self.log()).expect("the earlier record is copied")),
            None => work(&self),
        }
        self
    }

    /// The root of the disk, as the kernel reports it.
    pub fn disk(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder exists").join("disk")
    }

    pub fn home(&self) -> PathBuf {
        self.disk().join(HOME)
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    pub fn records(&self) -> Vec<Record> {
        record::read(&self.log())
    }

    /// The recorded program with these arguments. `promise` says what its output or its exit promises; empty: nothing.
    pub fn command<A: AsRef<OsStr>>(&self, promise: &str, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("--home").arg(self.home()).args(args).current_dir(self.folder.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.folder.path());
        command.env("LD_PRELOAD", recorder()).env("POWER_LOG", self.log()).env("POWER_ROOT", self.disk());
        command.env("POWER_PROGRAM", Path::new(PROGRAM).canonicalize().expect("the program exists"));
        command.envs(std::env::var_os("QUEUECTL_MIGRATIONS").map(|files| ("QUEUECTL_MIGRATIONS", files)));
        command.envs(self.variables.iter().copied());
        if !promise.is_empty() {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            command.env("POWER_CALL", format!("{number}#{promise}"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Runs a call that must succeed.
    #[track_caller]
    pub fn run<A: AsRef<OsStr>>(&self, promise: &str, args: impl IntoIterator<Item = A>) {
        let mut command = self.command(promise, args);
        let output =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {}: {stderr}", output.status);
    }

    /// Runs a call that must fail with a conflict.
    #[track_caller]
    pub fn conflict<A: AsRef<OsStr>>(&self, promise: &str, args: impl IntoIterator<Item = A>) {
        let mut command = self.command(promise, args);
        let output = command.stderr(Stdio::piped()).output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{command:?}: {}: {stderr}", output.status);
    }

    /// Runs a call that dies at this fail-point. `MARK` in it is replaced by a file outside the disk.
    pub fn die_at<A: AsRef<OsStr>>(&self, point: &str, args: impl IntoIterator<Item = A>) {
        let mark = self.folder.path().join("mark");
        let point = point.replace("MARK", mark.to_str().expect("names are UTF-8"));
        die(self.command("", args).env("QUEUECTL_FAILPOINT", point));
    }

    /// Runs a call that dies just before it first syncs this file of the home.
    pub fn die_before_sync<A: AsRef<OsStr>>(&self, file: &str, args: impl IntoIterator<Item = A>) {
        die(self.command("", args).env("POWER_DIE_BEFORE_SYNC", format!("{HOME}/{file}")));
    }

    /// Enqueues one job with its own process.
    #[track_caller]
    pub fn enqueue(&self, id: &str, command: &str) {
        self.run("enqueue", ["enqueue", "--id", id, "--command", command]);
    }

    /// Keeps the folder for inspection.
    pub fn keep(&mut self) {
        self.folder.disable_cleanup(true);
    }
}

fn die(command: &mut Command) {
    let status = end_of(command.spawn().expect("the program starts"));
    assert_eq!(
        status.signal(),
        Some(Signal::KILL.as_raw()),
        "the program did not die at the expected point: {command:?}"
    );
}

/// A stream of jobs into one process, which stores and acknowledges them in chunks.
pub struct Stream {
    child: Child,
    stdin: ChildStdin,
    printed: Lines<BufReader<ChildStdout>>,
}

impl Stream {
    pub fn open(recording: &Recording) -> Self {
        let mut command = recording.command("enqueue", ["enqueue", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let printed = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        Self { child, stdin, printed }
    }

    /// Sends jobs and waits until each is acknowledged.
    pub fn send(&mut self, jobs: &[(String, String)]) {
        let mut lines = String::new();
        for (id, command) in jobs {
            let line = serde_json::json!({"id": id, "command": command});
            lines += &line.to_string();
            lines.push('\n');
        }
        self.stdin.write_all(lines.as_bytes()).expect("the stream reads its input");
        for (id, _) in jobs {
            let printed =
                self.printed.next().expect("the stream acknowledges every job").expect("an id is UTF-8");
            assert_eq!(printed, *id);
        }
    }

    pub fn close(self) {
        drop(self.stdin);
        assert!(end_of(self.child).success(), "the stream succeeds");
    }
}

/// Workers that run concurrently with the workload.
pub struct Workers {
    child: Option<Child>,
}

impl Workers {
    pub fn start(recording: &Recording) -> Self {
        let args = ["worker", "run", "--quiet", "--concurrency", "2"];
        let child = recording.command("", args).stdout(Stdio::null()).spawn().expect("the workers start");
        Self { child: Some(child) }
    }

    /// Drains the workers.
    pub fn stop(mut self) {
        let child = self.child.take().expect("the workers are running");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("the signal is sent");
        assert!(end_of(child).success(), "the workers succeed");
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A failed test must not leave processes: workers end with their supervisor.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The recorder library, compiled once.
fn recorder() -> &'static Path {
    static RECORDER: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, library) = RECORDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (source, library) = (folder.path().join("recorder.c"), folder.path().join("recorder.so"));
        fs::write(&source, include_str!("recorder.c")).expect("the source is written");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(&source);
        let output = compile.output().expect("a C compiler is installed, because SQLite was built with it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (folder, library)
    });
    library
}

//! A separate home for each test, and assertions on runs of the program.
//!
//! ```ignore
//! let home = Home::new();
//! home.run(["enqueue", "--id", "a", "--", "true"]).ok().prints("a\n");
//! home.run(["cancel", "nope"]).fails(3).says("there is no job `nope`");
//! ```

pub(crate) mod background;
pub(crate) mod pseudo_terminal;
pub(crate) mod test_worker;
pub(crate) mod working_home;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use domain::job::Job;
use serde_json::Value;
use store::sqlite::SqliteStore;
use store::{JobFilter, Page, Store};
use sys::clock::SystemClock;
use tempfile::TempDir;

/// The program under test: that of this build, or the one that `QUEUECTL_TEST_PROGRAM` names when the tests are compiled.
pub(crate) const PROGRAM: &str = match option_env!("QUEUECTL_TEST_PROGRAM") {
    Some(program) => program,
    None => env!("CARGO_BIN_EXE_queuectl"),
};
/// The version of the schema after the [`made_up_migrations`].
#[cfg(debug_assertions)]
pub(crate) const MADE_UP_VERSION: i64 = store::sqlite::SCHEMA_VERSION + 2;
/// Tests of another build that run concurrently have ended by then.
const OTHER_BUILD: std::time::Duration = std::time::Duration::from_secs(3_600);
/// An unprivileged user, to which tests switch when they run as root, because permissions do not apply to root.
pub(crate) const UNPRIVILEGED: u32 = 65_534;

/// A temporary folder in which the program runs, containing the home of a queue that does not exist yet.
pub(crate) struct Home {
    folder: TempDir,
}

impl Drop for Home {
    /// Workers that a test killed leave their groups.
    fn drop(&mut self) {
        sys::cgroup::end_recorded(&self.path().join("workers"));
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A home with one pending job for each of these ids, in this order.
    pub(crate) fn with_jobs(ids: &[&str]) -> Self {
        let home = Self::new();
        for id in ids {
            home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
        }
        home
    }

    /// A home with an empty queue.
    pub(crate) fn with_queue() -> Self {
        let home = Self::new();
        home.make_queue(&home.path());
        home
    }

    /// Makes an empty queue, with a verb that leaves nothing in it.
    pub(crate) fn make_queue(&self, home: &Path) {
        let args = ["--home".as_ref(), home.as_os_str(), "enqueue".as_ref(), "-q".as_ref(), "[]".as_ref()];
        self.call_without_home(args).run().ok();
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the folder after the test.
    pub(crate) fn keep(&mut self) {
        self.folder.disable_cleanup(true);
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join("home")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("queue.db")
    }

    /// Puts a file into the folder in which the program runs.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder().join(name);
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder).expect("its folder is made");
        fs::write(&path, content).expect("the file is written");
        path
    }

    /// Runs the program on this home.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> RunResult {
        self.call(args).run()
    }

    /// The program with these arguments on this home, ready to run.
    pub(crate) fn call<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Call {
        let home = [OsString::from("--home"), self.path().into_os_string()];
        self.call_without_home(home.into_iter().chain(args.into_iter().map(|arg| arg.as_ref().to_owned())))
    }

    /// As `call`, but the program has to find its home itself.
    pub(crate) fn call_without_home<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Call {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(self.folder()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.folder());
        Call { command, stdin: Vec::new() }
    }

    /// The queue through the library, for operations that no command offers.
    pub(crate) fn store(&self) -> Box<dyn Store> {
        fs::create_dir_all(self.path()).expect("the home is made");
        Box::new(SqliteStore::open(&self.database(), Arc::new(SystemClock)).expect("the store opens"))
    }

    /// All jobs, the newest first.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        if !self.database().exists() {
            return Vec::new();
        }
        let everything = Page { limit: usize::MAX, after: None };
        self.store().list(&JobFilter::default(), &everything).expect("the jobs are listed")
    }

    pub(crate) fn count(&self) -> usize {
        self.jobs().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The object that `show --json` prints for a job.
    pub(crate) fn show(&self, id: &str) -> Value {
        self.run(["show", id, "--json"]).ok().json()
    }

    pub(crate) fn state_of(&self, id: &str) -> String {
        self.show(id)["state"].as_str().expect("a state is text").to_owned()
    }
}

/// A run that is about to begin.
pub(crate) struct Call {
    command: Command,
    stdin: Vec<u8>,
}

impl Call {
    pub(crate) fn with_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn envs(mut self, variables: impl IntoIterator<Item = (String, OsString)>) -> Self {
        self.command.envs(variables);
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn at(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs as a user to whom permissions apply, from a place where that user can reach the program.
    pub(crate) fn unprivileged(self) -> Self {
        if !is_root() {
            return self;
        }
        let mut call = self.through(Command::new(program_for_all_users()));
        call.command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        call
    }

    /// Allows the run this much memory, in KiB.
    pub(crate) fn with_memory(self, kibibytes: u64) -> Self {
        self.with_limit(&format!("-v {kibibytes}"))
    }

    /// Gives the run a limit, as `ulimit` takes it.
    pub(crate) fn with_limit(self, limit: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("ulimit {limit} && exec \"$0\" \"$@\"")).arg(PROGRAM);
        self.through(command)
    }

    /// Lets signals end the run, even if the parent of the tests ignores them.
    pub(crate) fn interruptible(self) -> Self {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM,HUP", PROGRAM]);
        self.through(command)
    }

    /// The same call through another command, which gets the arguments.
    pub(crate) fn through(self, mut command: Command) -> Self {
        let variables = self.command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.args(self.command.get_args()).env_clear().envs(variables);
        command.current_dir(self.command.get_current_dir().expect("every call has a folder"));
        Self { command, stdin: self.stdin }
    }

    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    pub(crate) fn spawn(&mut self) -> Child {
        let piped = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().expect("the program starts")
    }

    pub(crate) fn run(mut self) -> RunResult {
        let mut child = self.spawn();
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let bytes = std::mem::take(&mut self.stdin);
        let writer = std::thread::spawn(move || {
            // The program may stop reading before the end.
            let _ = stdin.write_all(&bytes);
        });
        let output = child.wait_with_output().expect("the program ends");
        writer.join().expect("the writer ends");
        RunResult {
            what: format!("{:?}", self.command),
            stdout: String::from_utf8(output.stdout).expect("stdout is text"),
            stderr: String::from_utf8(output.stderr).expect("stderr is text"),
            status: output.status,
        }
    }
}

/// Puts two migrations that no program has into a folder. With the result in `QUEUECTL_MIGRATIONS` the program is one that
/// knows them. The second needs the first. Released builds take no migrations from tests.
#[cfg(debug_assertions)]
pub(crate) fn made_up_migrations(folder: &Path) -> OsString {
    let migrations = [
        "alter table jobs add column doubled integer; update jobs set doubled = 2 * seq;
         create table made_up (seq integer primary key, state text not null) strict;",
        "insert into made_up select seq, state from jobs; create index made_up_by_state on made_up (state);",
    ];
    let paths = migrations.iter().enumerate().map(|(at, statements)| {
        let path = folder.join(format!("made-up-{at}.sql"));
        // Once only: a program may be reading it.
        if !path.exists() {
            fs::write(&path, statements).expect("a migration is written");
        }
        path
    });
    std::env::join_paths(paths).expect("no colon in the name of a temporary folder")
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The program in a folder that every user can enter; the build folder may be in a private home. All tests share one copy
/// per build, and copies of earlier builds are deleted: no test could delete its own copy when its process ends.
fn program_for_all_users() -> &'static Path {
    static COPY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    COPY.get_or_init(|| {
        let folder = std::env::temp_dir().join("queuectl-tests");
        let _ = fs::create_dir(&folder);
        let meta = folder.symlink_metadata().expect("the folder of copies");
        assert!(
            meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw(),
            "`{}` is ours",
            folder.display()
        );
        allow(&folder, 0o755);
        let build = fs::metadata(PROGRAM).expect("the program");
        let copy = folder.join(format!("{}-{}-{}", build.ino(), build.mtime(), build.mtime_nsec()));
        if !copy.exists() {
            let is_old = |entry: &fs::DirEntry| {
                let age = entry.metadata().ok().and_then(|meta| meta.modified().ok()?.elapsed().ok());
                age.is_some_and(|age| age > OTHER_BUILD)
            };
            for earlier in fs::read_dir(&folder).expect("the folder of copies").flatten().filter(is_old) {
                let _ = fs::remove_file(earlier.path());
            }
            let making = tempfile::tempdir_in(&folder).expect("a temporary folder");
            fs::rename(copy_program(making.path()), &copy).expect("the copy has its name");
        }
        copy
    })
}

/// Copies the program into a folder where every user can execute it.
pub(crate) fn copy_program(folder: &Path) -> PathBuf {
    let program = folder.join("queuectl");
    // Copied by another process: a file that this one has open for writing is briefly also open in a process that another
    // thread is starting, and then it cannot be executed.
    let copied = Command::new("cp").arg(PROGRAM).arg(&program).status().expect("cp runs");
    assert!(copied.success(), "the program is copied");
    allow(&program, 0o755);
    program
}

pub(crate) fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode is set");
}

/// The result of a run.
pub(crate) struct RunResult {
    what: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

impl RunResult {
    /// Asserts success.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.status.code(), Some(0), "{self}");
        self
    }

    /// Asserts that it failed with this code and a well-formed error.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self}");
        assert!(!self.stderr.contains("panicked"), "it panicked: {self}");
        let errors = self.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let hints = self.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
        let objects = self.stderr.lines().filter(|line| line.starts_with('{')).count();
        assert!(errors + objects >= 1, "an error was expected: {self}");
        assert_eq!(errors + hints + objects, self.stderr.lines().count(), "lines of another form: {self}");
        self
    }

    /// Asserts that standard output is exactly this.
    #[track_caller]
    pub(crate) fn prints(self, stdout: &str) -> Self {
        assert_eq!(self.stdout, stdout, "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn shows(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "`{part}` is missing on stdout: {self}");
        self
    }

    #[track_caller]
    pub(crate) fn shows_no(self, part: &str) -> Self {
        assert!(!self.stdout.contains(part), "`{part}` is on stdout: {self}");
        self
    }

    /// Asserts that standard error contains this.
    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "`{part}` is missing on stderr: {self}");
        self
    }

    /// Asserts that standard error is empty.
    #[track_caller]
    pub(crate) fn says_nothing(self) -> Self {
        assert_eq!(self.stderr, "", "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        parse(&self.stdout).unwrap_or_else(|error| panic!("stdout is no JSON ({error}): {self}"))
    }

    /// The error object of a failure with `--json`.
    #[track_caller]
    pub(crate) fn error_json(&self) -> Value {
        parse(&self.stderr).unwrap_or_else(|error| panic!("stderr is no JSON ({error}): {self}"))
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text)
}

impl std::fmt::Display for RunResult {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short: String = self.what.chars().take(500).collect();
        write!(out, "\n{short}\n{}\nstdout: {}\nstderr: {}", self.status, self.stdout, self.stderr)
    }
}

/// The ids in an array of jobs, in their order.
pub(crate) fn ids(jobs: &Value) -> Vec<&str> {
    let jobs = jobs.as_array().expect("an array of jobs");
    jobs.iter().map(|job| job["id"].as_str().expect("an id is text")).collect()
}

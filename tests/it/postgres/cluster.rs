//! A private PostgreSQL server in a temporary folder, on a socket and on loopback.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::time::Duration;

use sys::poll::Poll;
use tempfile::TempDir;

/// The password of the role `keeper`, which every session over TCP has to give.
pub(crate) const PASSWORD: &str = "pg-S3cret/pass word";
/// [`PASSWORD`] inside a URL.
pub(crate) const PASSWORD_IN_URL: &str = "pg-S3cret%2Fpass%20word";

/// The server refuses to run as root.
const SERVER_ACCOUNT: &str = "postgres";

pub(crate) struct Cluster {
    folder: TempDir,
    pub(crate) port: u16,
    /// The words with which its programs enter a network namespace.
    launcher: Vec<OsString>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

impl Cluster {
    /// A running server with these lines in its `postgresql.conf`. Its socket trusts everyone; on loopback it wants the
    /// password of a role, and in TLS too.
    pub(crate) fn start(settings: &str) -> Self {
        let cluster = Self::prepare();
        cluster.initialize(settings);
        cluster
    }

    /// Makes the database and starts the server.
    pub(crate) fn initialize(&self, settings: &str) {
        let data = self.data();
        self.program(
            "initdb",
            &["-A", "trust", "-U", "postgres", "-N", "-E", "UTF8", "--locale=C", "-D", &data],
        );
        let port = self.port;
        let socket = self.path().display();
        self.append(
            "postgresql.conf",
            &format!(
                "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{socket}'\nmax_connections = 20\n\
                 shared_buffers = 8MB\nmax_wal_size = 64MB\n{settings}\n"
            ),
        );
        let rules = "local all all trust\nlocal replication all trust\nhost all all all scram-sha-256\n";
        fs::write(self.path().join("data/pg_hba.conf"), rules).expect("the rules are written");
        self.launch();
        self.sql("postgres", &format!("create role keeper login password '{PASSWORD}'"));
        self.sql("postgres", "create database jobs owner keeper");
    }

    /// A running standby of this server.
    pub(crate) fn standby(&self) -> Self {
        let standby = Self::prepare();
        standby.copy_from(self);
        standby
    }

    /// Makes a standby of another server out of this one, which has ended.
    pub(crate) fn follow(&self, primary: &Self) {
        fs::remove_dir_all(self.data()).expect("it has data");
        self.copy_from(primary);
    }

    /// Copies the data of a server, and starts as its standby.
    fn copy_from(&self, primary: &Self) {
        let (host, port) = (primary.path().display().to_string(), primary.port.to_string());
        let data = self.data();
        self.program(
            "pg_basebackup",
            &["-h", &host, "-p", &port, "-U", "postgres", "-D", &data, "-R", "-c", "fast", "--no-sync"],
        );
        self.append(
            "postgresql.conf",
            &format!("port = {}\nunix_socket_directories = '{}'\n", self.port, self.path().display()),
        );
        self.launch();
    }

    /// A folder for a server.
    pub(crate) fn prepare() -> Self {
        Self::prepare_in(Vec::new())
    }

    /// The same for a server that runs behind these words.
    pub(crate) fn prepare_in(launcher: Vec<OsString>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        if let Some((user, group)) = server_account() {
            chown(folder.path(), Some(user), Some(group)).expect("the folder is given away");
        }
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        Self { folder, port, launcher }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> String {
        self.path().join("data").display().to_string()
    }

    pub(crate) fn append(&self, name: &str, text: &str) {
        let path = self.path().join("data").join(name);
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, before + text).expect("the file is written");
    }

    pub(crate) fn launch(&self) {
        let log = self.path().join("log").display().to_string();
        self.program("pg_ctl", &["-D", &self.data(), "-w", "-l", &log, "start"]);
    }

    /// Starts a server with these variables in its environment.
    pub(crate) fn launch_under(&self, variables: &[(String, OsString)]) {
        let log = self.path().join("log").display().to_string();
        let mut start = self.command("pg_ctl");
        start.args(["-D", &self.data(), "-w", "-l", &log, "start"]).envs(variables.iter().cloned());
        assert!(start.status().expect("pg_ctl").success(), "the server starts");
    }

    /// Starts a server that was killed, as soon as its other processes have ended.
    pub(crate) fn launch_again(&self) {
        let log = self.path().join("log").display().to_string();
        let start = || self.command("pg_ctl").args(["-D", &self.data(), "-w", "-l", &log, "start"]).output();
        eventually("the server starts", || start().is_ok_and(|output| output.status.success()).then_some(()));
    }

    pub(crate) fn stop(&self) -> Output {
        self.command("pg_ctl")
            .args(["-D", &self.data(), "-m", "immediate", "-w", "stop"])
            .output()
            .expect("pg_ctl")
    }

    /// Ends the server with all its sessions, and lets it recover at its next start.
    pub(crate) fn crash(&self) {
        assert!(self.stop().status.success(), "the server ends");
    }

    /// Kills the server's first process. The others end when they notice.
    pub(crate) fn kill(&self) {
        let file = fs::read_to_string(self.path().join("data/postmaster.pid")).expect("the server runs");
        let pid =
            file.lines().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, Signal::KILL).expect("it is killed");
    }

    pub(crate) fn reload(&self) {
        self.program("pg_ctl", &["-D", &self.data(), "reload"]);
    }

    /// Runs statements as the superuser, and returns what they print.
    pub(crate) fn sql(&self, database: &str, statements: &str) -> String {
        let output = self.try_sql("postgres", database, statements);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// As [`Self::sql`], as any role. They stop at the first error.
    pub(crate) fn try_sql(&self, role: &str, database: &str, statements: &str) -> Output {
        let host = self.path().display().to_string();
        let port = self.port.to_string();
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", &host, "-p", &port, "-U", role]);
        psql.args(["-d", database, "-c", statements]).output().expect("psql starts")
    }

    /// The address by the socket, for a role that needs no password.
    pub(crate) fn socket_url(&self, role: &str) -> String {
        let folder = self.path().display().to_string().replace('/', "%2F");
        format!("postgres://{role}@{folder}:{}/jobs", self.port)
    }

    /// The address on loopback, with this in front of the host.
    pub(crate) fn tcp_url(&self, account: &str, parameters: &str) -> String {
        format!("postgres://{account}@127.0.0.1:{}/jobs?{parameters}", self.port)
    }

    /// A program of PostgreSQL, as the account that the server runs as.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = match self.launcher.split_first() {
            None => Command::new(programs().join(name)),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest);
                if let Some((user, group)) = server_account() {
                    command.args([format!("--setuid={user}"), format!("--setgid={group}")]);
                }
                command.arg(programs().join(name));
                command
            }
        };
        command.env_remove("PGPASSWORD").env("LC_ALL", "C").current_dir(self.path());
        // Only root can enter a namespace.
        if let Some((user, group)) = server_account().filter(|_| self.launcher.is_empty()) {
            command.uid(user).gid(group);
        }
        command
    }

    pub(crate) fn program(&self, name: &str, args: &[&str]) {
        let output = self.command(name).args(args).output().expect("PostgreSQL is installed");
        let log = fs::read_to_string(self.path().join("log")).unwrap_or_default();
        assert!(output.status.success(), "{name}: {}{log}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes a key and a certificate that the server will find as `NAME.key` and `NAME.crt`.
    pub(crate) fn openssl(&self, args: &[&str]) {
        let output = self.command_of("openssl").args(args).output().expect("openssl is installed");
        assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path());
        if let Some((user, group)) = server_account() {
            command.uid(user).gid(group);
        }
        command
    }
}

/// The first value that there is, within a bound.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut poll = Poll::every(Duration::from_millis(20)).within(Duration::from_secs(20));
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(poll.sleep(), "{what}");
    }
}

/// The folder with the programs of the newest server: Debian does not have them in `PATH`.
pub(crate) fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest =
        versions.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists()).max();
    newest.unwrap_or_else(|| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&paths).find(|folder| folder.join("initdb").exists());
        found.expect("PostgreSQL is installed: the tests need initdb")
    })
}

/// The account for the server, if these tests run as root.
pub(crate) fn server_account() -> Option<(u32, u32)> {
    geteuid().is_root().then(|| {
        let users = fs::read_to_string("/etc/passwd").expect("the list of users");
        let line = users.lines().find(|line| line.starts_with(&format!("{SERVER_ACCOUNT}:")));
        let fields: Vec<&str> = line.expect("an account for the server").split(':').collect();
        (fields[2].parse().expect("a number"), fields[3].parse().expect("a number"))
    })
}

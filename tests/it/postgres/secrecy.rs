//! The password of a server appears nowhere: in no output, file, argument or stored environment, whether the connection works
//! or not.

use std::fs;
use std::path::Path;

use super::cluster::{Cluster, PASSWORD, PASSWORD_IN_URL, eventually};
use crate::cli::harness::Home;

/// Fails if the text has the password, as it is or as a part of a URL.
#[track_caller]
fn check(what: &str, text: &[u8]) {
    for secret in [PASSWORD, PASSWORD_IN_URL] {
        let found = text.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "{what} has the password: {}", String::from_utf8_lossy(text));
    }
}

/// Verbs that print much, and those that fail.
const VERBS: [&[&str]; 13] = [
    &["status"],
    &["status", "--json"],
    &["doctor", "--json"],
    &["store", "info", "--json"],
    &["store", "grant", "web", "--as", "worker"],
    &["events"],
    &["config", "list"],
    &["worker", "list", "--json"],
    &["list", "--json"],
    &["show", "a", "--json"],
    &["backup", "x.db"],
    &["init"],
    &[],
];

#[test]
fn no_output_of_a_failing_connection_has_the_password() {
    let cluster = Cluster::start("");
    let account = format!("keeper:{PASSWORD_IN_URL}");
    let urls = [
        cluster.tcp_url(&account, "").replace("/jobs", "/none"),
        cluster.tcp_url(&format!("stranger:{PASSWORD_IN_URL}"), ""),
        cluster.tcp_url(&account, "sslmode=verify-full"),
        format!("postgres://{account}@127.0.0.1:1/jobs"),
        format!("postgres://{account}@127.0.0.1:1/jobs?sslmode=require"),
        format!("postgres://{account}@127.0.0.1:1/jobs?zzz=1"),
    ];
    for url in &urls {
        let home = Home::new();
        for verb in
            VERBS.iter().chain([&["worker", "start"][..], &["run", "true"], &["enqueue", "true"]].iter())
        {
            for call in
                [home.call(*verb).env("QUEUECTL_STORE", url), home.call(["--store", url].iter().chain(*verb))]
            {
                let output = call.into_command().output().expect("it runs");
                check(&format!("{verb:?}"), &output.stdout);
                check(&format!("{verb:?}"), &output.stderr);
            }
        }
        check_files(&home.path());
    }
}

#[test]
fn nothing_of_a_working_queue_has_the_password() {
    let cluster = Cluster::start("");
    let url = cluster.tcp_url(&format!("keeper:{PASSWORD_IN_URL}"), "");
    let home = Home::new();
    let call = |args: &[&str]| home.call(args).env("QUEUECTL_STORE", &url).env("PGPASSWORD", PASSWORD);
    call(&["enqueue", "-q", "--id", "a", "--env-capture", "--", "env"]).run().ok();
    call(&["hook", "add", "h", "--on", "dead", "--", "true"]).run().ok();
    call(&["worker", "start", "--count", "2"]).run().ok();
    let pids = eventually("the workers are registered", || {
        let ran = call(&["worker", "list", "--json"]).run().ok();
        let workers: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let pids: Vec<u64> = workers
            .as_array()?
            .iter()
            .flat_map(|worker| {
                [worker["pid"].as_u64(), worker["supervisor_pid"].as_u64()].into_iter().flatten()
            })
            .collect();
        (pids.len() == 4).then_some(pids)
    });
    for pid in pids {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).expect("it is alive");
        assert!(!arguments.windows(8).any(|part| part == b"postgres"), "the address is not an argument");
        check("the arguments", &arguments);
    }
    call(&["wait", "a", "--timeout", "30s"]).run().ok();
    let logs = call(&["logs", "a"]).run().ok();
    assert!(logs.stdout.contains("QUEUECTL_STORE=postgres://keeper@127.0.0.1"), "{logs}");
    check("the environment of a job", logs.stdout.as_bytes());
    assert!(!logs.stdout.contains("PGPASSWORD"), "{logs}");
    for verb in VERBS.iter().chain([&["logs", "a"][..], &["export", "-"]].iter()) {
        let output = call(verb).into_command().output().expect("it runs");
        check(&format!("{verb:?}"), &output.stdout);
        check(&format!("{verb:?}"), &output.stderr);
    }
    call(&["worker", "stop"]).run().ok();
    check_files(&home.path());
    let environments = cluster.sql("jobs", "select encode(variables, 'escape') from queuectl.environments");
    assert!(environments.contains("PATH="), "an environment was captured: {environments}");
    check("the environments", environments.as_bytes());
    for table in ["events", "workers", "hooks", "jobs"] {
        check(table, cluster.sql("jobs", &format!("select * from queuectl.{table}")).as_bytes());
    }
}

fn check_files(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        match path.metadata() {
            Ok(meta) if meta.is_dir() => check_files(&path),
            Ok(meta) if meta.is_file() => {
                check(&path.display().to_string(), &fs::read(&path).expect("readable"));
            }
            Ok(_) | Err(_) => {}
        }
    }
}

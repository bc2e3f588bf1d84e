//! `store info` and `store migrate`, `doctor`, and what differs on a queue that is on a server.

use store::postgres::SCHEMA_VERSION;

use super::cluster::{Cluster, PASSWORD_IN_URL};
use crate::cli::harness::Home;

#[test]
fn info_says_where_a_queue_lives() {
    let home = Home::with_queue();
    let info = home.run(["store", "info", "--json"]).ok().json();
    assert_eq!((&info["kind"], &info["host"]), (&"sqlite".into(), &serde_json::Value::Null));
    assert_eq!(info["path"], home.database().display().to_string());
    assert!(info["schema_version"].as_i64() >= Some(1) && info["size_bytes"].as_u64() > Some(0), "{info}");

    let cluster = Cluster::start("");
    let url = cluster.tcp_url(&format!("keeper:{PASSWORD_IN_URL}"), "schema=other");
    let ask = || home.call(["store", "info", "--json"]).env("QUEUECTL_STORE", &url).run().ok().json();
    assert_eq!(ask()["schema_version"], serde_json::Value::Null, "nothing is created");
    home.call(["store", "migrate"])
        .env("QUEUECTL_STORE", &url)
        .run()
        .ok()
        .prints(&format!("{SCHEMA_VERSION}\n"));
    let info = ask();
    assert_eq!(
        (&info["kind"], &info["role"], &info["schema"]),
        (&"postgres".into(), &"keeper".into(), &"other".into())
    );
    assert_eq!((&info["schema_version"], &info["tls"]), (&SCHEMA_VERSION.into(), &"disable".into()));
    assert_eq!((&info["is_standby"], &info["standbys"]), (&false.into(), &0.into()));
    assert!(info["server_version"].as_str().is_some_and(|version| version.contains('.')), "{info}");
    let shown = home.call(["store", "info"]).env("QUEUECTL_STORE", &url).run().ok();
    assert!(
        shown.stdout.contains("schema        other\n") && shown.stdout.contains("kind          postgres\n"),
        "{shown}"
    );
    let again = home.call(["store", "migrate", "--json"]).env("QUEUECTL_STORE", &url).run().ok().json();
    assert_eq!((&again["changed"], &again["schema_version"]), (&false.into(), &SCHEMA_VERSION.into()));
}

#[test]
fn doctor_names_what_is_unsafe_about_a_server() {
    let cluster = Cluster::start("fsync = off");
    let home = Home::new();
    let findings = |url: &str| {
        let output =
            home.call(["doctor", "--json", "--store", url]).into_command().output().expect("it runs");
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        found["findings"].as_array().expect("findings").clone()
    };
    let superuser = cluster.socket_url("postgres");
    home.run(["store", "migrate", "--store", &superuser]).ok();
    let level = |found: &[serde_json::Value], check: &str| {
        let finding = found.iter().find(|finding| finding["check"] == check);
        finding.unwrap_or_else(|| panic!("no {check} in {found:?}"))["level"]
            .as_str()
            .expect("a level")
            .to_owned()
    };
    let found = findings(&superuser);
    for (check, expected) in [
        ("server", "ok"),
        ("role", "warning"),
        ("fsync", "warning"),
        ("tls", "ok"),
        ("standbys", "ok"),
        ("snapshots", "ok"),
        ("schema", "ok"),
        ("vacuum", "ok"),
    ] {
        assert_eq!(level(&found, check), expected, "{check}: {found:?}");
    }
    let over_tcp = findings(&cluster.tcp_url(&format!("keeper:{PASSWORD_IN_URL}"), "schema=mine"));
    assert_eq!((level(&over_tcp, "role").as_str(), level(&over_tcp, "tls").as_str()), ("ok", "warning"));
}

#[test]
fn a_job_on_a_server_inherits_neither_directory_nor_environment_unless_asked() {
    let cluster = Cluster::start("");
    let home = Home::new();
    let url = cluster.socket_url("keeper");
    let call = |args: &[&str]| home.call(args).env("QUEUECTL_STORE", &url);
    call(&["enqueue", "-q", "--id", "plain", "-c", "pwd; echo ${MINE-none}"])
        .env("MINE", "caller")
        .run()
        .ok();
    let there =
        ["enqueue", "-q", "--id", "asked", "--cwd", "/usr", "--env-capture", "-c", "pwd; echo ${MINE-none}"];
    call(&there).env("MINE", "caller").run().ok();
    let elsewhere =
        ["enqueue", "-q", "--max-retries", "0", "--cwd", "/only/on/another/machine", "-c", "true"];
    call(&elsewhere).run().ok();
    call(&["enqueue", "--env-capture", "--no-env-capture", "true"]).run().fails(2);
    assert_eq!(call(&["show", "plain", "--json"]).run().ok().json()["cwd"], serde_json::Value::Null);
    call(&["worker", "run", "--until-empty", "-q"]).env("HOME", "/tmp").run().ok();
    let logs = |id: &str| call(&["logs", id]).run().ok().stdout;
    assert_eq!(logs("plain"), "/tmp\nnone\n");
    assert_eq!(logs("asked"), "/usr\ncaller\n");
}

#[test]
fn leases_are_longer_by_default_on_a_server() {
    let cluster = Cluster::start("");
    let home = Home::new();
    let url = cluster.socket_url("keeper");
    let call = |args: &[&str]| home.call(args).env("QUEUECTL_STORE", &url).run().ok().stdout;
    call(&["enqueue", "-q", "true"]);
    let value = |key: &str| call(&["config", "get", key]);
    assert_eq!((value("lease"), value("heartbeat_interval")), ("1m\n".to_owned(), "10s\n".to_owned()));
    // Eleven seconds are more than a third of 30 s, and less than that of 60 s.
    call(&["config", "set", "heartbeat_interval", "11s"]);
    call(&["config", "unset", "heartbeat_interval"]);
    assert_eq!(value("heartbeat_interval"), "10s\n");
    let file = Home::with_queue();
    assert_eq!(file.run(["config", "get", "lease"]).ok().stdout, "30s\n");
}

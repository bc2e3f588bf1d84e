//! A pooler between queuectl and the server: every transaction may run in another session of the server.

use std::process::{Child, Stdio};
use std::time::Duration;
use std::{fs, net};

use store::postgres::{Address, PostgresStore};
use store::{Pace, Store};

use super::cluster::Cluster;
use super::working_machine::WorkingMachine;
use crate::cli::harness::Home;
use crate::cli::harness::working_home::wait_until;
use crate::store::fixture::new_worker;

/// PgBouncer in front of a cluster. Each transaction gets another session than the one before.
pub(crate) struct Pooler {
    port: u16,
    child: Child,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Pooler {
    pub(crate) fn start(cluster: &Cluster, settings: &str) -> Self {
        let folder = cluster.path().display();
        let free = net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let config = format!(
            "[databases]\njobs = host={folder} port={} dbname=jobs\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {folder}/users\npool_mode = transaction\n\
             default_pool_size = 3\nmin_pool_size = 3\nserver_round_robin = 1\n{settings}\n",
            cluster.port
        );
        fs::write(cluster.path().join("users"), "\"keeper\" \"\"\n").expect("the users are written");
        fs::write(cluster.path().join("pooler.ini"), config).expect("the configuration is written");
        let child = Self::launch(cluster, port);
        let pooler = Self { port, child };
        pooler.open_sessions(cluster);
        pooler
    }

    fn launch(cluster: &Cluster, port: u16) -> Child {
        let log = fs::File::create(cluster.path().join("pooler.log")).expect("a log");
        let mut command = cluster.command_of("pgbouncer");
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .arg("pooler.ini")
            .env("PATH", format!("{path}:/usr/sbin"))
            .stdout(log.try_clone().expect("a log"));
        let child = command.stderr(log).spawn().expect("pgbouncer is installed");
        wait_until("the pooler listens", || net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        child
    }

    /// Three transactions at once have it open as many sessions.
    fn open_sessions(&self, cluster: &Cluster) {
        let port = self.port.to_string();
        let args = ["-X", "-q", "-h", "127.0.0.1", "-p", &port, "-U", "keeper", "-d", "jobs"];
        let wait = ["-c", "select pg_sleep(0.3)"];
        let callers: Vec<Child> = (0..3)
            .map(|_| {
                let mut psql = cluster.command("psql");
                psql.args(args).args(wait).stdout(Stdio::null()).spawn().expect("psql starts")
            })
            .collect();
        for mut caller in callers {
            assert!(caller.wait().expect("it ends").success(), "it has a session");
        }
    }

    /// It gets no chance to say good-bye.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn restart(&mut self, cluster: &Cluster) {
        self.child = Self::launch(cluster, self.port);
    }

    pub(crate) fn url(&self, parameters: &str) -> String {
        format!("postgres://keeper@127.0.0.1:{}/jobs?{parameters}", self.port)
    }
}

const IGNORED: &str = "ignore_startup_parameters = options";

/// The verbs of a queue, with a worker that runs jobs.
fn use_queue(url: &str) {
    let machine = WorkingMachine::new(url);
    let call = |args: &[&str]| machine.run(args).ok().stdout;
    call(&["enqueue", "-q", "--id", "first", "-c", "echo one; echo two >&2"]);
    machine.start_worker();
    let ids: Vec<String> = (0..12).map(|number| format!("job-{number}")).collect();
    for id in &ids {
        call(&["enqueue", "-q", "--id", id, "--priority", "3", "--tag", "t", "-c", "echo $QUEUECTL_JOB_ID"]);
    }
    let mut wait = vec!["wait", "-q", "first"];
    wait.extend(ids.iter().map(String::as_str));
    call(&wait);
    assert_eq!(call(&["logs", "first"]), "one\ntwo\n");
    assert_eq!(call(&["logs", "job-7"]), "job-7\n");
    call(&["config", "set", "durability", "full"]);
    call(&["enqueue", "-q", "--id", "later", "--delay", "1h", "--", "true"]);
    call(&["cancel", "-q", "later"]);
    let status: serde_json::Value = serde_json::from_str(&call(&["status", "--json"])).expect("JSON");
    let counted = (&status["jobs"]["completed"], &status["jobs"]["cancelled"]);
    assert_eq!(counted, (&13.into(), &1.into()), "{status}");
    let info: serde_json::Value = serde_json::from_str(&call(&["store", "info", "--json"])).expect("JSON");
    assert_eq!((&info["schema"], &info["is_standby"]), (&"queuectl".into(), &false.into()), "{info}");
}

#[test]
fn a_queue_works_through_a_pooler_that_the_address_names() {
    let cluster = Cluster::start("");
    let pooler = Pooler::start(&cluster, "");
    use_queue(&pooler.url("pooler=transaction"));
    assert_eq!(cluster.sql("jobs", "select count(*) from pg_prepared_statements"), "0");
    let elsewhere = "select count(*) from pg_tables where schemaname not in ('queuectl', 'pg_catalog', 'information_schema')";
    assert_eq!(cluster.sql("jobs", elsewhere), "0");
}

#[test]
fn a_pooler_that_refuses_or_ignores_settings_is_noticed() {
    for settings in ["", IGNORED] {
        let cluster = Cluster::start("");
        let pooler = Pooler::start(&cluster, settings);
        use_queue(&pooler.url(""));
        let elsewhere = "select count(*) from pg_tables where schemaname = 'public'";
        assert_eq!(cluster.sql("jobs", elsewhere), "0", "{settings}");
    }
}

#[test]
fn a_pooler_is_noticed_by_prepared_statements_that_are_unknown() {
    let cluster = Cluster::start("");
    let pooler = Pooler::start(&cluster, IGNORED);
    // The sessions have the right search path by themselves.
    let set = "set search_path = \"queuectl\",pg_temp; select set_config('search_path', '\"queuectl\",pg_temp', false); \
               alter role keeper set search_path from current";
    cluster.sql("postgres", set);
    let address = Address::parse(&pooler.url("")).expect("an address");
    let store: Box<dyn Store> = Box::new(PostgresStore::open(&address, None).expect("the store opens"));
    let worker = new_worker("w-1");
    let wake = store.listen(&worker).expect("it listens");
    store.register(&worker).expect("register");
    for _ in 0..4 {
        store.orders(&worker.id).expect("orders");
        store.workers().expect("workers");
    }
    assert_eq!(store.pace(), Pace::Polling, "nothing is heard through a pooler");
    drop(wake);
}

#[test]
fn a_worker_behind_a_pooler_listens_on_the_way_that_the_address_names() {
    let cluster = Cluster::start("");
    cluster.sql("postgres", "create database other owner keeper");
    let pooler = Pooler::start(&cluster, "");
    let direct = cluster.socket_url("keeper");
    let escaped = |url: &str| url.replace('%', "%25").replace('/', "%2F");
    let url = pooler.url(&format!("pooler=transaction&listen={}", escaped(&direct)));
    let pace = |url: &str| {
        let store = PostgresStore::open(&Address::parse(url).expect("an address"), None).expect("it opens");
        let wake = store.listen(&new_worker("w-1"));
        (store.pace(), wake.is_ok())
    };
    assert_eq!(pace(&pooler.url("pooler=transaction")), (Pace::Polling, true));
    assert_eq!(pace(&url), (Pace::Listening, true));

    let machine = WorkingMachine::new(&url);
    machine.run(["config", "set", "heartbeat_interval", "15s"]).ok();
    machine.start_worker();
    let sleeps = "select count(*) from queuectl.workers where listens = 1";
    wait_until("the worker sleeps", || cluster.sql("jobs", sleeps) == "1");
    let began = std::time::Instant::now();
    machine.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    machine.run(["wait", "-q", "a"]).ok();
    assert!(began.elapsed() < Duration::from_secs(8), "it heard of the job: {:?}", began.elapsed());

    for (listen, problem, hint) in [
        (direct.replace("/jobs", "/other"), "`listen` does not lead to the queue", "past the pooler"),
        (
            "postgres:///jobs?host=/nowhere".to_owned(),
            "there is no such socket",
            "check that the server runs",
        ),
    ] {
        let url = pooler.url(&format!("pooler=transaction&listen={listen}"));
        for verb in ["run", "start"] {
            let refused = Home::new().call(["worker", verb, "-q"]).env("QUEUECTL_STORE", &url).run();
            let refused = refused.fails(5).says(problem).says(hint);
            assert_eq!(refused.stderr.lines().count(), 2, "an error and a hint: {refused}");
        }
    }
}

#[test]
fn a_pooler_that_is_killed_loses_no_job_and_no_outcome() {
    let cluster = Cluster::start("");
    let mut pooler = Pooler::start(&cluster, "");
    let machine = WorkingMachine::new(&pooler.url("pooler=transaction"));
    machine.start_worker();
    machine.enqueue_until_go("held");
    machine.wait_for_state("held", "processing");
    pooler.kill();
    machine.run(["enqueue", "-q", "--id", "refused", "--", "true"]).fails(5);
    machine.go();
    pooler.restart(&cluster);
    machine.run(["enqueue", "-q", "--id", "after", "--", "true"]).ok();
    machine.run(["wait", "-q", "held", "after"]).ok();
    assert_eq!(machine.show("held")["history"].as_array().map(Vec::len), Some(1));
    machine.run(["show", "refused"]).fails(3);
}

//! The environment of a command: its variables and its folder.

use crate::cli::harness::PROGRAM;
use crate::engine::harness::{Home, Pool};

/// Runs the enqueued jobs in a worker with variables of its own.
fn drain_as_worker(home: &Home) {
    let call = home.call(["worker", "run", "--until-empty", "--queue", "default,q1"]);
    Pool::spawn(home, call.env("WHO", "worker").env("ONLY_WORKER", "1").into_command()).ends_well();
}

#[test]
fn the_environment_of_a_command_identifies_its_attempt() {
    let home = Home::new();
    home.set("retry_delay", "1ms");
    let say = "env | grep '^QUEUECTL_' | sort; [ $QUEUECTL_ATTEMPT = 2 ]";
    home.enqueue_with("it", say, "--queue q1 --max-retries 1");
    Pool::drain(&home, "");
    let job = home.show("it");
    let (worker, path) = (job["history"][1]["worker_id"].as_str().expect("an id"), home.path());
    let expected = format!(
        "QUEUECTL_ATTEMPT=2\nQUEUECTL_HOME={}\nQUEUECTL_JOB_ID=it\nQUEUECTL_QUEUE=q1\nQUEUECTL_WORKER_ID={worker}\n",
        path.display()
    );
    assert_eq!(home.printed_text("it"), expected);
}

#[test]
fn a_command_enqueues_into_the_store_that_runs_it() {
    let home = Home::new();
    let store = home.folder().canonicalize().expect("a folder").join("other.db");
    let with_store = |args: &[&str]| home.call(["--store", "other.db"].iter().chain(args));
    let line = format!("echo $QUEUECTL_STORE; {PROGRAM} enqueue -q --id child -- true");
    with_store(&["enqueue", "-q", "--id", "parent", "--command", &line]).run().ok();
    let drain = with_store(&["worker", "run", "-q", "--until-empty"]);
    Pool::spawn(&home, drain.env("QUEUECTL_STORE", "/nonexistent/x.db").into_command()).ends_well();
    with_store(&["logs", "parent"]).run().ok().prints(&format!("{}\n", store.display()));
    assert_eq!(with_store(&["show", "child", "--json"]).run().ok().json()["state"], "completed");
    assert!(!home.database().exists(), "the home's own database is not created");
}

#[test]
fn a_command_gets_the_longest_variable_that_is_accepted() {
    let home = Home::new();
    let job = serde_json::json!({"id": "it", "command": "echo ${#BIG}", "env": {"BIG": "x".repeat(131_067)}});
    home.call(["enqueue", "-q", "-"]).with_stdin(job.to_string()).run().ok();
    Pool::drain(&home, "");
    assert_eq!(home.printed_text("it"), "131067\n");
}

#[test]
fn a_command_has_the_variables_of_its_enqueuer() {
    let home = Home::new();
    let say = "echo $WHO,$ADDED,$ONLY_WORKER";
    for (id, flags) in [
        ("captured", &[][..]),
        ("added", &["--env", "ADDED=more", "--env", "WHO=env"]),
        ("worker", &["--no-env-capture"]),
        ("worker-added", &["--no-env-capture", "--env", "ADDED=more"]),
    ] {
        let call = home.call(["enqueue", "-q", "--id", id, "--command", say].iter().chain(flags));
        call.env("WHO", "caller").run().ok();
    }
    drain_as_worker(&home);
    for (id, said) in [
        ("captured", "caller,,\n"),
        ("added", "env,more,\n"),
        ("worker", "worker,,1\n"),
        ("worker-added", "worker,more,1\n"),
    ] {
        assert_eq!(home.printed_text(id), said, "{id}");
    }
}

#[test]
fn a_command_runs_where_it_was_enqueued_or_in_its_cwd() {
    let home = Home::new();
    home.file("inner/file", "");
    let say = "pwd; echo $PWD; readlink /proc/self/cwd";
    home.enqueue("here", say);
    home.enqueue_with("there", say, "--cwd inner");
    home.call(["enqueue", "-q", "--id", "elsewhere", "--command", say]).at("/usr".as_ref()).run().ok();
    home.enqueue("direct", "readlink /proc/self/cwd");
    drain_as_worker(&home);
    let here = home.folder().canonicalize().expect("a folder").display().to_string();
    for (id, folder) in
        [("here", here.clone()), ("there", format!("{here}/inner")), ("elsewhere", "/usr".into())]
    {
        assert_eq!(home.printed_text(id), format!("{folder}\n").repeat(3), "{id}");
    }
    assert_eq!(home.printed_text("direct"), format!("{here}\n"));
}

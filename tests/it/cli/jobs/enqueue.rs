use serde_json::{Value, json};

use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::{Home, ids};

#[test]
fn a_json_object_is_stored_and_its_id_printed() {
    let home = Home::new();
    home.run(["enqueue", r#"{"id":"job1","command":"sleep 2"}"#])
        .ok()
        .prints("job1\n")
        .says("hint: no worker is running");
    let job = home.show("job1");
    assert_eq!(job["command"], "sleep 2");
    assert_eq!(job["state"], "pending");
    assert_eq!(job["queue"], "default");
}

#[test]
fn an_array_is_stored_in_its_order_with_one_id_per_line() {
    let home = Home::new();
    home.run(["enqueue", r#"[{"id":"a","command":"1"},{"id":"b","command":"2"}]"#]).ok().prints("a\nb\n");
    assert_eq!(ids(&home.run(["list", "--json"]).ok().json()), ["b", "a"], "the newest is first");
}

#[test]
fn an_empty_array_enqueues_nothing() {
    let home = Home::new();
    home.run(["enqueue", "[]"]).ok().prints("").says_nothing();
    let seen = on_terminal(home.call(["--color", "never", "enqueue", "[]"]).into_command(), 80, "");
    assert_eq!(seen.screen, "hint: no jobs given: the array is empty\n");
    home.run(["enqueue", "[]", "--json"]).ok().prints("[]\n");
    assert!(home.is_empty());
}

#[test]
fn a_generated_id_is_printed_and_finds_its_job() {
    let home = Home::new();
    let ran = home.run(["enqueue", "--", "echo", "hi"]).ok();
    let id = ran.stdout.trim_end();
    assert_eq!(id.len(), 18, "{id}");
    assert_eq!(home.show(id)["command"], "echo hi");
}

/// Each field as a flag, as JSON, and what `show` says of it.
fn fields() -> Vec<(Vec<&'static str>, Value, &'static str, Value)> {
    vec![
        (vec!["--id", "x.1"], json!({"id": "x.1"}), "id", json!("x.1")),
        (vec!["--name", "night run"], json!({"name": "night run"}), "name", json!("night run")),
        (vec!["--queue", "mail"], json!({"queue": "mail"}), "queue", json!("mail")),
        (vec!["--priority", "-7"], json!({"priority": -7}), "priority", json!(-7)),
        (vec!["--priority", "low"], json!({"priority": "low"}), "priority", json!(-10)),
        (vec!["-p", "Urgent"], json!({"priority": "urgent"}), "priority", json!(20)),
        (vec!["--max-retries", "0"], json!({"max_retries": 0}), "max_retries", json!(0)),
        (vec!["--max-attempts", "5"], json!({"max_attempts": 5}), "max_retries", json!(4)),
        (vec!["--timeout", "1m30s"], json!({"timeout": "PT1M30S"}), "timeout_ms", json!(90_000)),
        (vec!["--timeout", "90"], json!({"timeout": 90}), "timeout_ms", json!(90_000)),
        (vec!["--timeout", "none"], json!({"timeout": "none"}), "timeout_ms", json!(null)),
        (
            vec!["--run-at", "2999-01-31T09:30:00+02:00"],
            json!({"run_at": "2999-01-31T09:30:00+02:00"}),
            "run_at",
            json!("2999-01-31T07:30:00.000Z"),
        ),
        (
            vec!["--backoff", r#"{"strategy":"fixed","delay":"5s"}"#],
            json!({"backoff": {"strategy": "fixed", "delay": 5}}),
            "backoff",
            json!({"strategy": "fixed", "delay": "5s"}),
        ),
        (vec!["--depends-on", "p,q"], json!({"depends_on": ["p", "q"]}), "depends_on", json!(["p", "q"])),
        (
            vec!["--on-dependency-failure", "run"],
            json!({"on_dependency_failure": "run"}),
            "on_dependency_failure",
            json!("run"),
        ),
        (vec!["--unique-key", "nightly"], json!({"unique_key": "nightly"}), "unique_key", json!("nightly")),
        (vec!["--cwd", "/var/tmp"], json!({"cwd": "/var/tmp"}), "cwd", json!("/var/tmp")),
        (
            vec!["--env", "B=2", "--env", "A=x=y"],
            json!({"env": {"B": "2", "A": "x=y"}}),
            "env",
            json!(["A", "B"]),
        ),
        (
            vec!["--tags", "x,y", "--tag", "z"],
            json!({"tags": ["x", "y", "z"]}),
            "tags",
            json!(["x", "y", "z"]),
        ),
    ]
}

#[test]
fn every_json_field_has_an_equivalent_flag() {
    let (by_flag, by_json) = (Home::with_jobs(&["p", "q"]), Home::with_jobs(&["p", "q"]));
    for (flags, object, field, expected) in fields() {
        let mut args = vec!["enqueue", "--command", "true", "--json"];
        args.extend(&flags);
        let id = by_flag.run(args).ok().json()["id"].as_str().expect("an id").to_owned();
        assert_eq!(by_flag.show(&id)[field], expected, "{flags:?}");

        let mut job = object.clone();
        job["command"] = json!("true");
        let id = by_json.run(["enqueue", "--json", &job.to_string()]).ok().json()["id"].clone();
        assert_eq!(by_json.show(id.as_str().expect("an id"))[field], expected, "{object}");
    }
}

#[test]
fn omitted_fields_come_from_the_settings() {
    let home = Home::new();
    home.run(["config", "set", "max-retries", "7"]).ok();
    home.run(["config", "set", "job-timeout", "1h"]).ok();
    home.run(["enqueue", "--id", "a", "--", "true"]).ok();
    home.run(["config", "set", "max-retries", "1"]).ok();
    let job = home.show("a");
    assert_eq!(
        (&job["max_retries"], &job["timeout_ms"]),
        (&json!(7), &json!(3_600_000)),
        "fixed when enqueued"
    );
}

#[test]
fn a_delay_is_counted_from_now() {
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--delay", "1h", "--", "true"]).ok();
    assert_eq!(ids(&home.run(["list", "--state", "scheduled", "--json"]).ok().json()), ["a"]);
    assert_ne!(home.show("a")["run_at"], Value::Null);
}

#[test]
fn the_words_of_a_command_are_quoted_for_the_shell() {
    for (words, command) in [
        (vec!["convert", "a b.png", "out.jpg"], "convert 'a b.png' out.jpg"),
        (vec!["echo", "$HOME", "*", "it's"], r"echo '$HOME' '*' 'it'\''s'"),
        (vec!["printf", "%s", ""], "printf %s ''"),
        (vec!["grep", "--json", "-q"], "grep --json -q"),
        (vec!["a=b", "c"], "'a=b' c"),
    ] {
        let home = Home::new();
        home.run(["enqueue", "--id", "a", "--"].into_iter().chain(words)).ok();
        assert_eq!(home.show("a")["command"], command);
    }
}

#[test]
fn json_is_one_object_for_one_job_and_an_array_for_several() {
    let home = Home::new();
    let one = home.run(["enqueue", "--json", "--id", "a", "--", "true"]).ok().json();
    assert_eq!(one["id"], "a");
    assert_eq!(one.get("existing"), None, "it is new");
    let several = home.run(["enqueue", "--json", r#"[{"id":"b","command":"1"}]"#]).ok().json();
    assert_eq!(ids(&several), ["b"], "an array of one is still an array");
}

#[test]
fn a_job_has_the_documented_shape() {
    let home = Home::new();
    let job = home.run(["enqueue", "--json", "--id", "a", "--", "true"]).ok().json();
    let mut names: Vec<&str> = job.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut documented: Vec<&str> = "number, id, name, queue, command, state, priority, attempts, max_retries, failures, created_at, \
         updated_at, run_at, started_at, finished_at, next_retry_at, timeout_ms, cwd, tags, depends_on, unique_key, \
         worker_id, lease_until, paused_at, exit_code, signal, error, reason"
        .split(", ")
        .collect();
    names.sort_unstable();
    documented.sort_unstable();
    assert_eq!(names, documented);
    let created = job["created_at"].as_str().expect("a time is text");
    assert!(created.len() == "2026-01-31T09:30:00.000Z".len() && created.ends_with('Z'), "{created}");
}

#[test]
fn if_absent_returns_the_existing_job() {
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--command", "first"]).ok();
    let again =
        home.run(["enqueue", "--id", "a", "--command", "second", "--if-absent", "--json"]).ok().json();
    assert_eq!((&again["existing"], &again["command"]), (&json!(true), &json!("first")));
    home.run(["enqueue", "--id", "a", "--command", "second", "--if-absent"]).ok().prints("a\n");
    assert_eq!(home.count(), 1);
}

#[test]
fn a_unique_key_returns_the_unfinished_job_that_has_it() {
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--unique-key", "k", "--", "true"]).ok();
    let again = home.run(["enqueue", "--unique-key", "k", "--json", "--", "false"]).ok().json();
    assert_eq!((&again["existing"], &again["id"]), (&json!(true), &json!("a")));
    home.run(["cancel", "a"]).ok();
    home.run(["enqueue", "--id", "b", "--unique-key", "k", "--", "true"]).ok().prints("b\n");
}

#[test]
fn quiet_prints_nothing_at_all() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--", "true"]).ok().prints("").says_nothing();
    home.run(["enqueue", "--quiet", "--json", "--", "true"]).ok().prints("").says_nothing();
    assert_eq!(home.count(), 2);
}

#[test]
fn the_hint_about_workers_disappears_when_one_is_running() {
    let home = Home::new();
    let worker = crate::cli::harness::test_worker::TestWorker::new(&home, "w1");
    home.run(["enqueue", "--", "true"]).ok().says_nothing();
    drop(worker);
    home.run(["enqueue", "--", "true"]).ok().says("no worker is running");
}

#[test]
fn an_unserved_or_mistyped_queue_prints_a_hint() {
    let home = Home::new();
    home.run(["queue", "resume", "mail"]).ok();
    home.run(["enqueue", "--queue", "mial", "--", "true"])
        .ok()
        .says("queue `mial` is new; did you mean `mail`?");
    let again = home.run(["enqueue", "--queue", "mial", "--", "true"]).ok();
    assert!(!again.stderr.contains("did you mean"), "only the first job makes a queue: {again}");
    home.run(["enqueue", "-q", "--queue", "mali", "--", "true"]).ok().says_nothing();
    let mail = store::ServedJobs::InOrder(vec!["mail".parse().expect("a name")]);
    let _worker = crate::cli::harness::test_worker::TestWorker::serving(&home, "w1", mail);
    home.run(["enqueue", "--queue", "mail", "--", "true"]).ok().says_nothing();
    let hint = "no worker serves queue `video`; start one with `queuectl worker start --queue video`";
    home.run(["enqueue", "{\"command\":\"true\",\"queue\":\"video\"}"]).ok().says(hint);
}

#[test]
fn a_job_runs_where_it_was_enqueued_by_default() {
    let home = Home::new();
    let folder = home.folder().canonicalize().expect("a folder");
    let sub = folder.join("sub");
    std::fs::create_dir(&sub).expect("a folder");
    for (args, expected) in
        [(vec![], folder.clone()), (vec!["--cwd", "/"], "/".into()), (vec!["--cwd", "sub"], sub)]
    {
        let args = ["enqueue", "--json"].into_iter().chain(args).chain(["--", "true"]);
        let job = home.call(args).at(&folder).run().ok().json();
        assert_eq!(job["cwd"], expected.to_str().expect("text"));
    }
}

#[test]
fn the_environment_is_captured_by_default() {
    let home = Home::new();
    let enqueue = |args: &[&str]| {
        let call = home.call(["enqueue"].iter().chain(args).chain(&["--", "true"]));
        let call = call.env("SECRET", "s3cret").env("SHLVL", "3").env("QUEUECTL_JOB_ID", "j");
        call.env("TRACEPARENT", "00-7-7-01").run().ok();
    };
    enqueue(&["--id", "with"]);
    enqueue(&["--id", "without", "--no-env-capture"]);
    let worker = crate::cli::harness::test_worker::TestWorker::new(&home, "w1");
    let claimed = worker.claim(2);
    let kept = claimed[0].environment.as_ref().expect("it was captured").to_bytes();
    let kept = String::from_utf8(kept).expect("it is text");
    assert!(kept.contains("SECRET=s3cret"), "{kept:?}");
    let is_left_out = |name: &&str| !kept.contains(*name);
    assert!(["SHLVL", "TRACEPARENT", "QUEUECTL_"].iter().all(is_left_out), "volatile names: {kept:?}");
    assert_eq!(claimed[1].environment, None);
    home.run(["show", "with"]).ok().shows_no("s3cret");
    home.run(["show", "with", "--json"]).ok().shows_no("s3cret");
}

#[test]
fn the_values_of_env_are_never_shown() {
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--env", "TOKEN=s3cret", "--json", "--", "true"])
        .ok()
        .shows_no("s3cret");
    home.run(["show", "a"]).ok().shows("TOKEN").shows_no("s3cret");
    assert_eq!(home.show("a")["env"], json!(["TOKEN"]));
}

#[test]
fn jobs_of_an_array_may_depend_on_each_other_in_any_order() {
    let home = Home::new();
    home.run(["enqueue", r#"[{"id":"b","command":"2","depends_on":["a"]},{"id":"a","command":"1"}]"#]).ok();
    assert_eq!(ids(&home.run(["list", "--state", "blocked", "--json"]).ok().json()), ["b"]);
}

#[test]
fn a_job_given_in_two_ways_is_refused() {
    let json = r#"{"command":"true"}"#;
    for args in [
        vec![json, "--file", "x"],
        vec!["-", "--", "true"],
        vec!["--command", "true", "--", "true"],
        vec!["--file", "x", "--priority", "1"],
        vec!["-", "--queue", "a"],
    ] {
        let home = Home::new();
        home.run(["enqueue"].into_iter().chain(args)).fails(2).says("in more than one way");
        assert!(home.is_empty());
    }
}

#[test]
fn contradictory_fields_are_refused() {
    for (flags, json, message) in [
        (
            ["--max-retries", "1", "--max-attempts", "2"],
            r#"{"command":"x","max_retries":1,"max_attempts":2}"#,
            "give `max_retries` or `max_attempts`, not both",
        ),
        (
            ["--delay", "1s", "--run-at", "2999-01-01T00:00:00Z"],
            r#"{"command":"x","delay":"1s","run_at":"2999-01-01T00:00:00Z"}"#,
            "give `run_at` or `delay`, not both",
        ),
        (
            ["--retry-on", "1,75", "--no-retry-on", "2,75"],
            r#"{"command":"x","retry_on":[1,75],"no_retry_on":[2,75]}"#,
            "exit code 75 is in both `retry_on` and `no_retry_on`",
        ),
    ] {
        let home = Home::new();
        home.run(["enqueue", "--command", "x"].into_iter().chain(flags)).fails(2).says(message);
        home.run(["enqueue", json]).fails(2).says(message);
        assert!(home.is_empty());
    }
}

#[test]
fn a_dependency_on_a_deduplicated_sibling_becomes_one_on_the_existing_job() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "there", "--unique-key", "k", "--delay", "1h", "--", "true"]).ok();
    let array = r#"[{"id":"behind","command":"true","depends_on":["twin","there"]},
                    {"id":"twin","command":"true","unique_key":"k"}]"#;
    home.run(["enqueue", array]).ok().prints("behind\nthere\n");
    assert_eq!(home.show("behind")["depends_on"], json!(["there"]));
    home.run(["list", "--state", "blocked", "--format", "ids"]).ok().prints("behind\n");
    home.run(["doctor", "--full"]).ok();

    // The same in a file and in a stream, where the two may be stored at different times.
    let lines = "{\"id\":\"twin-2\",\"command\":\"true\",\"unique_key\":\"k\"}\n\
                 {\"id\":\"behind-2\",\"command\":\"true\",\"depends_on\":[\"twin-2\"]}\n";
    home.call(["enqueue", "-"]).with_stdin(lines).run().ok().prints("there\nbehind-2\n");
    assert_eq!(home.show("behind-2")["depends_on"], json!(["there"]));
}

#[test]
fn deduplicated_siblings_cannot_form_a_cycle() {
    let home = Home::new();
    let array = r#"[{"id":"a","command":"true","unique_key":"k","depends_on":["c"]},
                    {"id":"b","command":"true","unique_key":"k"},
                    {"id":"c","command":"true","depends_on":["b"]}]"#;
    home.run(["enqueue", array]).fails(2).says("waits for itself");
    assert!(home.is_empty());
}

#[test]
fn a_unique_key_is_held_for_the_given_time() {
    let home = Home::new();
    let enqueue = |id: &str, unique_for: &str| {
        let flags = ["--unique-key", "k", "--unique-for", unique_for];
        home.run(["enqueue", "--json", "--id", id].iter().chain(&flags).chain(&["--", "true"])).ok().json()
    };
    assert_eq!(enqueue("a", "1h")["existing"], json!(null));
    let again = enqueue("b", "started");
    assert_eq!((&again["id"], &again["existing"]), (&json!("a"), &json!(true)));
    home.run(["cancel", "-q", "a"]).ok();
    assert_eq!(enqueue("c", "finished")["id"], "a", "its hour has not passed");
    assert_eq!(home.show("a")["unique_for"], "1h");
    home.run(["show", "a"]).ok().shows("k (for 1h after enqueuing)");
    let lines = r#"{"id":"x","command":"true","unique_key":"l","unique_for":"started"}
{"id":"y","command":"true","unique_key":"l"}
"#;
    home.call(["enqueue", "-"]).with_stdin(lines).run().ok().prints("x\nx\n");
    home.run(["enqueue", "--unique-for", "1h", "--", "true"]).fails(2).says("requires a `unique_key`");
    home.run(["enqueue", "--unique-key", "k", "--unique-for", "0", "--", "true"]).fails(2);
    home.run(["enqueue", "--unique-key", "k", "--unique-for", "ever", "--", "true"])
        .fails(2)
        .says("started, finished");
}

#[test]
fn existing_jobs_are_returned_by_every_form_of_enqueue() {
    let home = Home::with_jobs(&["a"]);
    let json = r#"{"id":"a","command":"true"}"#;
    let file = home.file("jobs.jsonl", format!("{json}\n{json}\n"));
    let file = file.to_str().expect("a path");
    for args in
        [vec![json], vec!["--file", file], vec!["--id", "a", "--", "true"], vec!["--batch", "b", json]]
    {
        let args: Vec<&str> = ["enqueue", "--if-absent", "--json"].into_iter().chain(args).collect();
        home.run(&args).ok().shows("\"existing\":true");
        let refused: Vec<&str> = args.into_iter().filter(|arg| *arg != "--if-absent").collect();
        home.run(&refused).fails(4);
    }
    home.call(["enqueue", "--if-absent", "-"]).with_stdin(format!("{json}\n")).run().ok().prints("a\n");
    assert_eq!(home.count(), 1);
}

use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

#[test]
fn without_hooks_list_prints_an_empty_array_or_a_hint() {
    let home = Home::with_queue();
    home.run(["hook", "list", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["hook", "list"]).ok().prints("").says("hint: no hooks");
}

#[test]
fn a_hook_has_the_documented_shape() {
    let home = Home::new();
    let url = "https://example.org/hooks";
    let add = ["hook", "add", "site", "--on", "dlq-above", "--above", "10", "--queue", "mail", "--url", url];
    let added = home.run(add.into_iter().chain(["--secret", "keep-it-secret", "--json"])).ok().says_nothing();
    let mut shown = added.json();
    assert_eq!(home.run(["hook", "show", "site", "--json"]).ok().json(), shown);
    assert_eq!(home.run(["hook", "list", "--json"]).ok().json(), json!([shown]));
    for field in ["created_at", "created_by"] {
        assert!(shown[field].take().is_string(), "{field}");
    }
    let expected = json!({"name": "site", "event": "dlq_above", "queue": "mail", "above": 10, "command": null,
                          "cwd": null, "url": url, "secret": true, "created_at": null, "created_by": null,
                          "pending": 0, "delivered_at": null, "failing_since": null, "error": null,
                          "gave_up": 0, "gave_up_at": null});
    assert_eq!(shown, expected);
}

#[test]
fn list_prints_one_row_per_hook() {
    let home = Home::new();
    home.run(["hook", "add", "alert", "--on", "dead", "--queue", "mail", "--", "echo", "a b"])
        .ok()
        .prints("alert\n");
    home.run([
        "hook",
        "add",
        "crash",
        "--on",
        "worker_crashed",
        "--url",
        "http://localhost",
        "--secret",
        "x",
    ])
    .ok();
    let table = "HOOK   ON              PENDING  SECRET  TARGET\n\
                 alert  dead in mail          0          echo 'a b'\n\
                 crash  worker-crashed        0  yes     http://localhost\n";
    home.run(["hook", "list"]).ok().prints(table);
    home.run(["hook", "show", "crash"]).ok().shows("  secret        yes\n").shows("  pending       0\n");
}

#[test]
fn a_terminal_shows_sentences() {
    let home = Home::new();
    let seen =
        |args: &[&str]| on_terminal(home.call(args).into_command(), 100, "").screen.trim_end().to_owned();
    assert_eq!(
        seen(&["hook", "add", "h", "--on", "dead", "--", "true"]),
        "Hook h added; try it with `queuectl hook test h`"
    );
    assert_eq!(seen(&["hook", "test", "h"]), "Hook h works: the sample event was delivered");
    assert_eq!(seen(&["hook", "remove", "h"]), "Hook h removed");
}

#[test]
fn secrets_are_never_printed() {
    let home = Home::new();
    home.file("key", "keep-it-secret\n");
    for (name, flags) in [
        ("a", vec!["--secret", "keep-it-secret"]),
        ("b", vec!["--secret-file", "key"]),
        ("c", vec!["--secret-env", "KEY"]),
    ] {
        let add = ["hook", "add", name, "--on", "dead", "--url", "http://localhost:1/"];
        let call = home.call(add.into_iter().chain(flags)).env("KEY", "keep-it-secret");
        let ran = call.run().ok();
        assert!(!ran.stdout.contains("keep-it") && !ran.stderr.contains("keep-it"), "{ran}");
    }
    for args in [
        vec!["hook", "list"],
        vec!["hook", "list", "--json"],
        vec!["hook", "show", "a"],
        vec!["hook", "show", "b", "--json"],
        vec!["hook", "test", "c"],
        vec!["hook", "remove", "a", "--json"],
        vec!["status", "--json"],
    ] {
        let ran = home.run(args);
        assert!(!ran.stdout.contains("keep-it") && !ran.stderr.contains("keep-it"), "{ran}");
    }
}

#[test]
fn an_invalid_hook_is_refused_and_not_added() {
    let home = Home::with_queue();
    let long = "x".repeat(65);
    for (args, message) in [
        (vec!["h", "--on", "daed", "--", "true"], "did you mean `dead`?"),
        (vec!["h", "--on", "everything", "--", "true"], "the events are success, failure"),
        (vec!["h", "--on", "dead,sucess", "--", "true"], "did you mean `success`?"),
        (vec!["h", "--on", "dead,", "--", "true"], "unknown event ``"),
        (vec!["h", "--on", "dead,batch-finished", "--queue", "a", "--", "true"], "does not take a queue"),
        (vec!["h", "--on", "dead"], "no target given"),
        (vec!["h", "--on", "dead", "--command", "a", "--", "b"], "more than one target given"),
        (vec!["h", "--on", "dead", "--url", "http://a", "--", "b"], "more than one target given"),
        (vec!["h", "--on", "dead", "--command", " "], "the command is blank"),
        (vec!["h", "--on", "dead", "--url", "ftp://a"], "http:// or https://"),
        (vec!["h", "--on", "dead", "--url", "http://ada:pw@a"], "must not contain a user or a password"),
        (vec!["h", "--on", "dead", "--above", "3", "--", "true"], "does not take a threshold"),
        (vec!["h", "--on", "dlq-above", "--", "true"], "set it with --above N"),
        (vec!["h", "--on", "dlq-above", "--above", "-1", "--", "true"], "error: "),
        (vec!["h", "--on", "worker-crashed", "--queue", "a", "--", "true"], "does not take a queue"),
        (vec!["h", "--on", "dead", "--queue", "a b", "--", "true"], "error: "),
        (vec!["h", "--on", "dead", "--secret", "x", "--", "true"], "error: "),
        (vec!["h", "--on", "dead", "--url", "http://a", "--secret", ""], "the secret is empty"),
        (vec!["h", "--on", "dead", "--url", "http://a", "--secret-file", "none"], "failed to read `none`"),
        (vec!["h", "--on", "dead", "--url", "http://a", "--secret-env", "NONE"], "the variable `NONE`"),
        (vec!["a b", "--on", "dead", "--", "true"], "invalid name `a b`"),
        (vec![&long, "--on", "dead", "--", "true"], "longer than 64 characters"),
        (vec!["h", "--", "true"], "--on"),
    ] {
        home.run(["hook", "add"].into_iter().chain(args)).fails(2).prints("").says(message);
    }
    assert_eq!(home.run(["hook", "list", "--json"]).ok().json(), json!([]));
}

#[test]
fn an_unknown_hook_is_not_found_and_the_nearest_is_offered() {
    let home = Home::new();
    home.run(["hook", "add", "alert", "--on", "dead", "--", "true"]).ok();
    for verb in ["show", "test", "remove"] {
        home.run(["hook", verb, "alret"])
            .fails(3)
            .says("there is no hook `alret`")
            .says("did you mean `alert`?");
        home.run(["hook", verb, "other"]).fails(3).says("`queuectl hook list` shows");
    }
    home.run(["hook", "add", "alert", "--on", "success", "--", "true"])
        .fails(4)
        .says("there is already a hook");
    assert_eq!(home.run(["hook", "show", "alert", "--json"]).ok().json()["event"], "dead");
}

#[test]
fn a_test_delivery_is_immediate_and_needs_no_worker() {
    let home = Home::new();
    for (event, flags, about) in [
        ("success", vec![], "job"),
        ("failure", vec![], "job"),
        ("dead", vec!["--queue", "mail"], "job"),
        ("batch-finished", vec![], "batch"),
        ("worker-crashed", vec![], "worker"),
        ("dlq-above", vec!["--above", "5"], "dlq"),
    ] {
        let add = ["hook", "add", event, "--on", event, "--command", "cat > event.json"];
        home.run(add.into_iter().chain(flags)).ok();
        let tested = home.run(["hook", "test", event, "--json"]).ok().says_nothing().json();
        let output = std::fs::read_to_string(home.folder().join("event.json")).expect("the hook ran");
        let output: Value = serde_json::from_str(&output).expect("JSON");
        assert_eq!(tested, json!({"hook": event, "delivery": output["delivery"], "delivered": true}));
        assert_eq!(output["event"], event.replace('-', "_"));
        assert!(output[about].is_object(), "{output}");
    }
    assert_eq!(home.run(["hook", "show", "dead", "--json"]).ok().json()["pending"], 0, "nothing is kept");
}

#[test]
fn a_hook_can_have_several_events() {
    let home = Home::new();
    home.run(["hook", "add", "h", "--on", "dead,success", "--command", "echo $QUEUECTL_EVENT > event"]).ok();
    home.run(["hook", "list"]).ok().shows("success,dead");
    home.run(["hook", "test", "h"]).ok();
    let event = std::fs::read_to_string(home.folder().join("event")).expect("the hook ran");
    assert_eq!(event, "success\n", "the first of its events");
    home.run(["hook", "add", "i", "--on", "failure", "--on", "dead,success", "--", "true"]).ok();
    home.run(["hook", "list"]).ok().shows("success,failure,dead");
}

#[test]
fn a_failed_test_delivery_is_an_error() {
    let home = Home::new();
    home.run(["hook", "add", "h", "--on", "dead", "--command", "echo no luck >&2; exit 4"]).ok();
    let ran = home.run(["hook", "test", "h"]).fails(1).prints("");
    assert_eq!(ran.stderr, "error: hook `h` failed (exit code 4: no luck)\n");
    home.run(["hook", "add", "absent", "--on", "dead", "--url", "http://127.0.0.1:1/"]).ok();
    home.run(["hook", "test", "absent"]).fails(1).says("could not be reached: Connection refused)\n");
}

#[test]
fn the_hidden_post_verb_refuses_other_callers() {
    Home::new().run(["__post"]).fails(2).says("use `queuectl hook add --url`");
}

/// A hook with one event that no worker delivers for now.
fn with_waiting_event() -> (Home, String) {
    let home = Home::with_jobs(&["a"]);
    home.run(["hook", "add", "h", "--on", "success", "--", "echo why >&2; exit 3"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let found = home.run(["hook", "deliveries", "h", "--json"]).ok().json();
    let id = found["waiting"][0]["id"].as_str().expect("a delivery that waits").to_owned();
    (home, id)
}

#[test]
fn deliveries_are_listed_with_the_results_of_the_last_tries() {
    let home = Home::with_queue();
    home.run(["hook", "add", "h", "--on", "success", "--", "true"]).ok();
    home.run(["hook", "deliveries", "h"]).ok().prints("").says("hint: no event waits");
    home.run(["hook", "deliveries", "g"]).fails(3).says("did you mean `h`?");
    let (home, id) = with_waiting_event();
    let listed = home.run(["hook", "deliveries", "h"]).ok();
    listed.shows("WAITING").shows(&id).shows("RESULT").shows("why");
}

#[test]
fn a_waiting_delivery_is_due_at_once_on_request() {
    let (home, id) = with_waiting_event();
    home.run(["hook", "retry", "h", "--json"]).ok();
    let due = |home: &Home| {
        let found = home.run(["hook", "deliveries", "h", "--json"]).ok().json();
        found["waiting"][0]["due_at"].as_str().expect("a time").to_owned()
    };
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let before = due(&home);
    assert_eq!(
        home.run(["hook", "retry", "h", &id, "--json"]).ok().json(),
        json!({"hook": "h", "retried": 1})
    );
    assert!(due(&home) < before, "it does not wait for its backoff");
    home.run(["hook", "retry", "h"]).ok().prints("h\n");
    home.run(["hook", "retry", "h", "d-none"]).fails(3).says("has no delivery `d-none` that waits");
    home.run(["hook", "retry", "g"]).fails(3).says("did you mean `h`?");
    home.run(["events"]).ok().shows("hook retry");
}

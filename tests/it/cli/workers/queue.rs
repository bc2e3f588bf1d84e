use serde_json::{Value, json};

use crate::cli::harness::Home;

fn queues(home: &Home) -> Value {
    home.run(["queue", "list", "--json"]).ok().json()
}

#[test]
fn a_pause_is_shown_with_who_and_why_and_ends_with_resume() {
    let home = Home::with_jobs(&["a", "b"]);
    let paused =
        home.run(["queue", "pause", "default", "--reason", "the disk is full", "--json"]).ok().json();
    assert_eq!((&paused["name"], &paused["paused"]), (&json!("default"), &json!(true)));
    assert_eq!(paused["pause_reason"], "the disk is full");
    assert!(paused["paused_by"].is_string() && paused["paused_at"].is_string());
    assert_eq!(paused["jobs"]["pending"], 2);
    home.run(["queue", "list"]).ok().shows("paused ").shows("(the disk is full)");
    home.run(["worker", "run", "--until-empty"]).ok();
    assert_eq!(home.state_of("a"), "pending", "a paused queue does not block other queues");
    home.run(["queue", "resume", "default"]).ok().prints("default\n").says_nothing();
    assert_eq!(queues(&home)[0]["paused"], false);
    home.run(["worker", "run", "--until-empty"]).ok();
    assert_eq!(home.state_of("a"), "completed");
}

#[test]
fn limits_are_set_shown_and_removed() {
    let home = Home::new();
    let set =
        home.run(["queue", "set", "mail", "--concurrency", "2", "--rate", "100/h", "--json"]).ok().json();
    assert_eq!((&set["concurrency"], &set["rate"]), (&json!(2), &json!("100/h")));
    assert_eq!((&set["next_start_at"], &set["paused"]), (&Value::Null, &json!(false)));
    home.run(["queue", "list"]).ok().shows("mail       0/2  100/h");
    let set = home.run(["queue", "set", "mail", "--rate", "none", "--json"]).ok().json();
    assert_eq!((&set["concurrency"], &set["rate"]), (&json!(2), &Value::Null), "the other stays");
    let status = home.run(["status", "--json"]).ok().json();
    assert_eq!(status["queues"], queues(&home), "one shape everywhere");
}

#[test]
fn using_a_new_queue_creates_it_and_suggests_a_similar_name() {
    let home = Home::with_queue();
    home.run(["queue", "list", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["queue", "list"]).ok().prints("").says("hint: no queues yet");
    home.run(["queue", "resume", "email"]).ok().says_nothing();
    home.run(["queue", "pause", "emial"]).ok().says("hint: queue `emial` is new; did you mean `email`?");
    home.run(["queue", "pause", "emial"]).ok().says_nothing();
    home.run(["queue", "set", "video", "--concurrency", "1"]).ok().says_nothing();
    let names: Vec<String> =
        queues(&home).as_array().expect("queues").iter().map(|queue| queue["name"].to_string()).collect();
    assert_eq!(names, ["\"email\"", "\"emial\"", "\"video\""]);
}

#[test]
fn invalid_limits_are_refused_and_no_queue_is_created() {
    let home = Home::with_queue();
    for (arguments, message) in [
        (&["queue", "pause"][..], "<QUEUE>"),
        (&["queue", "pause", "a b"], "must not contain ' '"),
        (&["queue", "pause", "a", "--reason", ""], "--reason"),
        (&["queue", "resume", ""], "it is empty"),
        (&["queue", "set", "a"], "no changes given"),
        (&["queue", "set", "a", "--concurrency", "0"], "must be a whole number from 1 to 100000, or none"),
        (&["queue", "set", "a", "--concurrency", "-1"], "must be a whole number"),
        (&["queue", "set", "a", "--concurrency", "1.5"], "must be a whole number"),
        (&["queue", "set", "a", "--concurrency", "9223372036854775808"], "must be a whole number"),
        (&["queue", "set", "a", "--rate", "10"], "not a valid rate: `10`; write 10/m"),
        (&["queue", "set", "a", "--rate", "0/m"], "must allow 1 to 1000000 jobs"),
        (&["queue", "set", "a", "--rate", "-1/m"], "must allow 1 to 1000000 jobs"),
        (&["queue", "set", "a", "--rate", "5/0s"], "must not be 0"),
        (&["queue", "set", "a", "--rate", "5/soon"], "not a valid duration"),
        (&["queue", "set", "a", "--rate", "5/1e400"], "longer than 100 years"),
    ] {
        home.run(arguments).fails(2).says(message);
    }
    home.run(["queue", "list", "--json"]).ok().prints("[]\n");
}

#[test]
fn job_defaults_of_a_queue_are_set_shown_and_removed() {
    let home = Home::new();
    let flags = ["--limits", r#"{"memory":"1024M","nice":5}"#, "--retry-on", "75,1", "--json"];
    let set = home.run(["queue", "set", "mail"].into_iter().chain(flags)).ok().json();
    assert_eq!(set["limits"], json!({"memory": "1G", "nice": 5}));
    assert_eq!((&set["retry_on"], &set["no_retry_on"]), (&json!([1, 75]), &Value::Null));
    home.run(["queue", "list"]).ok().shows("NOTES").shows("memory=1G,nice=5; retry on 1,75");
    let both = "exit code 75 is in both `retry_on` and `no_retry_on`";
    home.run(["queue", "set", "mail", "--no-retry-on", "75"]).fails(2).says(both);
    home.run(["queue", "set", "new", "--retry-on", "75", "--no-retry-on", "75"]).fails(2).says(both);
    home.run(["queue", "set", "new", "--limits", "memroy=1G"]).fails(2).says("did you mean `memory`?");
    home.run(["queue", "set", "new", "--retry-on", "0"]).fails(2).says("0 means success");
    assert_eq!(queues(&home).as_array().map(Vec::len), Some(1), "nothing was made");
    let set =
        home.run(["queue", "set", "mail", "--limits", "none", "--retry-on", "none", "--json"]).ok().json();
    assert_eq!((&set["limits"], &set["retry_on"]), (&Value::Null, &Value::Null));
    home.run(["queue", "list"]).ok().shows_no("memory=1G");
}

#[test]
fn a_queue_without_jobs_can_be_removed_with_its_settings() {
    let home = Home::new();
    home.run(["queue", "set", "-q", "mial", "--concurrency", "2"]).ok();
    home.run(["queue", "pause", "-q", "other"]).ok();
    let removed = home.run(["queue", "remove", "mial", "--json"]).ok().json();
    assert_eq!((&removed["name"], &removed["concurrency"]), (&json!("mial"), &json!(2)));
    assert_eq!(queues(&home).as_array().map(Vec::len), Some(1));
    let events = home.run(["events", "--json"]).ok().stdout;
    assert!(events.contains("queue_remove") && events.contains("mial"), "{events}");
    home.run(["queue", "remove", "other"]).ok().prints("other\n").says_nothing();
    home.run(["enqueue", "-q", "--queue", "mial", "--", "true"]).ok();
    assert_eq!(queues(&home)[0]["concurrency"], Value::Null, "a new queue has no settings");
}

#[test]
fn a_queue_in_use_cannot_be_removed() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--queue", "mail", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "b", "--queue", "mail", "--", "true"]).ok();
    home.run(["cancel", "-q", "b"]).ok();
    home.run(["queue", "remove", "mail"])
        .fails(4)
        .says("queue `mail` was not removed: it has 2 jobs")
        .says("`queuectl remove --queue mail`");
    home.run(["remove", "--queue", "mail", "--yes"]).ok();
    home.run(["schedule", "add", "-q", "s", "--every", "1h", "--queue", "mail", "--", "true"]).ok();
    home.run(["queue", "remove", "mail"]).fails(4).says("schedule `s`").says("`queuectl schedule remove s`");
    home.run(["schedule", "remove", "-q", "s"]).ok();
    home.run(["queue", "remove", "mail"]).ok();
    home.run(["queue", "remove", "mail"]).fails(3).says("there is no queue `mail`");
    home.run(["enqueue", "-q", "--", "true"]).ok();
    home.run(["queue", "remove", "default"]).fails(2).says("cannot be removed");
    home.run(["queue", "remove", "defalt"]).fails(3).says("did you mean `default`?");
    home.run(["doctor", "--full"]).ok();
}

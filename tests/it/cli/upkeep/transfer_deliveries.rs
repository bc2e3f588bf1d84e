//! `queuectl export` and `queuectl import`: pending hook deliveries

use std::fs;

use serde_json::Value;

use super::transfer::lines;
use crate::cli::harness::Home;

fn pending(home: &Home) -> Vec<u64> {
    let hooks = home.run(["hook", "list", "--json"]).ok().json();
    let hooks = hooks.as_array().expect("hooks").clone();
    hooks.iter().map(|hook| hook["pending"].as_u64().expect("a number")).collect()
}

#[test]
fn pending_deliveries_are_imported_once() {
    let home = Home::new();
    home.run(["hook", "add", "-q", "alert", "--on", "dead", "--command", "cat > event.json"]).ok();
    for id in ["a", "b"] {
        home.run(["enqueue", "-q", "--id", id, "--max-retries", "0", "--", "false"]).ok();
        home.kill_next(id, "exit code 1");
    }
    home.run(["export", "-q", "all.jsonl"]).ok();
    let exported = lines(&home, &[]);
    let names: Vec<&Value> = exported.iter().filter(|line| line["kind"] == "delivery").collect();
    assert_eq!((names.len(), pending(&home)), (2, vec![2]));
    let (file, other) = (home.folder().join("all.jsonl"), Home::new());
    let file = file.to_str().expect("text");
    other.run(["import", "-q", file]).ok();
    assert_eq!(lines(&other, &[]), exported);
    other.run(["import", "-q", "--if-absent", file]).ok();
    assert_eq!(pending(&other), [2], "tried again");
    other.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(pending(&other), [0]);
    // The command runs where it was added.
    let event: Value =
        serde_json::from_slice(&fs::read(home.folder().join("event.json")).expect("the hook ran"))
            .expect("an event");
    assert_eq!(names[1]["name"], event["delivery"], "the last of them");
    other.run(["import", "-q", "--if-absent", file]).ok();
    assert_eq!(pending(&other), [0], "a delivered event is not sent again");
    let third = Home::new();
    third.run(["hook", "add", "-q", "alert", "--on", "success", "--command", "true"]).ok();
    third.run(["import", "-q", file]).ok();
    assert_eq!(pending(&third), [0], "a hook that is here has its own");
}

#[test]
fn an_invalid_delivery_is_refused() {
    let home = Home::new();
    home.run(["hook", "add", "-q", "alert", "--on", "dead", "--command", "cat"]).ok();
    home.run(["enqueue", "-q", "--id", "a", "--max-retries", "0", "--", "false"]).ok();
    home.kill_next("a", "exit code 1");
    let good = home.run(["export", "--no-env"]).ok().stdout;
    let other = Home::new();
    for (from, to, problem) in [
        ("\"payload\":\"{", "\"payload\":\"[{", "delivery `d-"),
        ("\"kind\":\"delivery\",\"hook\":\"alert\"", "\"kind\":\"delivery\",\"hook\":\"x\"", "the hook `x`"),
        ("\"tries\":0", "\"tries\":-1", "cannot be read"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        other.call(["import", "-"]).with_stdin(bad).run().fails(2).says(problem);
    }
    assert!(other.is_empty());
}

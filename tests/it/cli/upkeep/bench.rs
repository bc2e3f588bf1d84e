use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::cli::harness::Home;
use crate::cli::harness::background::Background;

/// The names of the entries in the folder of a home.
fn entries(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.folder()).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_figure_stands_beside_its_limit_and_nothing_is_left() {
    let home = Home::with_jobs(&["a"]);
    let results = home.run(["bench", "--seconds", "1", "--json"]).ok().json();
    assert_eq!(results["store"], "sqlite");
    let figures: &Vec<Value> = results["results"].as_array().expect("an array");
    let named = |name: &str| figures.iter().any(|figure| figure["name"] == name);
    assert!(named("one enqueue") && named("jobs from a file") && named("start of a job"), "{results}");
    assert!(named("short jobs, 1 slot") && named("short jobs, 4 slots"), "{results}");
    for figure in figures {
        for number in ["value", "limit", "share"] {
            assert!(figure[number].as_f64().is_some_and(|number| number > 0.0), "{number}: {figure}");
        }
    }
    assert_eq!(
        (entries(&home), home.count()),
        (vec!["home".to_owned()], 1),
        "the queue of the user is as before"
    );
    let in_home = fs::read_dir(home.path()).expect("the home").flatten();
    assert!(!in_home.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("bench-")));
}

#[test]
fn an_interrupted_benchmark_leaves_nothing() {
    let home = Home::new();
    let bench = Background::start(home.call(["bench", "-q"]));
    crate::crash_engine::processes::wait("it has begun", || !entries(&home).is_empty() && bench.waits());
    bench.signal(Signal::INT);
    let (status, _) = bench.end();
    assert!(!status.success());
    assert_eq!(entries(&home), Vec::<String>::new());
}

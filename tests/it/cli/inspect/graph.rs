use serde_json::json;

use crate::cli::harness::Home;

/// build ← test, lint ← deploy ← notify
fn pipeline() -> Home {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "build", "--", "true"]).ok();
    for (id, parents) in [("test", "build"), ("lint", "build"), ("deploy", "test,lint"), ("notify", "deploy")]
    {
        let flags = parents.split(',').flat_map(|parent| ["--depends-on", parent]);
        let call: Vec<&str> =
            ["enqueue", "-q", "--id", id].into_iter().chain(flags).chain(["--", "true"]).collect();
        home.run(call).ok();
    }
    home
}

#[test]
fn a_tree_shows_both_directions_and_marks_repeated_jobs() {
    let home = pipeline();
    let expected = "deploy  pending
depends on
├── test  pending
│   └── build  pending
└── lint  pending
    └── build  pending
needed by
└── notify  pending
";
    home.run(["graph", "deploy"]).ok().prints(expected).says_nothing();
    home.run(["worker", "run", "--until-empty"]).ok();
    home.run(["graph", "deploy"]).ok().prints(&expected.replace("pending", "completed"));
    home.run(["graph", "build"])
        .ok()
        .shows("│   └── deploy  completed\n│       └── notify  completed")
        .shows("└── lint  completed\n    └── deploy  completed (*)\n");
    home.run(["remove", "notify", "-q"]).ok();
    home.run(["remove", "build", "-q"]).ok();
    home.run(["graph", "test"]).ok().shows("└── build  removed").shows("└── deploy  completed");
}

#[test]
fn json_has_nodes_and_edges() {
    let home = pipeline();
    let graph = home.run(["graph", "notify", "--json"]).ok().json();
    assert_eq!((&graph["id"], &graph["cut"]), (&json!("notify"), &json!(false)));
    assert_eq!(graph["nodes"][1], json!({"id": "deploy", "number": 4, "state": "pending"}));
    assert_eq!(graph["nodes"].as_array().map(Vec::len), Some(5));
    let edges = graph["edges"].as_array().expect("edges");
    assert_eq!(edges.len(), 5);
    assert!(edges.contains(&json!({"job": "lint", "depends_on": "build"})));
}

#[test]
fn dot_arrows_follow_the_order_of_execution() {
    let home = pipeline();
    home.run(["graph", "deploy", "--dot"])
        .ok()
        .shows("digraph jobs {\n")
        .shows("  \"build\" [label = \"build\\npending\", fillcolor = \"white\"];\n")
        .shows("  \"test\" -> \"deploy\";\n")
        .shows("}\n");
    home.run(["graph", "deploy", "--dot", "--json"]).fails(2);
}

#[test]
fn a_truncated_graph_prints_a_hint() {
    let home = pipeline();
    home.run(["graph", "build", "--limit", "2"])
        .ok()
        .says("only 2 jobs are shown; use a larger --limit to see more");
    let cut = home.run(["graph", "build", "--limit", "2", "--json"]).ok().json();
    assert_eq!((&cut["cut"], cut["nodes"].as_array().map(Vec::len)), (&json!(true), Some(2)));
}

#[test]
fn invalid_arguments_are_refused() {
    let home = pipeline();
    home.run(["graph", "nope"]).fails(3).says("there is no job `nope`");
    home.run(["graph", "../x"]).fails(2).says("invalid id");
    home.run(["graph", "deploy", "--limit", "0"]).fails(2);
    home.run(["graph", "deploy", "--limit", "-1"]).fails(2);
    home.run(["graph"]).fails(2);
}

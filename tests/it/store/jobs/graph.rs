//! Dependency graphs, including finished jobs.

use domain::job::graph::Graph;
use domain::job::life::StateName;
use domain::job::outcome::Outcome;

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store};

every_store!(
    a_graph_contains_ancestors_and_descendants_also_when_finished,
    a_graph_includes_parents_that_were_finished_at_enqueue,
    a_removed_parent_is_listed_without_a_state,
    a_graph_has_a_limit,
    a_removed_job_leaves_no_edges,
    an_unknown_job_has_no_graph,
);

fn graph(fixture: &Fixture, id: &str, limit: usize) -> Graph {
    fixture.store.graph(&job_id(id), limit).expect("a graph").expect("a job")
}

/// `job>depends_on` for each edge, sorted.
fn edges(graph: &Graph) -> Vec<String> {
    let id = |at: usize| graph.nodes[at].id.as_str();
    let mut edges: Vec<String> =
        graph.edges.iter().map(|edge| format!("{}>{}", id(edge.job), id(edge.depends_on))).collect();
    edges.sort();
    edges
}

fn states(graph: &Graph) -> Vec<(&str, Option<StateName>)> {
    graph.nodes.iter().map(|node| (node.id.as_str(), node.state)).collect()
}

fn a_graph_contains_ancestors_and_descendants_also_when_finished(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([
        job("build"),
        job("test").after(&["build"]),
        job("lint").after(&["build"]),
        job("deploy").after(&["test", "lint"]),
        job("notify").after(&["deploy"]),
        job("docs").after(&["build"]),
        job("stranger"),
    ]);
    let expected = ["deploy>lint", "deploy>test", "lint>build", "notify>deploy", "test>build"];
    let before = graph(fixture, "deploy", 99);
    assert_eq!(edges(&before), expected, "siblings are not part of the graph");
    assert_eq!(before.nodes[0].id, job_id("deploy"), "the requested job comes first");
    assert!(before.nodes.iter().all(|node| node.state == Some(StateName::Pending)));
    for _ in 0..7 {
        fixture.run(&worker, Outcome::Success);
    }
    let after = graph(fixture, "deploy", 99);
    assert_eq!(edges(&after), expected);
    assert!(after.nodes.iter().all(|node| node.state == Some(StateName::Completed)));
    assert_eq!(edges(&graph(fixture, "stranger", 99)), [""; 0]);
    assert_eq!(
        edges(&graph(fixture, "build", 99)),
        ["deploy>lint", "deploy>test", "docs>build", "lint>build", "notify>deploy", "test>build"]
    );
}

fn a_graph_includes_parents_that_were_finished_at_enqueue(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("good").priority(1), job("bad").max_retries(0)]);
    fixture.run(&worker, Outcome::Success);
    fixture.run(&worker, FAILURE);
    fixture.enqueue_all([job("runs").after(&["good"]), job("ends").after(&["bad"])]);
    assert_eq!(
        states(&graph(fixture, "good", 9)),
        [("good", Some(StateName::Completed)), ("runs", Some(StateName::Pending))]
    );
    let ended = [("bad", Some(StateName::Dead)), ("ends", Some(StateName::Cancelled))];
    assert_eq!(states(&graph(fixture, "bad", 9)), ended);
    fixture.retry("bad");
    fixture.retry("ends");
    let again = [("bad", Some(StateName::Pending)), ("ends", Some(StateName::Pending))];
    assert_eq!(states(&graph(fixture, "bad", 9)), again);
    assert_eq!(fixture.claim(&worker, 9), ["bad", "runs"], "retried jobs wait again");
}

fn a_removed_parent_is_listed_without_a_state(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("parent"), job("child").after(&["parent"])]);
    fixture.run(&worker, Outcome::Success);
    fixture.remove("parent");
    let found = graph(fixture, "child", 9);
    assert_eq!(states(&found), [("child", Some(StateName::Pending)), ("parent", None)]);
    assert_eq!(edges(&found), ["child>parent"]);
}

fn a_graph_has_a_limit(fixture: &Fixture) {
    fixture.enqueue_all([job("root"), job("middle").after(&["root"])]);
    fixture.enqueue_all((0..10).map(|at| job(&format!("leaf-{at}")).after(&["middle"])));
    for (limit, is_cut) in [(1, true), (2, true), (11, true), (12, false), (99, false)] {
        let found = graph(fixture, "middle", limit);
        assert_eq!((found.nodes.len(), found.is_cut), (limit.min(12), is_cut), "{limit}");
        assert_eq!(found.edges.len(), found.nodes.len() - 1, "{limit}: only edges between listed nodes");
    }
    let nearest = graph(fixture, "middle", 3);
    assert_eq!(edges(&nearest), ["leaf-0>middle", "middle>root"]);
}

fn a_removed_job_leaves_no_edges(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("parent"), job("child").after(&["parent"])]);
    fixture.run(&worker, Outcome::Success);
    fixture.run(&worker, Outcome::Success);
    fixture.remove("child");
    assert_eq!(states(&graph(fixture, "parent", 9)), [("parent", Some(StateName::Completed))]);
    // New jobs with the same ids do not inherit the edges.
    fixture.enqueue("child");
    fixture.remove("parent");
    fixture.enqueue("parent");
    assert_eq!(edges(&graph(fixture, "parent", 9)), [""; 0]);
    assert_eq!(edges(&graph(fixture, "child", 9)), [""; 0]);
}

fn an_unknown_job_has_no_graph(fixture: &Fixture) {
    assert_eq!(fixture.store.graph(&job_id("unknown"), 9).expect("graph"), None);
}

use super::document::{MISSED, REACHED, replace};

const NAMES: [&str; 3] = ["limits", "drain", "idle"];
const EMPTY: &str =
    "# Benchmarks\n\nBy hand.\n\n<!-- measured: begin -->\n\n<!-- measured: end -->\n\nThe end.\n";

fn with(document: &str, measured: &[(&str, &str)]) -> String {
    let measured: Vec<(&str, String)> =
        measured.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
    replace(document, &NAMES, &measured).expect("the document has its markers")
}

#[test]
fn sections_follow_the_given_order_and_each_has_its_own_markers() {
    let document = with(EMPTY, &[("drain", "fast"), ("limits", "far")]);
    let expected = "# Benchmarks\n\nBy hand.\n\n<!-- measured: begin -->\n\n\
                    <!-- measured: begin limits -->\nfar\n<!-- measured: end limits -->\n\n\
                    <!-- measured: begin drain -->\nfast\n<!-- measured: end drain -->\n\n\
                    <!-- measured: end -->\n\nThe end.\n";
    assert_eq!(document, expected);
}

#[test]
fn one_section_is_replaced_and_the_others_stay() {
    let before = with(EMPTY, &[("limits", "far"), ("drain", "fast")]);
    let after = with(&before, &[("drain", "faster\n")]);
    assert_eq!(after, before.replace("fast", "faster"));
    assert_eq!(with(&after, &[]), after, "writing nothing changes nothing");
}

#[test]
fn a_section_that_no_benchmark_writes_is_dropped() {
    let before = with(EMPTY, &[("drain", "fast")]).replace(" drain ", " gone ");
    assert!(!with(&before, &[]).contains("fast"));
}

#[test]
fn the_summary_lists_every_row_with_a_verdict() {
    let row =
        |what: &str, bar: &str, verdict: &str| format!("| {what} | 0.91 | 0.8 – 1.0 | {bar} | {verdict} |");
    let text = [
        "#### 4 slots".to_owned(),
        row("ratio", "≥ 0.90", REACHED),
        row("bytes", "≤ 600 B", MISSED),
        row("information", "", ""),
    ];
    let document = with(EMPTY, &[("drain", &text.join("\n"))]);
    let (summary, _) = document.split_once("<!-- measured: begin drain -->").expect("a section");
    assert!(summary.contains("| drain: 4 slots | ratio | 0.91 | ≥ 0.90 | ok |\n"), "{summary}");
    assert!(summary.contains("| drain: 4 slots | bytes | 0.91 | ≤ 600 B | MISSED |\n"), "{summary}");
    assert!(!summary.contains("information"), "{summary}");
    assert_eq!(with(&document, &[]), document, "the summary replaces the previous one");
}

#[test]
fn a_document_without_its_markers_is_refused() {
    for document in ["", "<!-- measured: begin -->", "<!-- measured: end -->"] {
        assert!(replace(document, &NAMES, &[]).is_err(), "{document:?}");
    }
}

#[test]
fn the_benchmark_document_has_its_markers() {
    let document = include_str!("../../../docs/benchmarks.md");
    replace(document, &NAMES, &[]).expect("the document has its markers");
}

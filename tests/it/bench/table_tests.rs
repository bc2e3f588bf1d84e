use super::figure::{count, grouped};
use super::table::Table;

fn table() -> Table {
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    Table {
        title: "Peers".to_owned(),
        columns: row(["peer", "drain", "synced"]),
        rows: vec![row(["a|b", "1,200/s", "yes"]), row(["longer", "≥ 7/s", "no"])],
    }
}

#[test]
fn numbers_are_right_aligned_and_words_are_left_aligned() {
    assert_eq!(table().text(), "  peer      drain  synced\n  a|b     1,200/s  yes\n  longer    ≥ 7/s  no\n");
}

#[test]
fn a_table_is_markdown_even_with_a_bar_in_a_cell() {
    let lines = [
        "| peer | drain | synced |",
        "|---|---:|---|",
        "| a\\|b | 1,200/s | yes |",
        "| longer | ≥ 7/s | no |",
        "",
    ];
    assert_eq!(table().markdown(), lines.join("\n"));
    assert_eq!(table().title, "Peers");
}

#[test]
fn thousands_are_separated_by_commas() {
    let cases = [(0.0, "0.00"), (999.5, "999.50"), (1_000.0, "1,000.00"), (-1_234_567.891, "-1,234,567.89")];
    for (value, text) in cases {
        assert_eq!(grouped(value, 2), text);
    }
    assert_eq!(count(10_000_000), "10,000,000");
}

#[test]
fn an_infinite_ratio_is_aligned_like_a_number() {
    let row = |cell: String| vec![cell];
    let rows = vec![row(grouped(12.5, 2)), row(grouped(1.0 / 0.0, 2))];
    let table = Table { title: String::new(), columns: row("ratio".to_owned()), rows };
    assert_eq!(table.text(), "  ratio\n  12.50\n      ∞\n");
}

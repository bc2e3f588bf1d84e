//! `docs/reliability.md` lists the tests that cause each fault. These tests compare that table with the names of the
//! tests, and check every path that the page mentions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/reliability.md";
const SECTION: &str = "## Every fault, and its tests";
/// The numbers of the faults in the table.
fn faults() -> impl Iterator<Item = u32> {
    1..=43
}

/// Faults without a test, because the feature does not exist yet.
const FAULTS_WITHOUT_TEST: [u32; 0] = [];
/// The folders of the paths that are checked.
const CHECKED_FOLDERS: [&str; 7] = ["bench/", "docs/", "migrations/", "crates/", "tests/", "tools/", ".ci/"];

fn root() -> &'static Path {
    Path::new(super::REPOSITORY)
}

fn page() -> String {
    fs::read_to_string(root().join(PAGE)).expect("the page is readable")
}

/// All test names in a text that follow `before`. Prefixes of names, as in filters, are left out.
fn names<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    let is_preceded = |at: &usize| text[..*at].ends_with(before);
    let starts = text.match_indices("fault_").map(|(at, _)| at).filter(is_preceded);
    let name = |at: usize| text[at..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
    starts.filter_map(name).filter(|name| !name.ends_with('_')).collect()
}

/// The tests of each fault, sorted by name.
fn tests() -> BTreeMap<u32, Vec<String>> {
    let mut tests: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut folders = vec![root().join("crates"), root().join("tests/it")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path: PathBuf = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is UTF-8");
                for name in names(&text, "fn ") {
                    tests.entry(number_of_fault(name)).or_default().push(name.to_owned());
                }
            }
        }
    }
    for names in tests.values_mut() {
        names.sort();
    }
    tests
}

fn number_of_fault(name: &str) -> u32 {
    let number = name.split('_').nth(1).filter(|number| number.len() == 2);
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} has no fault number"))
}

/// The rows of the table: the fault, and its tests.
fn rows(page: &str) -> Vec<(u32, Vec<&str>)> {
    let (_, section) = page.split_once(SECTION).expect("the page has the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    section
        .lines()
        .filter_map(|line| {
            let cell = line.strip_prefix("| ")?.split(" |").next()?;
            Some((cell.parse().ok()?, names(line, "`")))
        })
        .collect()
}

#[test]
fn every_fault_has_a_test_named_after_it() {
    let tests = tests();
    for fault in faults() {
        match (tests.contains_key(&fault), FAULTS_WITHOUT_TEST.contains(&fault)) {
            (true, true) => panic!("fault {fault} has a test: remove it from FAULTS_WITHOUT_TEST"),
            (false, false) => panic!("fault {fault} has no test"),
            (true, false) | (false, true) => {}
        }
    }
    let mut all: Vec<&String> = tests.values().flatten().collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "two tests have the same name");
}

#[test]
fn the_table_lists_every_fault_and_all_of_its_tests() {
    let (page, tests) = (page(), tests());
    let rows = rows(&page);
    let listed: Vec<u32> = rows.iter().map(|(fault, _)| *fault).collect();
    assert_eq!(listed, faults().collect::<Vec<u32>>(), "one row for each fault, in order");
    let mut wrong = Vec::new();
    for (fault, listed) in rows {
        let expected = tests.get(&fault).map_or(&[][..], Vec::as_slice);
        if listed != expected {
            let cell: Vec<String> = expected.iter().map(|name| format!("`{name}`")).collect();
            wrong.push(format!("| {fault} | … | {} |", cell.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "these rows of {PAGE} should end as follows:\n{}", wrong.join("\n"));
}

#[test]
fn the_page_names_only_existing_tests_and_paths() {
    let (page, tests) = (page(), tests());
    let is_test = |name: &str| tests.values().flatten().any(|test| test == name);
    let unknown: Vec<&str> = names(&page, "").into_iter().filter(|name| !is_test(name)).collect();
    assert_eq!(unknown, [""; 0], "these tests do not exist");
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    let words = page.split(|c: char| !is_path(c)).map(|word| word.trim_end_matches('.'));
    let words = words.map(|word| word.trim_start_matches("../"));
    let paths = words.filter(|word| CHECKED_FOLDERS.iter().any(|folder| word.starts_with(folder)));
    let missing: Vec<&str> = paths.filter(|path| !root().join(path).exists()).collect();
    assert_eq!(missing, [""; 0], "these paths do not exist");
}

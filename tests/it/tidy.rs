//! Habits of the source that neither Cargo nor a lint checks. Cargo itself holds the layers: each is a crate, and a crate
//! can import only what its `Cargo.toml` names.

use std::fs;
use std::path::{Path, PathBuf};

/// No folder holds many more files side by side than a reader can take in at once.
const MAX_FILES_IN_FOLDER: usize = 17;

/// Private words that have a plain replacement, and turns of phrase that hide the actor of a sentence. Lower case; the
/// test ignores case. A word that begins and ends with a letter matches as a whole word.
const RETIRED: [&str; 42] = [
    "guardian",
    "guardians",
    "vigil",
    "plaint",
    "hindrance",
    "sabotage",
    "messenger",
    "errand",
    "errands",
    "envelope",
    "rehearse",
    "rehearsal",
    "rehearsed",
    "troubles",
    "leftovers",
    "mourn",
    "whoever",
    "whomever",
    "somebody",
    "nobody",
    "is told",
    "are told",
    "was told",
    "were told",
    "be told",
    "told of",
    "is meant",
    "are meant",
    "goes on",
    "go on",
    "went on",
    "is no longer there",
    "those who",
    "one of those that",
    "so much that",
    "stands in the way",
    "in its way",
    "forgotten",
    "lifeline",
    "boot_millis",
    "past_the_moment",
    "look_again",
];

struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Lines of code with their numbers: without comments and without everything after `#[cfg(test)]`.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line.trim_start()));
        lines.take_while(|(_, line)| *line != "#[cfg(test)]").filter(|(_, line)| !line.starts_with("//"))
    }

    fn is_test(&self) -> bool {
        self.path.iter().any(|part| part == "tests" || part == "tests.rs")
    }
}

fn root() -> &'static Path {
    Path::new(super::REPOSITORY)
}

/// Every file below these folders of the repository that has one of these extensions.
fn files(folders: &[&str], extensions: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a readable folder");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if extensions.iter().any(|wanted| path.extension().is_some_and(|found| found == *wanted)) {
            let text = fs::read_to_string(&path).expect("a text file");
            found.push(Source { path: path.strip_prefix(root()).expect("below the root").to_owned(), text });
        }
    }
    found
}

fn sources() -> Vec<Source> {
    let sources = files(&["crates"], &["rs"]);
    assert!(sources.len() > 50, "found only {} sources", sources.len());
    sources
}

#[test]
fn unsafe_code_stays_in_sys() {
    for source in sources().iter().filter(|source| !source.path.starts_with("crates/sys")) {
        let found = source.code().find(|(_, line)| line.contains("unsafe {") || line.contains("unsafe_code"));
        assert_eq!(found, None, "{}", source.name());
    }
}

#[test]
fn only_the_sqlite_store_uses_rusqlite() {
    for source in sources().iter().filter(|source| !source.path.starts_with("crates/store/src/sqlite")) {
        let found = source.code().find(|(_, line)| line.contains("rusqlite::"));
        assert_eq!(found, None, "{}", source.name());
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    for source in sources() {
        assert!(source.text.starts_with("//! "), "{} has no module documentation", source.name());
    }
}

#[test]
fn a_crate_root_holds_no_logic() {
    for source in sources().iter().filter(|source| source.path.ends_with("src/lib.rs")) {
        let found = source.code().find(|(_, line)| line.starts_with("impl ") || line.ends_with(") {"));
        assert_eq!(found, None, "{}", source.name());
    }
}

#[test]
fn no_folder_is_crowded() {
    let mut folders = vec![root().join("crates"), root().join("bench")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("a readable folder");
        let (below, here): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.map(|entry| entry.expect("an entry").path()).partition(|path| path.is_dir());
        assert!(here.len() <= MAX_FILES_IN_FOLDER, "{}: {} files", folder.display(), here.len());
        folders.extend(below);
    }
}

#[test]
fn nothing_is_left_for_later() {
    for source in sources().iter().filter(|source| !source.is_test()) {
        let marks = ["TODO", "FIXME", "todo!(", "unimplemented!("];
        let found = source.text.lines().find(|line| marks.iter().any(|mark| line.contains(mark)));
        assert_eq!(found, None, "{}", source.name());
    }
}

#[test]
fn no_module_prints_by_macro() {
    // A build script prints what it asks of Cargo.
    for source in sources().iter().filter(|source| !source.path.ends_with("build.rs")) {
        let macros = ["println!(", "eprintln!(", "print!(", "dbg!("];
        let found = source.code().find(|(_, line)| macros.iter().any(|name| line.contains(name)));
        assert_eq!(found, None, "{}: write to the context's streams instead", source.name());
    }
}

#[test]
fn retired_words_stay_retired() {
    let mut read = files(&["crates", "migrations", "bench", "tests/it"], &["rs", "sql", "toml"]);
    // The changelog may name what was renamed.
    read.extend(files(&["docs", "README.md", "ARCHITECTURE.md", "SECURITY.md"], &["md"]));
    let mut found = Vec::new();
    for source in read.iter().filter(|source| !source.path.ends_with("tests/it/tidy.rs")) {
        for (number, line) in source.text.lines().enumerate() {
            let line = line.to_lowercase();
            if let Some(word) = RETIRED.iter().find(|word| has_word(&line, word)) {
                found.push(format!("{}:{}: {word}", source.name(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{} retired words:\n{}", found.len(), found.join("\n"));
}

/// Whether the line has the word as such, and not as a part of another. Words of an identifier are words.
fn has_word(line: &str, word: &str) -> bool {
    let line = line.replace('_', " ");
    let word = word.replace('_', " ");
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.match_indices(&word).any(|(at, _)| {
        !is_letter(line[..at].chars().next_back()) && !is_letter(line[at + word.len()..].chars().next())
    })
}

#[test]
fn a_word_is_found_whole_and_inside_identifiers() {
    assert!(has_word("let guardian_pid = 1;", "guardian"));
    assert!(has_word("it is told so", "is told"));
    assert!(!has_word("vigilant", "vigil"));
}

/// `engine/attempt/child.rs` in ARCHITECTURE.md means `crates/engine/src/attempt/child.rs`.
#[test]
fn every_path_in_the_architecture_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let mut seen = 0;
    for path in page.split('`').skip(1).step_by(2) {
        let Some((first, rest)) = path.split_once('/') else { continue };
        let source = root().join("crates").join(first).join("src");
        if source.is_dir() || root().join(first).is_dir() {
            let is_there = source.join(rest).exists() || root().join(path).exists();
            assert!(is_there, "ARCHITECTURE.md names `{path}`, which does not exist");
            seen += 1;
        }
    }
    assert!(seen > 50, "found only {seen} paths");
}

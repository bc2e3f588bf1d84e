//! The architecture, held to: which layer may import which, and a few habits that no lint knows.

use std::fs;
use std::path::{Path, PathBuf};

/// Each layer with those that it may import. A new folder in `src/` needs a line here.
const MAY_IMPORT: [(&str, &[&str]); 9] = [
    ("domain", &[]),
    ("sys", &[]),
    ("store", &["domain", "sys"]),
    ("engine", &["domain", "store", "sys"]),
    ("ops", &["domain", "store", "sys"]),
    ("proof", &["domain", "ops", "store", "sys"]),
    ("cli", &["domain", "engine", "ops", "proof", "store", "sys"]),
    ("http", &["domain", "ops", "store"]),
    ("tui", &["domain", "ops", "store"]),
];

/// Crates with the one place where they belong.
const CONFINED: [(&str, &str); 4] =
    [("rusqlite", "src/store/sqlite/"), ("clap", "src/cli/"), ("libc", "src/sys/"), ("anyhow", "src/cli/")];

struct Source {
    path: PathBuf,
    layer: Option<String>,
    text: String,
}

impl Source {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Lines of code with their numbers: comments and what follows `#[cfg(test)]` are left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line.trim_start()));
        lines.take_while(|(_, line)| *line != "#[cfg(test)]").filter(|(_, line)| !line.starts_with("//"))
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    let mut folders = vec![root.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("src is readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(read(root, &path));
            }
        }
    }
    assert!(sources.len() > 50, "found only {} sources", sources.len());
    sources
}

fn read(root: &Path, path: &Path) -> Source {
    let relative = path.strip_prefix(root).expect("inside the package").to_owned();
    let inside = relative.strip_prefix("src").expect("inside src");
    let layer = inside.parent().and_then(|folder| folder.iter().next());
    Source {
        layer: layer.map(|layer| layer.to_string_lossy().into_owned()),
        text: fs::read_to_string(path).expect("a source is text"),
        path: relative,
    }
}

fn is_test(source: &Source) -> bool {
    source.path.iter().any(|part| part == "tests" || part == "tests.rs")
}

#[test]
fn imports_point_one_way() {
    let layers: Vec<&str> = MAY_IMPORT.iter().map(|(layer, _)| *layer).collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(layer) = &source.layer else {
            continue;
        };
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| name == layer) else {
            wrong.push(format!("{}: layer `{layer}` is not in the table", source.name()));
            continue;
        };
        for (number, line) in source.code() {
            for (_, path) in line.match_indices("crate::").map(|(at, found)| (at, &line[at + found.len()..]))
            {
                let imported =
                    path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
                let known = layers.contains(&imported);
                if known && imported != layer && !allowed.contains(&imported) {
                    wrong.push(format!("{}:{number}: {layer} imports {imported}", source.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these arrows point the wrong way:\n{}", wrong.join("\n"));
}

#[test]
fn some_crates_stay_in_their_place() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (number, line) in source.code() {
            for (name, place) in CONFINED {
                let used = line.contains(&format!("{name}::")) || line.contains(&format!("use {name};"));
                if used && !source.name().starts_with(place) {
                    wrong.push(format!("{}:{number}: {name} belongs into {place}", source.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_stays_in_sys() {
    for source in sources().iter().filter(|source| source.layer.as_deref() != Some("sys")) {
        let found = source.code().find(|(_, line)| line.contains("unsafe {") || line.contains("unsafe_code"));
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
fn a_mod_file_holds_no_logic() {
    for source in sources().iter().filter(|source| source.path.ends_with("mod.rs")) {
        let found = source.code().find(|(_, line)| line.starts_with("impl ") || line.ends_with(") {"));
        assert_eq!(found, None, "{}", source.name());
    }
}

#[test]
fn nothing_is_left_for_later() {
    for source in sources().iter().filter(|source| !is_test(source)) {
        let marks = ["TODO", "FIXME", "todo!(", "unimplemented!("];
        let found = source.text.lines().find(|line| marks.iter().any(|mark| line.contains(mark)));
        assert_eq!(found, None, "{}", source.name());
    }
}

#[test]
fn nobody_prints_by_macro() {
    for source in sources() {
        let macros = ["println!(", "eprintln!(", "print!(", "dbg!("];
        let found = source.code().find(|(_, line)| macros.iter().any(|name| line.contains(name)));
        assert_eq!(found, None, "{}: write to the context's streams instead", source.name());
    }
}

//! What the program is built from, against `deny.toml`: licences, versions, banned crates and sources. A part of what
//! cargo-deny checks, without building it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Named>,
    skip: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "crate")]
    name: String,
}

struct Package {
    name: String,
    version: String,
    license: String,
    /// `None` for the crates of this repository.
    source: Option<String>,
}

fn root() -> &'static Path {
    Path::new(super::REPOSITORY)
}

fn policy() -> Policy {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml is text");
    toml::from_str(&text).expect("deny.toml is a policy")
}

fn packages() -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["metadata", "--locked", "--offline", "--format-version", "1"]);
    let output =
        command.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let text = |package: &Value, key: &str| package[key].as_str().map(str::to_owned);
    let package = |package: &Value| Package {
        name: text(package, "name").expect("a name"),
        version: text(package, "version").expect("a version"),
        license: text(package, "license").unwrap_or_default(),
        source: text(package, "source"),
    };
    metadata["packages"].as_array().expect("packages").iter().map(package).collect()
}

/// Whether one of the choices that an SPDX expression offers is allowed. An older form has `/` for `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, allowed) && words.next().is_none()
}

type Words<'a, 'w> = &'a mut std::iter::Peekable<std::str::SplitWhitespace<'w>>;

fn any(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> bool {
    let mut found = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        found |= all(words, allowed);
    }
    found
}

fn all(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> bool {
    let mut found = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        found &= one(words, allowed);
    }
    found
}

fn one(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let found = any(words, allowed);
        return words.next_if_eq(&")").is_some() && found;
    }
    let is_allowed = words.next().is_some_and(|license| allowed.contains(license));
    // An exception would have to be allowed by itself.
    if words.next_if_eq(&"WITH").is_some() { words.next().is_none() } else { is_allowed }
}

#[test]
fn expressions_offer_choices() {
    let allowed = ["MIT", "ISC", "Unicode-3.0"].map(str::to_owned).into();
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("MIT OR GPL-3.0", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-3.0 OR Apache-2.0) AND ISC", false),
        ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ("MIT WITH anything", false),
        ("MIT)", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}

#[test]
fn every_licence_is_allowed_and_every_allowed_one_is_needed() {
    let allowed = policy().licenses.allow;
    let packages = packages();
    assert!(packages.len() > 100, "{}", packages.len());
    for Package { name, version, license, .. } in &packages {
        assert!(is_allowed(license, &allowed), "{name} {version}: {license}");
    }
    for license in &allowed {
        let without: BTreeSet<String> = allowed.iter().filter(|other| *other != license).cloned().collect();
        let is_needed = packages.iter().any(|package| !is_allowed(&package.license, &without));
        assert!(is_needed, "deny.toml allows {license}, which no crate needs");
    }
}

#[test]
fn every_crate_has_one_version_unless_it_is_excused() {
    let skipped: BTreeSet<String> = policy().bans.skip.into_iter().map(|skip| skip.name).collect();
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Package { name, version, .. } in packages() {
        versions.entry(name).or_default().push(version);
    }
    let mut excused = BTreeSet::new();
    for (name, versions) in versions {
        let ids = versions.iter().map(|version| format!("{name}@{version}"));
        let (skips, rest): (Vec<_>, Vec<_>) = ids.partition(|id| skipped.contains(id));
        assert!(rest.len() <= 1, "{rest:?}: cargo tree --invert shows which crates need them");
        if !rest.is_empty() {
            excused.extend(skips);
        }
    }
    assert_eq!(excused, skipped, "deny.toml excuses crates that need no excuse");
}

#[test]
fn no_banned_crate_and_no_other_source_is_used() {
    let banned: Vec<String> = policy().bans.deny.into_iter().map(|deny| deny.name).collect();
    for Package { name, source, .. } in packages() {
        assert!(!banned.contains(&name), "{name} is banned");
        let is_known = source.as_ref().is_none_or(|source| {
            source.starts_with("registry+") && source.ends_with("rust-lang/crates.io-index")
        });
        assert!(is_known, "{name} comes from {source:?}");
    }
}

/// Files elsewhere would be missing from the package of the crate, and from every build of that package.
#[test]
fn a_crate_includes_only_files_of_its_own() {
    let mut seen = 0;
    let crates = fs::read_dir(root().join("crates")).expect("the crates").flatten();
    for folder in crates.map(|entry| entry.path()) {
        for (file, text) in sources(&folder.join("src")) {
            let included = text.split("include_str!(\"").chain(text.split("include_bytes!(\"")).skip(1);
            for path in included.filter_map(|rest| rest.split_once('"')).map(|(path, _)| path) {
                if !path.starts_with("..") {
                    continue;
                }
                seen += 1;
                let ups = path.matches("../").count();
                let kept = file.ancestors().nth(ups + 1).expect("the file has so many folders above it");
                assert!(kept.starts_with(&folder), "{}: {path}", file.display());
            }
        }
    }
    assert!(seen > 0, "no file includes another");
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source is text");
            found.push((path, text));
        }
    }
    found
}

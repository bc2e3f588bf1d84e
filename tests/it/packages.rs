//! What is shipped: the Debian package, the list of parts, and the crates. `tools/release` itself takes minutes; these are
//! its steps with a program that stands in for the built one.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::REPOSITORY;
use crate::cli::harness::PROGRAM;

/// Whether these tools are here; if not, says so on standard error.
fn are_installed(tools: &[&str]) -> bool {
    let missing: Vec<_> =
        tools.iter().filter(|tool| Command::new(tool).arg("--version").output().is_err()).collect();
    if !missing.is_empty() {
        // Bypasses the capture of output, which hides it for tests that pass.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {missing:?} are not installed, so nothing is packed");
    }
    missing.is_empty()
}

fn run(command: &mut Command) -> Output {
    command.current_dir(REPOSITORY).output().expect("it starts")
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

fn text(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// The package of a small program; `variables` are what a machine may have set.
fn package(folder: &TempDir, name: &str, variables: &[(&str, &str)]) -> PathBuf {
    let path = folder.path().join(name);
    let mut packing = Command::new("tools/deb");
    packing.args(["/bin/true", PROGRAM, "amd64"]).arg(&path).envs(variables.iter().copied());
    text(&mut packing);
    path
}

#[test]
fn the_debian_package_has_the_program_with_all_that_belongs_to_it() {
    if !are_installed(&["dpkg-deb", "jq"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let packed = package(&folder, "first.deb", &[]);
    let list = text(Command::new("dpkg-deb").arg("--contents").arg(&packed));
    let paths: BTreeSet<&str> = list.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
    for wanted in [
        "./usr/bin/queuectl",
        "./usr/share/man/man1/queuectl.1.gz",
        "./usr/share/man/man1/queuectl-service-install.1.gz",
        "./usr/share/bash-completion/completions/queuectl",
        "./usr/share/zsh/vendor-completions/_queuectl",
        "./usr/share/fish/vendor_completions.d/queuectl.fish",
        "./lib/systemd/system/queuectl-worker.service",
        "./lib/systemd/system/queuectl-dashboard.service",
        "./lib/systemd/system/queuectl-dashboard.socket",
        "./usr/share/doc/queuectl/docs/installing.md",
        "./usr/share/doc/queuectl/copyright",
        "./usr/share/doc/queuectl/changelog.gz",
    ] {
        assert!(paths.contains(wanted), "{wanted} is missing:\n{list}");
    }
    assert!(list.lines().all(|line| line.contains(" root/root ")), "it has the user who packed it:\n{list}");
    let root = folder.path().join("unpacked");
    text(Command::new("dpkg-deb").arg("--extract").arg(&packed).arg(&root));
    let unit = fs::read_to_string(root.join("lib/systemd/system/queuectl-worker.service")).expect("a unit");
    assert!(unit.starts_with("[Unit]"), "a line about `service install` is left:\n{unit}");
    assert!(unit.contains("ExecStart=/usr/bin/queuectl "), "{unit}");
    assert!(!unit.contains(REPOSITORY), "{unit}");
}

#[test]
fn the_debian_package_is_the_same_wherever_it_is_made() {
    if !are_installed(&["dpkg-deb", "jq"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    let variables = [
        ("TMPDIR", elsewhere.to_str().expect("text")),
        ("TZ", "Pacific/Auckland"),
        ("LC_ALL", "C.UTF-8"),
        ("QUEUECTL_HOME", "/nowhere"),
        ("COLUMNS", "40"),
    ];
    let [first, second] =
        [package(&folder, "first.deb", &[]), package(&folder, "second.deb", &variables)].map(fs::read);
    assert!(first.expect("a package") == second.expect("a package"), "the bytes differ");
}

#[test]
fn the_list_of_parts_names_every_part_with_its_licence_and_no_path_of_this_machine() {
    if !are_installed(&["jq"]) {
        return;
    }
    let list = text(Command::new("tools/sbom").arg("x86_64-unknown-linux-gnu"));
    assert!(!list.contains(REPOSITORY), "{list}");
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let parts = list["components"].as_array().expect("parts");
    let names: BTreeSet<_> = parts.iter().filter_map(|part| part["name"].as_str()).collect();
    for wanted in ["rusqlite", "libsqlite3-sys", "tokio-postgres", "queuectl-store"] {
        assert!(names.contains(wanted), "{wanted}: {names:?}");
    }
    for unwanted in ["proptest", "vt100", "tempfile"] {
        assert!(!names.contains(unwanted), "only tests use {unwanted}");
    }
    for part in parts {
        assert!(part["licenses"][0]["expression"].is_string(), "{part}");
    }
}

#[test]
fn the_release_says_what_is_wrong_before_it_builds() {
    for (arguments, wanted) in [
        (&["--untold"][..], "unknown argument `--untold`"),
        (&["--target"], "--target takes a value"),
        (&["--target", "x86_64-pc-windows-gnu"], "queuectl runs on Linux only"),
        (&["--target", "sparc-unknown-linux-made-up"], "rustup target add sparc-unknown-linux-made-up"),
    ] {
        let output = run(Command::new("tools/release").args(arguments));
        let said = said(&output);
        assert!(!output.status.success() && said.contains(wanted), "{arguments:?}: {said}");
    }
}

/// The files that the sources in a folder include.
fn included(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(included(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&entry).expect("a source");
            let names = source.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(names.map(|name| folder.join(name)));
        }
    }
    found
}

/// A file that `cargo package` leaves out would only be missed when the crate is installed.
#[test]
fn every_crate_is_packed_with_the_files_that_it_includes() {
    let crates = fs::read_dir(Path::new(REPOSITORY).join("crates")).expect("crates");
    for folder in crates.map(|entry| entry.expect("an entry").path()) {
        let manifest = folder.join("Cargo.toml");
        let mut listing = Command::new(env!("CARGO"));
        listing.args(["package", "--list", "--allow-dirty", "--offline", "--quiet", "--manifest-path"]);
        let list = text(listing.arg(&manifest));
        let packed: BTreeSet<PathBuf> = list.lines().map(|path| folder.join(path)).collect();
        let resolved: BTreeSet<PathBuf> = packed.iter().filter_map(|path| path.canonicalize().ok()).collect();
        for file in included(&folder.join("src")) {
            let file = file.canonicalize().expect("an included file exists");
            assert!(resolved.contains(&file), "{} is not in the package:\n{list}", file.display());
        }
    }
}

//! The README's section for people who know another tool: every command in it runs, and takes no more keys than the others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::{home, kill_all, root, shell};
use crate::cli::harness::pseudo_terminal::on_terminal;

const HEADING: &str = "## Coming from ";
/// What the examples call beside queuectl. The commands of the peers are not run.
const PROGRAMS: [&str; 2] = ["make", "backup"];

/// One row of a table: the commands of queuectl, and those of the other tools.
struct Row {
    ours: Vec<String>,
    peers: Vec<String>,
}

#[test]
fn every_command_for_people_who_switch_runs() {
    let section = section();
    let aliases = aliases(&section);
    let folder = home();
    install_programs(&folder);
    let rows = rows(&section);
    assert!(rows.len() > 12, "the tables are found");
    for command in rows.iter().flat_map(|row| &row.ours) {
        let script = format!("{aliases}\nPATH=$HOME/bin:$PATH\n{command}");
        let seen = on_terminal(shell(&folder, &script), 100, "");
        assert!(seen.status.success(), "`{command}` failed: {}", seen.screen);
    }
    kill_all(folder.path());
}

#[test]
fn no_other_tool_takes_fewer_keys() {
    for row in rows(&section()) {
        let shortest = |commands: &[String]| commands.iter().map(|command| command.chars().count()).min();
        if let Some(peer) = shortest(&row.peers) {
            assert!(shortest(&row.ours) <= Some(peer), "{:?} takes more keys than {:?}", row.ours, row.peers);
        }
    }
}

fn section() -> String {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README is text");
    let (_, rest) = readme.split_once(HEADING).expect("the README has the section");
    let lines = rest.lines().take_while(|line| !line.starts_with("## "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn aliases(section: &str) -> &str {
    let line = section.lines().find(|line| line.starts_with("    alias "));
    line.expect("the section defines its aliases").trim()
}

/// The rows of the tables: the second cell is queuectl's, the cells after it are those of other tools.
fn rows(section: &str) -> Vec<Row> {
    let lines = section.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    lines
        .map(|line| {
            let mut cells = line.trim_matches('|').split(" | ").skip(1).map(commands);
            Row { ours: cells.next().expect("a cell for queuectl"), peers: cells.flatten().collect() }
        })
        .collect()
}

fn commands(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn install_programs(folder: &TempDir) {
    let programs = folder.path().join("bin");
    fs::create_dir(&programs).expect("a folder is created");
    for name in PROGRAMS {
        install(&programs.join(name));
    }
    for name in ["a.log", "b.log"] {
        fs::write(folder.path().join("work").join(name), "x\n").expect("a file is written");
    }
}

fn install(path: &Path) {
    fs::write(path, "#!/bin/sh\necho done\n").expect("a script is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is executable");
}

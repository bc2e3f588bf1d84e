//! Checks the documents: every example runs, every link resolves, and the tour in the README prints what it shows.
//!
//! A block that is fenced as `sh` runs as written. The blocks of a page run from top to bottom in one new home, with the
//! program in `PATH`. Other blocks are not run.

mod coming_from;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sys::process;
use tempfile::TempDir;

use super::cli::harness::PROGRAM;
use super::cli::harness::pseudo_terminal::on_terminal;

const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Their commands take too long, or belong to another machine.
const NOT_RUN: [&str; 3] = ["benchmarks.md", "performance.md", "reliability.md"];
const TOUR: &str = "## A 60-second tour";

#[test]
fn every_example_runs_as_it_is_written() {
    let is_run = |page: &PathBuf| !NOT_RUN.contains(&name_of(page));
    let pages: Vec<PathBuf> = guide().into_iter().chain([root().join("README.md")]).filter(is_run).collect();
    assert!(pages.iter().any(|page| page.ends_with("hooks.md")), "the pages are found: {pages:?}");
    let problems: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = pages.iter().map(|page| scope.spawn(|| run(page))).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("the page does not panic")).collect()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn the_tour_prints_what_the_readme_shows() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README is text");
    let (_, tour) = readme.split_once(TOUR).expect("the README has a tour");
    let shown: Vec<&str> = tour
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("    "))
        .collect();
    let folder = home();
    let mut printed = Vec::new();
    for command in shown.iter().filter_map(|line| line.strip_prefix("$ ")) {
        let seen = on_terminal(shell(&folder, command), 80, "");
        assert!(seen.status.success(), "`{command}` failed: {}", seen.screen);
        printed.push(format!("$ {command}"));
        printed.extend(visible(&seen.screen));
    }
    let workers = shell(&folder, "queuectl worker list --json").output().expect("sh starts");
    kill_all(folder.path());
    let comparable = |lines: Vec<String>| lines.iter().map(|line| without_times(line)).collect::<Vec<_>>();
    let shown = shown.into_iter().map(str::to_owned).collect();
    assert_eq!(comparable(printed), comparable(shown));
    assert_eq!(String::from_utf8_lossy(&workers.stdout).trim(), "[]", "the tour leaves no worker running");
}

#[test]
fn links_resolve_and_the_index_lists_every_page() {
    let documents =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md"].map(|name| root().join(name));
    for page in guide().into_iter().chain(markdown_in("docs/adr")).chain(documents) {
        let text = fs::read_to_string(&page).expect("a page is text");
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { page.clone() } else { page.parent().expect("a folder").join(path) };
            assert!(target.exists(), "{}: {link} does not exist", page.display());
            let has_anchor = || {
                anchors(&fs::read_to_string(&target).expect("a page is text")).contains(&anchor.to_owned())
            };
            assert!(anchor.is_empty() || has_anchor(), "{}: {link} has no such heading", page.display());
        }
    }
    let index = fs::read_to_string(root().join("docs/README.md")).expect("the index is text");
    for page in guide() {
        let name = name_of(&page);
        assert!(name == "README.md" || links(&index).contains(&name), "{name} is not in the index");
    }
}

#[test]
fn only_blocks_fenced_as_sh_are_run() {
    let page = "# A\n```sh\necho 1\n```\n\n```text\nno\n```\n  ```sh\n  not at the margin\n  ```\n```sh\necho 2\necho 3\n```\n";
    assert_eq!(blocks(page), ["echo 1\n", "echo 2\necho 3\n"]);
    assert!(run_script("false\necho not here\n").is_some_and(|problem| problem.contains("exit status: 1")));
    assert_eq!(run_script("queuectl enqueue -q -- true\nqueuectl worker start\n"), None);
}

fn root() -> &'static Path {
    Path::new(super::REPOSITORY)
}

/// The pages of the user's guide.
fn guide() -> Vec<PathBuf> {
    markdown_in("docs")
}

fn markdown_in(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder of documents is readable");
    let paths = entries.map(|entry| entry.expect("an entry is readable").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn name_of(page: &Path) -> &str {
    page.file_name().and_then(|name| name.to_str()).expect("the name of a page is text")
}

/// The links of a page, except those to other sites.
fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).collect()
}

/// The anchors that GitHub gives to the headings of a page.
fn anchors(page: &str) -> Vec<String> {
    let headings =
        page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading.to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    headings.map(anchor).collect()
}

/// The lines that are left on a screen: without colours, and without progress that was overwritten.
fn visible(screen: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in screen.lines() {
        let mut shown = String::new();
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            match character {
                '\u{1b}' => {
                    let end = characters.by_ref().skip(1).find(char::is_ascii_alphabetic);
                    if end == Some('K') {
                        shown.clear();
                    }
                }
                '\r' => {}
                other => shown.push(other),
            }
        }
        lines.push(shown.trim_end().to_owned());
    }
    lines
}

/// The words of a line, with the same word in place of each duration and each time ago. They also change the widths of
/// columns.
fn without_times(line: &str) -> String {
    let is_duration = |word: &str| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        unit.len() < word.len() && ["ms", "s"].contains(&unit)
    };
    let line = line.replace("just now", "0s ago");
    let words = line.split_whitespace().map(|word| if is_duration(word) { "TIME" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The problem with a page, if there is one.
fn run(page: &Path) -> Option<String> {
    let text = fs::read_to_string(page).expect("a page is text");
    let blocks = blocks(&text);
    if blocks.is_empty() {
        return None;
    }
    run_script(&blocks.concat()).map(|problem| format!("{}: {problem}", page.display()))
}

fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in page.lines() {
        match &mut block {
            None if line == "```sh" => block = Some(String::new()),
            None => {}
            Some(_) if line.starts_with("```") => blocks.extend(block.take()),
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    blocks
}

/// A new user's home directory, with a queue of its own.
fn home() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder is created");
    fs::create_dir(folder.path().join("work")).expect("the working folder is created");
    // Without it, the program could find a queue in a folder above the temporary one.
    fs::create_dir(folder.path().join(".queuectl")).expect("the home of the queue is created");
    folder
}

fn shell(folder: &TempDir, script: &str) -> Command {
    let home = folder.path();
    let program = Path::new(PROGRAM).parent().expect("the program is in a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.arg("-e").arg("-c").arg(script).current_dir(home.join("work")).env_clear();
    command.env("HOME", home).env("PATH", format!("{program}:{path}")).env("USER", "ada");
    command
}

fn run_script(script: &str) -> Option<String> {
    let folder = home();
    let output = folder.path().join("output");
    let file = fs::File::create(&output).expect("the output file is created");
    let mut command = shell(&folder, script);
    command.process_group(0).stdin(Stdio::null());
    command.stdout(file.try_clone().expect("a descriptor is duplicated")).stderr(file);
    let mut child = command.spawn().expect("sh starts");
    let problem = problem_of(&mut child);
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    kill_all(folder.path());
    let _ = child.wait();
    problem.map(|problem| {
        format!("{problem}\n{script}\n-- output:\n{}", fs::read_to_string(&output).unwrap_or_default())
    })
}

fn problem_of(child: &mut Child) -> Option<String> {
    let began = Instant::now();
    loop {
        match child.try_wait().expect("the shell is our child") {
            Some(status) if status.success() => return None,
            Some(status) => return Some(status.to_string()),
            None if began.elapsed() > PAGE_TIMEOUT => {
                return Some(format!("still running after {PAGE_TIMEOUT:?}"));
            }
            None => std::thread::sleep(EXIT_POLL_INTERVAL),
        }
    }
}

/// Kills every process that was started in this home directory, including background workers: it is in their
/// environment.
fn kill_all(home: &Path) {
    let mark = format!("HOME={}", home.display()).into_bytes();
    let belongs =
        |pid: &Pid| process::environment(*pid).split(|byte| *byte == 0).any(|variable| variable == mark);
    loop {
        let living: Vec<Pid> =
            process::all().expect("/proc is readable").into_iter().filter(belongs).collect();
        let living: Vec<Pid> = living
            .into_iter()
            .filter(|pid| process::stat(*pid).is_some_and(|stat| !stat.is_zombie))
            .collect();
        if living.is_empty() {
            return sys::cgroup::end_recorded(&home.join(".queuectl/workers"));
        }
        for pid in living {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(EXIT_POLL_INTERVAL);
    }
}

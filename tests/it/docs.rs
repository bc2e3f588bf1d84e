//! The documents, held to: every example that says that it runs is run.
//!
//! A block that is fenced as `sh` runs as it is written, those of a page from top to bottom in one fresh home, with the
//! program in `PATH`. Blocks of any other kind are shown and not run.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sys::process;

use crate::cli::harness::PROGRAM;

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);
/// Pages about measurements, which show what was typed elsewhere.
const NOT_RUN: [&str; 3] = ["benchmarks.md", "performance.md", "reliability.md"];

#[test]
fn every_example_runs_as_it_is_written() {
    let pages = pages();
    assert!(pages.iter().any(|page| page.ends_with("hooks.md")), "the pages are found: {pages:?}");
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = pages.iter().map(|page| scope.spawn(|| run(page))).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("it ends")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn links_lead_somewhere_and_the_index_leads_to_every_page() {
    let docs = Path::new(crate::REPOSITORY).join("docs");
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page is text");
        for target in links(&text) {
            let path = page.parent().expect("a folder").join(target);
            assert!(path.exists(), "{}: {target} is not there", page.display());
        }
    }
    let index = fs::read_to_string(docs.join("README.md")).expect("the index");
    for entry in fs::read_dir(&docs).expect("the folder of documents") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("text");
        let is_page = path.extension().is_some_and(|kind| kind == "md") && name != "README.md";
        assert!(!is_page || links(&index).contains(&name), "{name} is not in the index");
    }
}

/// The files that a page links to.
fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    targets.map(|target| target.split('#').next().unwrap_or(target)).collect()
}

#[test]
fn blocks_are_found_and_others_left_out() {
    let page = "# A\n```sh\necho 1\n```\n\n```text\nno\n```\n  ```sh\n  not at the margin\n  ```\n```sh\necho 2\necho 3\n```\n";
    assert_eq!(blocks(page), ["echo 1\n", "echo 2\necho 3\n"]);
    assert!(run_script("false\necho not here\n").is_some_and(|said| said.contains("exit status: 1")));
    assert_eq!(run_script("queuectl enqueue -q -- true\nqueuectl worker start\n"), None);
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(crate::REPOSITORY);
    let entries = fs::read_dir(root.join("docs")).expect("the folder of documents");
    let docs = entries.map(|entry| entry.expect("an entry").path());
    let is_page = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.extension().is_some_and(|kind| kind == "md") && !NOT_RUN.contains(&name)
    };
    docs.filter(is_page).chain([root.join("README.md")]).collect()
}

/// What went wrong, if anything.
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

fn run_script(script: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path();
    let work = home.join("work");
    fs::create_dir(&work).expect("a folder to work in");
    // Else one that somebody has above would be found first.
    fs::create_dir(home.join(".queuectl")).expect("the home of a queue");
    let said = home.join("said");
    let out = fs::File::create(&said).expect("a file");
    let program = Path::new(PROGRAM).parent().expect("it is in a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.arg("-e").arg("-c").arg(script).current_dir(&work).env_clear().process_group(0);
    command.env("HOME", home).env("PATH", format!("{program}:{path}")).env("USER", "ada");
    command.stdin(Stdio::null()).stdout(out.try_clone().expect("a file")).stderr(out);
    let mut child = command.spawn().expect("sh starts");
    let problem = problem_of(&mut child);
    kill_all(home, &child);
    let _ = child.wait();
    problem.map(|problem| {
        format!("{problem}\n{script}\n-- said:\n{}", fs::read_to_string(&said).unwrap_or_default())
    })
}

fn problem_of(child: &mut Child) -> Option<String> {
    let began = Instant::now();
    loop {
        match child.try_wait().expect("a child of ours") {
            Some(status) if status.success() => return None,
            Some(status) => return Some(status.to_string()),
            None if began.elapsed() > PATIENCE => return Some(format!("it runs for more than {PATIENCE:?}")),
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Whatever was started there, workers in the background too: they name the folder in their environment.
fn kill_all(home: &Path, child: &Child) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let mark = format!("HOME={}", home.display()).into_bytes();
    let belongs =
        |pid: &Pid| process::environment(*pid).split(|byte| *byte == 0).any(|variable| variable == mark);
    loop {
        let living: Vec<Pid> = process::all().expect("/proc").into_iter().filter(belongs).collect();
        let living: Vec<Pid> = living
            .into_iter()
            .filter(|pid| process::stat(*pid).is_some_and(|stat| !stat.is_zombie))
            .collect();
        if living.is_empty() {
            return;
        }
        for pid in living {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(LOOK);
    }
}

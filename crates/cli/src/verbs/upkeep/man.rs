//! `queuectl man`

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use clap::Command;
use rustix::process::Signal;
use serde_json::json;

use crate::context::{Context, catch};
use crate::failure::{Exit, Failure};
use crate::help::man;
use crate::help::man::Page;
use crate::parse;
use crate::parse::aliases;
use crate::render::help_groups::with_own_about_of_help;
use crate::render::text::printable;
use sys::signal;

/// Show the manual page of a command
///
/// On a terminal the page is shown by man, or as the text of --help if man is not installed. In a pipe it is printed as
/// roff.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl man enqueue
  queuectl man worker start
  queuectl man run > queuectl-run.1
  queuectl man --all ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The command [default: queuectl itself]
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    all: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let mut root = parse::whole();
    root.build();
    if let Some(folder) = &args.all {
        return write_all(context, &man::all(&root), folder);
    }
    let verb = find(&root, &args.verb)?;
    let page = man::page(verb);
    if context.json {
        return context.print_json(&json!({ "page": page.file, "roff": page.text }));
    }
    if context.quiet || context.stdout_is_terminal && is_shown_by_man(&page)? {
        return Ok(());
    }
    let mut out = context.out();
    if context.stdout_is_terminal {
        let help = verb.clone().render_long_help().ansi().to_string();
        out.write_all(with_own_about_of_help(&help).as_bytes())?;
    } else {
        out.write_all(page.text.as_bytes())?;
    }
    Ok(out.flush()?)
}

/// The verb with this path. A hidden one has no page.
fn find<'t>(root: &'t Command, typed: &[String]) -> Result<&'t Command, Failure> {
    let words: Vec<OsString> =
        ["queuectl"].into_iter().chain(typed.iter().map(String::as_str)).map(OsString::from).collect();
    // An alias may stand for a verb with flags.
    let words = aliases::expand(root, &words);
    let names = words[1..].iter().filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    let (mut command, mut path) = (root, Vec::new());
    for name in names {
        let verb = command.find_subcommand(name).filter(|verb| !verb.is_hide_set());
        command = verb.ok_or_else(|| unknown(command, &path.join(" "), name))?;
        path.push(name);
    }
    Ok(command)
}

fn unknown(command: &Command, path: &str, typed: &str) -> Failure {
    if command.has_subcommands() {
        return parse::unknown_verb(command, path, typed);
    }
    Failure::usage(format!("unknown command `{typed}`")).with_hint(format!("use `queuectl man {path}`"))
}

/// Hands the page to man, and waits until its reader has left. `false` if that is not possible.
fn is_shown_by_man(page: &Page) -> Result<bool, Failure> {
    // Ctrl-C is for the pager, and a man that ends at once must not end this process.
    let _interrupts = catch(&[Signal::INT])?;
    signal::survive_closed_pipe();
    let started = Process::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn();
    let Ok(mut man) = started else {
        return Ok(false);
    };
    if let Some(mut input) = man.stdin.take() {
        // If man ends before it has read everything, its exit code says why.
        let _ = input.write_all(page.text.as_bytes());
    }
    let is_shown = man.wait().is_ok_and(|status| status.success());
    signal::end_quietly_on_closed_pipe();
    Ok(is_shown)
}

fn write_all(context: &Context, pages: &[Page], folder: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: &io::Error| {
        Failure::new(
            Exit::Failed,
            format!("failed to write `{}` ({error})", printable(&path.to_string_lossy())),
        )
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for page in pages {
        let path = folder.join(&page.file);
        fs::write(&path, &page.text).map_err(|error| failed(&path, &error))?;
    }
    let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
    context.print(&files, |out| {
        writeln!(out, "{} pages written to {}", files.len(), printable(&folder.to_string_lossy()))
    })
}

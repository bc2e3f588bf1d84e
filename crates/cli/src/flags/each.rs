//! `--each`: where the items of many jobs come from, and how they are filled into the command.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::job::JobFlags;
use crate::context::Context;
use crate::failure::Failure;
use domain::text::shell::quote_words;
use ops::error::hint_for_each;
use ops::jobs::enqueue::each::{EachCommand, EachSpec, Items};

/// The word before arguments that become jobs. The parser also gives it to `--each` as its value.
pub(crate) const ARGUMENTS: &str = ":::";

pub(crate) const HOW_TO_WRITE_EACH: &str =
    "write `--each FILE COMMAND {}`, or `--each COMMAND {} ::: A B C` for the arguments after `:::`";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct EachFlags {
    /// Make one job per line of this file (- is standard input), or per argument after `:::`, which needs no file; {} in
    /// the command or in --unique-key stands for the line, {.} {/} {//} {/.} for parts of a path, {#} for its number
    #[arg(long, value_name = "FILE", help_heading = "Many jobs")]
    each: Option<PathBuf>,
    /// With --each: read CSV; {name} or {1} in the command stand for columns
    #[arg(long, requires = "each", help_heading = "Many jobs")]
    csv: bool,
    /// With --each: only show the commands
    #[arg(long, requires = "each", help_heading = "Many jobs")]
    pub(crate) dry_run: bool,
}

/// Where the items come from.
#[derive(Debug)]
pub(crate) enum EachSource {
    File(PathBuf),
    Stream,
    /// In memory: arguments, each ended by a NUL, or lines that were read already.
    Memory(Vec<u8>),
}

impl EachSource {
    pub(crate) fn is_stdin(&self) -> bool {
        matches!(self, Self::Stream)
    }
}

impl EachFlags {
    pub(crate) fn is_given(&self) -> bool {
        self.each.is_some()
    }

    /// The items, and how each becomes a job. `words` are those after `--`.
    pub(crate) fn resolve(
        self,
        context: &Context,
        mut flags: JobFlags,
        words: Vec<String>,
    ) -> Result<(EachSource, EachSpec), Failure> {
        let (words, arguments) = match self.each.as_deref() {
            Some(file) if file == Path::new(ARGUMENTS) => split_arguments(words),
            Some(_) | None => (words, None),
        };
        let command = match (flags.command.take(), words.is_empty()) {
            (Some(line), true) => EachCommand::ShellLine(line),
            (None, false) => EachCommand::Words(words),
            (None, true) => {
                return Err(Failure::usage("--each needs a command").with_hint(HOW_TO_WRITE_EACH));
            }
            (Some(_), false) => {
                return Err(Failure::usage("the command is given in more than one way")
                    .with_hint("use either --command or the words of the command"));
            }
        };
        let file = self.each.unwrap_or_default();
        if arguments.is_none() {
            refuse_expanded_glob(&file, &command)?;
        }
        let (source, items) = match arguments {
            Some(_) if self.csv => {
                return Err(Failure::usage("--csv reads a file, not the arguments after :::"));
            }
            Some(arguments) => {
                let ended = arguments.into_iter().flat_map(|word| word.into_bytes().into_iter().chain([0]));
                (EachSource::Memory(ended.collect()), Items::Arguments)
            }
            None => {
                let source = if file == Path::new("-") { EachSource::Stream } else { EachSource::File(file) };
                (source, if self.csv { Items::Rows } else { Items::Lines })
            }
        };
        let shown = match &command {
            EachCommand::ShellLine(line) => line.clone(),
            EachCommand::Words(words) => quote_words(words),
        };
        let request = flags.into_spec(context, shown)?;
        if request.id.is_some() {
            return Err(Failure::usage("--id cannot be combined with --each, which makes many jobs"));
        }
        let each = EachSpec::new(command, items, request).map_err(|error| {
            let failure = Failure::usage(error.to_string());
            hint_for_each(&error).into_iter().fold(failure, Failure::with_hint)
        });
        Ok((source, each?))
    }
}

/// The words of the command, and the arguments after the first `:::`.
fn split_arguments(mut words: Vec<String>) -> (Vec<String>, Option<Vec<String>>) {
    let at = words.iter().position(|word| word == ARGUMENTS).unwrap_or(words.len());
    let mut arguments = words.split_off(at);
    arguments.drain(..arguments.len().min(1));
    (words, Some(arguments))
}

/// The shell has expanded `--each *.mkv` if the words of the command are names of files, the first of which is no program.
fn refuse_expanded_glob(file: &Path, command: &EachCommand) -> Result<(), Failure> {
    let words = match command {
        EachCommand::Words(words) => words.as_slice(),
        EachCommand::ShellLine(line) => std::slice::from_ref(line),
    };
    let names = words.split(|word| word == "--").next().unwrap_or_default();
    let is_file = |word: &String| Path::new(word).is_file();
    if names.is_empty() || !file.is_file() || !names.iter().all(is_file) || is_program(&names[0]) {
        return Ok(());
    }
    let count = names.len() + 1;
    Err(Failure::usage(format!("--each takes one file, but {count} were given"))
        .with_hint("to make a job for each of them, write `--each COMMAND {} ::: FILES`"))
}

fn is_program(path: &str) -> bool {
    Path::new(path).metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

//! The checks of single fields of a job, and the errors of all of them.

use std::collections::{BTreeMap, HashSet};

use crate::job::retry_rules::ExitCodesError;
use crate::values::name::JobId;
use crate::values::span::SpanError;

/// The kernel accepts 131,072 bytes for one argument, including the terminating NUL.
pub const MAX_COMMAND_BYTES: usize = 131_071;
/// Of `NAME=value`. A captured variable is never longer, because the kernel would not have started queuectl with it.
pub const MAX_VARIABLE_BYTES: usize = 131_071;
/// Of the name of a job.
pub const MAX_NAME_BYTES: usize = 256;
pub const MAX_DEPENDENCIES: usize = 10_000;
pub(super) const NO_COMMAND: &str = "a job needs a `command`";
const MAX_QUOTED_NAME_CHARS: usize = 64;
pub const MAX_TAGS: usize = 64;
pub const MAX_TAG_BYTES: usize = 128;
pub const MAX_UNIQUE_KEY_BYTES: usize = 512;
pub const MAX_CWD_BYTES: usize = 4_096;
/// The characters that Unicode calls mandatory line breaks.
const LINE_BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpecError {
    #[error("{NO_COMMAND}")]
    NoCommand,
    #[error("`command` is blank")]
    BlankCommand,
    #[error("`command` has {bytes} bytes; the kernel accepts at most {MAX_COMMAND_BYTES}")]
    CommandTooLong { bytes: usize },
    #[error("`{field}` contains a NUL byte")]
    Nul { field: &'static str },
    #[error("`{field}` has more than one line")]
    SeveralLines { field: &'static str },
    #[error("field `{field}` is given twice: in the JSON and as a flag")]
    GivenTwice { field: &'static str },
    #[error("give `max_retries` or `max_attempts`, not both")]
    BothRetries,
    #[error("give `run_at` or `delay`, not both")]
    BothTimes,
    #[error("`unique_for` requires a `unique_key`")]
    NoUniqueKey,
    #[error("job `{0}` cannot depend on itself")]
    DependsOnItself(JobId),
    #[error("`{field}` has more than {limit} {what}")]
    TooMany { field: &'static str, limit: usize, what: &'static str },
    #[error("`{field}` is empty")]
    Empty { field: &'static str },
    #[error("the current directory was deleted or its name is not UTF-8; give the job an absolute `cwd`")]
    NoCurrentDirectory,
    #[error("not a valid name for an environment variable: `{name}`")]
    BadVariable { name: String },
    #[error(
        "variable `{}` of `env` has {bytes} bytes including its name; the kernel accepts at most {MAX_VARIABLE_BYTES}; \
         let the command read the value from a file",
        truncated(name)
    )]
    VariableTooLong { name: String, bytes: usize },
    #[error("a `timeout` of 0 would kill the command immediately; use \"none\" for no timeout")]
    ZeroTimeout,
    #[error("not a valid choice: `{typed}`; expected cancel or run")]
    BadDependencyChoice { typed: String },
    #[error(transparent)]
    Span(#[from] SpanError),
    #[error(transparent)]
    ExitCodes(#[from] ExitCodesError),
}

pub fn check_command(command: String) -> Result<String, SpecError> {
    let command = check_text("command", command)?;
    if command.trim().is_empty() {
        return Err(SpecError::BlankCommand);
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Err(SpecError::CommandTooLong { bytes: command.len() });
    }
    Ok(command)
}

/// Refuses a new command whose first word is empty: no program has that name. Stored commands may have been accepted before.
pub fn check_first_word(command: &str) -> Result<(), SpecError> {
    if has_first_word(command) { Ok(()) } else { Err(SpecError::BlankCommand) }
}

pub(crate) fn has_first_word(command: &str) -> bool {
    !matches!(command.split_whitespace().next(), None | Some("''" | "\"\""))
}

/// A name is one line. Other control characters are escaped wherever it is shown.
pub fn check_name(name: String) -> Result<String, SpecError> {
    let name = check_short("name", name, MAX_NAME_BYTES)?;
    if name.trim().is_empty() {
        return Err(SpecError::Empty { field: "name" });
    }
    if name.contains(LINE_BREAKS) {
        return Err(SpecError::SeveralLines { field: "name" });
    }
    Ok(name)
}

pub fn check_unique_key(key: String) -> Result<String, SpecError> {
    check_short("unique_key", key, MAX_UNIQUE_KEY_BYTES)
}

pub fn check_cwd(cwd: String) -> Result<String, SpecError> {
    check_short("cwd", cwd, MAX_CWD_BYTES)
}

pub fn check_tags(tags: Vec<String>) -> Result<Vec<String>, SpecError> {
    if tags.len() > MAX_TAGS {
        return Err(SpecError::TooMany { field: "tags", limit: MAX_TAGS, what: "tags" });
    }
    tags.into_iter().map(|tag| check_short("tags", tag, MAX_TAG_BYTES)).collect()
}

pub fn check_depends_on(ids: Vec<JobId>) -> Result<Vec<JobId>, SpecError> {
    if ids.len() > MAX_DEPENDENCIES {
        return Err(SpecError::TooMany { field: "depends_on", limit: MAX_DEPENDENCIES, what: "ids" });
    }
    let mut seen = HashSet::new();
    Ok(ids.into_iter().filter(|id| seen.insert(id.clone())).collect())
}

pub fn check_variable(name: String, value: String) -> Result<(String, String), SpecError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(SpecError::BadVariable { name });
    }
    let bytes = name.len() + "=".len() + value.len();
    if bytes > MAX_VARIABLE_BYTES {
        return Err(SpecError::VariableTooLong { name, bytes });
    }
    Ok((name, check_text("env", value)?))
}

pub fn check_variables(
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<BTreeMap<String, String>, SpecError> {
    variables.into_iter().map(|(name, value)| check_variable(name, value)).collect()
}

/// As much of a name as is needed to recognise it.
fn truncated(name: &str) -> String {
    name.chars().take(MAX_QUOTED_NAME_CHARS).collect()
}

fn check_text(field: &'static str, text: String) -> Result<String, SpecError> {
    if text.contains('\0') {
        return Err(SpecError::Nul { field });
    }
    Ok(text)
}

fn check_short(field: &'static str, text: String, limit: usize) -> Result<String, SpecError> {
    let text = check_text(field, text)?;
    if text.is_empty() {
        return Err(SpecError::Empty { field });
    }
    if text.len() > limit {
        return Err(SpecError::TooMany { field, limit, what: "bytes" });
    }
    Ok(text)
}

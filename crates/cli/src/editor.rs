//! Edits a job or a schedule in the user's editor.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::failure::{Exit, Failure};
use domain::job::Job;
use domain::job::edit::Edit;
use domain::job::spec::JobSpec;
use ops::OpError;
use ops::escape::write_json;
use sys::fs::owner_only;

/// The editor if neither $VISUAL nor $EDITOR is set.
const DEFAULT_EDITOR: &str = "vi";

/// Opens an editor with the job as JSON. If the result is not valid, the file is kept.
pub(super) fn edit_in_editor(context: &Context, job: &Job) -> Result<Edit, Failure> {
    edit_json(context, &JobSpec::editable(job), |wanted: JobSpec| {
        Ok(Edit::between(job, wanted).map_err(OpError::from)?)
    })
}

/// Opens an editor with a value as JSON, and reads what the user made of it. If the result is not valid, the file is kept.
pub(super) fn edit_json<D: DeserializeOwned, T>(
    context: &Context,
    value: &impl Serialize,
    accept: impl FnOnce(D) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let path = write(context, value)?;
    let edited = open(&path).and_then(|()| accept(read(&path)?));
    if edited.is_ok() {
        drop(std::fs::remove_file(&path));
    }
    edited.map_err(|failure| failure.with_hint(format!("your changes are kept in {}", path.display())))
}

/// Writes a file in the home folder, which only its owner can read.
fn write(context: &Context, value: &impl Serialize) -> Result<PathBuf, Failure> {
    let path = context.location()?.home.join(format!("edit-{}.json", std::process::id()));
    let cannot_make = |source: io::Error| OpError::CannotMake { path: path.clone(), source };
    let mut file = owner_only::replace_file(&path).map_err(cannot_make)?;
    let written = write_json(&mut file, value, true).and_then(|()| file.write_all(b"\n"));
    written.map_err(cannot_make)?;
    Ok(path)
}

/// $EDITOR may contain arguments, so the shell starts it, as git does.
fn open(path: &Path) -> Result<(), Failure> {
    let chosen = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok());
    let editor =
        chosen.filter(|editor| !editor.trim().is_empty()).unwrap_or_else(|| DEFAULT_EDITOR.to_owned());
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("edit").arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(Exit::Failed, format!("the editor `{editor}` failed ({status})"))),
        Err(error) => {
            Err(Failure::new(Exit::Failed, format!("failed to start the editor `{editor}` ({error})")))
        }
    }
}

fn read<D: DeserializeOwned>(path: &Path) -> Result<D, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| OpError::CannotRead { path: path.to_owned(), source })?;
    Ok(serde_json::from_str(&text).map_err(OpError::from)?)
}

//! Edits a job or a schedule in the user's editor.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::confirm::offer;
use super::context::Context;
use super::failure::{Exit, Failure, report};
use domain::job::Job;
use domain::job::edit::Edit;
use domain::job::spec::JobSpec;
use ops::OpError;
use ops::escape::write_json;
use ops::jobs::edit::check;
use sys::fs::owner_only;
use sys::signal::keyboard::KeyboardSignals;

/// The editor if neither $VISUAL nor $EDITOR is set.
const DEFAULT_EDITOR: &str = "vi";
/// The name of a file that is being edited: this, the number of the process, `.json`.
const PREFIX: &str = "edit-";

/// Opens an editor with the job as JSON; `None` if the user leaves it as it is or empties it.
pub(super) fn edit_in_editor(context: &Context, job: &Job) -> Result<Option<Edit>, Failure> {
    let edit = edit_json(context, &JobSpec::editable(job), |wanted: JobSpec| {
        let edit = Edit::between(job, wanted).map_err(OpError::from)?;
        check(&edit, job)?;
        Ok(edit)
    })?;
    Ok(edit.filter(|edit| !edit.is_empty()))
}

/// Opens an editor with a value as JSON, and reads what the user made of it; `None` if that is empty. After invalid text
/// the editor opens again, unless the user gives up.
pub(super) fn edit_json<D: DeserializeOwned, T>(
    context: &Context,
    value: &impl Serialize,
    accept: impl Fn(D) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let home = context.location()?.home;
    remove_abandoned(&home);
    let file = EditedFile::write(&home, value)?;
    loop {
        open(&file.path)?;
        match file.read().and_then(|wanted| wanted.map(&accept).transpose()) {
            Ok(edited) => return Ok(edited),
            Err(failure) => {
                report(&failure, context.json, context.color);
                if !offer(context, "edit again")? {
                    return Err(Failure::new(Exit::Failed, "nothing was changed"));
                }
            }
        }
    }
}

/// A file in the home folder, which only its owner can read. The file is removed with this value.
struct EditedFile {
    path: PathBuf,
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        // The next edit removes what stays.
        let _ = fs::remove_file(&self.path);
    }
}

impl EditedFile {
    fn write(home: &Path, value: &impl Serialize) -> Result<Self, Failure> {
        let edited = Self { path: home.join(format!("{PREFIX}{}.json", std::process::id())) };
        let cannot_make = |source: io::Error| OpError::CannotMake { path: edited.path.clone(), source };
        let mut file = owner_only::replace_file(&edited.path).map_err(cannot_make)?;
        let written = write_json(&mut file, value, true).and_then(|()| file.write_all(b"\n"));
        written.map_err(cannot_make)?;
        Ok(edited)
    }

    /// `None` if it is empty.
    fn read<D: DeserializeOwned>(&self) -> Result<Option<D>, Failure> {
        let text = fs::read_to_string(&self.path)
            .map_err(|source| OpError::CannotRead { path: self.path.clone(), source })?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&text).map_err(OpError::from)?))
    }
}

/// Removes the files of processes that were killed while their editor was open. What cannot be read or removed stays.
fn remove_abandoned(home: &Path) {
    let Ok(entries) = fs::read_dir(home) else {
        return;
    };
    for entry in entries.flatten() {
        if editing_process(&entry.file_name().to_string_lossy()).is_some_and(is_gone) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn editing_process(file: &str) -> Option<Pid> {
    let number = file.strip_prefix(PREFIX)?.strip_suffix(".json")?;
    Pid::from_raw(number.parse().ok()?)
}

fn is_gone(process: Pid) -> bool {
    test_kill_process(process) == Err(Errno::SRCH)
}

/// $EDITOR may contain arguments, so the shell starts it, as git does.
fn open(path: &Path) -> Result<(), Failure> {
    let chosen = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok());
    let editor =
        chosen.filter(|editor| !editor.trim().is_empty()).unwrap_or_else(|| DEFAULT_EDITOR.to_owned());
    // Ctrl-C and Ctrl-\ are meant for the editor, neither for this process nor for the shell.
    let _signals = KeyboardSignals::leave_to_children();
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("trap : INT QUIT\n{editor} \"$1\""))
        .arg("edit")
        .arg(path)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(
            Exit::Failed,
            format!("the editor `{editor}` failed ({status}); nothing was changed"),
        )),
        Err(error) => {
            Err(Failure::new(Exit::Failed, format!("failed to start the editor `{editor}` ({error})")))
        }
    }
}

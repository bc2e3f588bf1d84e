//! Edits a job or a schedule in the user's editor.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

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
/// The name of a file that is being edited begins and ends so.
const PREFIX: &str = "edit-";
const SUFFIX: &str = ".json";
/// How long the text of a failed edit is kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What the user asked for, with flags or in an editor.
pub(super) struct Edited<T> {
    pub(super) value: T,
    /// The text, if an editor was used.
    file: Option<EditedFile>,
}

impl<T> Edited<T> {
    pub(super) fn without_file(value: T) -> Self {
        Self { value, file: None }
    }

    /// Makes the change. If that fails, the text is kept.
    pub(super) fn apply<R>(self, change: impl FnOnce(T) -> Result<R, Failure>) -> Result<R, Failure> {
        let Self { value, file } = self;
        change(value).map_err(|failure| match file {
            Some(file) => file.keep(failure),
            None => failure,
        })
    }
}

/// Opens an editor with the job as JSON; `None` if the user leaves it as it is or empties it.
pub(super) fn edit_in_editor(context: &Context, job: &Job) -> Result<Option<Edited<Edit>>, Failure> {
    let edited = edit_json(context, &JobSpec::editable(job), |wanted: JobSpec| {
        let edit = Edit::between(job, wanted).map_err(OpError::from)?;
        check(&edit, job)?;
        Ok(edit)
    })?;
    Ok(edited.filter(|edited| !edited.value.is_empty()))
}

/// Opens an editor with a value as JSON, and reads what the user made of it; `None` if that is empty. After invalid text
/// the editor opens again, unless the user gives up.
pub(super) fn edit_json<D: DeserializeOwned, T>(
    context: &Context,
    value: &impl Serialize,
    accept: impl Fn(D) -> Result<T, Failure>,
) -> Result<Option<Edited<T>>, Failure> {
    let home = context.location()?.home;
    remove_old(&home);
    let file = EditedFile::write(&home, value)?;
    loop {
        if let Err(failure) = open(&file.path) {
            return Err(file.keep(failure));
        }
        match file.read().and_then(|wanted| wanted.map(&accept).transpose()) {
            Ok(value) => return Ok(value.map(|value| Edited { value, file: Some(file) })),
            Err(failure) => {
                report(&failure, context.json, context.color);
                if !offer(context, "edit again")? {
                    return Err(file.keep(Failure::new(Exit::Failed, "nothing was changed")));
                }
            }
        }
    }
}

/// A file in the home folder, which only its owner can read. The file is removed with this value, unless it is kept.
struct EditedFile {
    path: PathBuf,
    /// The text that the editor found.
    original: Vec<u8>,
    is_kept: bool,
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // A later edit removes what stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl EditedFile {
    fn write(home: &Path, value: &impl Serialize) -> Result<Self, Failure> {
        // The pid is not unique, because it may also be that of a process in another container.
        let name = format!("{PREFIX}{}-{:x}{SUFFIX}", std::process::id(), fastrand::u64(..));
        let mut edited = Self { path: home.join(name), original: Vec::new(), is_kept: false };
        let written =
            write_json(&mut edited.original, value, true).and_then(|()| edited.original.write_all(b"\n"));
        let written = written
            .and_then(|()| owner_only::replace_file(&edited.path))
            .and_then(|mut file| file.write_all(&edited.original));
        written.map_err(|source| OpError::CannotMake { path: edited.path.clone(), source })?;
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

    /// Keeps the text of the user after a failure, and says where it is.
    fn keep(mut self, failure: Failure) -> Failure {
        let has_text =
            fs::read(&self.path).is_ok_and(|text| text != self.original && !text.trim_ascii().is_empty());
        if !has_text {
            return failure;
        }
        self.is_kept = true;
        failure.with_further_hint(format!("your text is in {}", self.path.display()))
    }
}

/// Removes files that were kept, or whose process was killed while its editor was open. An editor that was open for longer
/// writes its file again when the user saves. What cannot be read or removed stays.
fn remove_old(home: &Path) {
    let Ok(entries) = fs::read_dir(home) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        let changed = entry.metadata().and_then(|meta| meta.modified());
        let age = changed.ok().and_then(|changed| changed.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > KEPT_FOR) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// $EDITOR may contain arguments, so the shell starts it, as git does.
fn open(path: &Path) -> Result<(), Failure> {
    let chosen = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok());
    let editor =
        chosen.filter(|editor| !editor.trim().is_empty()).unwrap_or_else(|| DEFAULT_EDITOR.to_owned());
    // Ctrl-C and Ctrl-\ must reach the editor, and end neither this process nor the shell.
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

//! The deliveries that hooks received in a trial: each hook appends its payload to one file.

use std::path::Path;
use std::{fs, io};

use serde_json::Value;

use super::ProofError;
use domain::text::shell::quote_words;

/// The hooks of every trial: name and event.
pub const HOOKS: [(&str, &str); 3] =
    [("notify-success", SUCCESS), ("notify-dead", DEAD), ("notify-batch", "batch-finished")];
pub const SUCCESS: &str = "success";
pub const DEAD: &str = "dead";
pub const BATCH_FINISHED: &str = "batch_finished";

/// One received delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The id of the delivery, which is the same for repeated attempts.
    pub delivery: String,
    pub event: String,
    /// The id of a job, or the name of a batch.
    pub about: String,
    /// The whole payload.
    pub text: String,
}

/// The command of a hook.
pub(super) fn command(path: &Path) -> String {
    // A process killed in the middle of a line must not corrupt the next line.
    format!("{{ echo; cat; }} >> {}", quote_words(&[path.display().to_string()]))
}

pub(super) fn read(path: &Path) -> Result<Vec<Notification>, ProofError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|source| ProofError::CannotRead { path: path.to_owned(), source })?,
    };
    Ok(text.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Notification> {
    let letter: Value = serde_json::from_str(line).ok()?;
    let about = letter["job"]["id"].as_str().or(letter["batch"]["name"].as_str())?;
    Some(Notification {
        delivery: letter["delivery"].as_str()?.to_owned(),
        event: letter["event"].as_str()?.to_owned(),
        about: about.to_owned(),
        text: line.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_line_does_not_corrupt_other_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notifications");
        assert_eq!(read(&path).expect("a missing file is empty"), []);
        let job = r#"{"delivery":"d-1","event":"dead","job":{"id":"a"}}"#;
        let batch = r#"{"delivery":"d-2","event":"batch_finished","batch":{"name":"red"}}"#;
        fs::write(&path, format!("\n{job}\n\n{{\"delivery\":\"d-9\",\n{batch}\n")).expect("written");
        let notifications = read(&path).expect("the notifications");
        let shown: Vec<_> =
            notifications.iter().map(|one| (one.delivery.as_str(), one.about.as_str())).collect();
        assert_eq!(shown, [("d-1", "a"), ("d-2", "red")]);
        assert_eq!(
            (notifications[0].event.as_str(), notifications[1].event.as_str()),
            (DEAD, BATCH_FINISHED)
        );
    }
}

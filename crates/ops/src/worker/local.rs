//! The workers of a home as their lock files tell, for when the store cannot be asked.

use std::path::Path;

use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{FOLDER, LOCK, Role};

/// A live worker of this home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalWorker {
    pub id: String,
    /// What prevents it from working, as it says.
    pub problem: Option<String>,
}

/// The live workers of this home, in the order of their ids.
pub fn local_workers(home: &Path) -> Vec<LocalWorker> {
    let folder = home.join(FOLDER);
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let locks = paths.filter(|path| path.extension().is_some_and(|extension| extension == LOCK));
    let mut ids: Vec<String> =
        locks.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    ids.sort_unstable();
    ids.retain(|id| liveness_lock::is_held(&folder, id, Role::Worker).unwrap_or(false));
    let worker = |id: String| LocalWorker { problem: liveness_lock::reported_problem(&folder, &id), id };
    ids.into_iter().map(worker).collect()
}

/// What the live workers of this home say, in one line; `None` if there are none.
pub fn describe_local_workers(home: &Path) -> Option<String> {
    let workers = local_workers(home);
    let said: Vec<String> = workers
        .iter()
        .map(|LocalWorker { id, problem }| match problem {
            Some(problem) => format!("worker {id} is blocked ({problem})"),
            None => format!("worker {id} runs and reports no problem"),
        })
        .collect();
    (!said.is_empty()).then(|| format!("in this home {}", said.join(", ")))
}

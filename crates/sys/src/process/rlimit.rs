//! Resource limits of this process and of those that it starts.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    OpenFiles,
    /// Processes and threads of this user.
    Processes,
    /// Bytes in one file.
    FileSize,
}

impl Limit {
    /// The soft limit; `None` if unlimited.
    pub fn soft(self) -> Option<u64> {
        getrlimit(self.resource()).current
    }

    /// The hard limit; `None` if unlimited.
    pub fn hard(self) -> Option<u64> {
        getrlimit(self.resource()).maximum
    }

    fn resource(self) -> Resource {
        match self {
            Self::OpenFiles => Resource::Nofile,
            Self::Processes => Resource::Nproc,
            Self::FileSize => Resource::Fsize,
        }
    }
}

/// The limit of open files of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    pub soft: u64,
    pub hard: u64,
}

/// The limit of this process before it was raised.
static ORIGINAL_OPEN_FILES: OnceLock<OpenFiles> = OnceLock::new();

/// Raises this process's soft limit of open files to the hard limit. Programs that it starts get the original limit,
/// because those that use select(2) cannot handle more.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(soft) = current.filter(|soft| maximum.is_none_or(|hard| *soft < hard)) else {
        return;
    };
    if setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
        let _ = ORIGINAL_OPEN_FILES.set(OpenFiles { soft, hard: maximum.unwrap_or(u64::MAX) });
    }
}

/// The limit for child processes; `None` if it is that of this process.
pub fn original_open_files() -> Option<OpenFiles> {
    ORIGINAL_OPEN_FILES.get().copied()
}

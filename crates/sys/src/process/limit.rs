//! What the system allows this process, and those that it starts.

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
    /// What is allowed now; `None`: as much as one likes.
    pub fn now(self) -> Option<u64> {
        getrlimit(self.resource()).current
    }

    /// What a process may allow itself.
    pub fn most(self) -> Option<u64> {
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

/// How many files a process may have open: what it is held to, and what it may raise that to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    pub soft: u64,
    pub hard: u64,
}

/// What this process was held to before it allowed itself more.
static BEFORE: OnceLock<OpenFiles> = OnceLock::new();

/// Allows this process as many open files as it may have. Programs that it starts are held to what it was held to before:
/// those that use select(2) cannot cope with more.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(soft) = current.filter(|soft| maximum.is_none_or(|hard| *soft < hard)) else {
        return;
    };
    if setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
        let _ = BEFORE.set(OpenFiles { soft, hard: maximum.unwrap_or(u64::MAX) });
    }
}

/// The limit that child processes get; `None`: the same as this process.
pub fn open_files_before() -> Option<OpenFiles> {
    BEFORE.get().copied()
}

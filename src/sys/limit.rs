//! What the system allows this process, and those that it starts.

use rustix::process::{Resource, getrlimit};

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
        let resource = match self {
            Self::OpenFiles => Resource::Nofile,
            Self::Processes => Resource::Nproc,
            Self::FileSize => Resource::Fsize,
        };
        getrlimit(resource).current
    }
}

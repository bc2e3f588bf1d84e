//! Files: locks, ownership, modes, sparse regions, and the disk that they are on.

pub mod disk;
pub mod liveness_lock;
pub mod lock;
pub mod owner_access;
pub mod owner_only;
pub mod ownership;
pub mod range_lock;
pub mod sparse;

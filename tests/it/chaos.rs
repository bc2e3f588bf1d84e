//! Faults of the disk, the clock and the machine, which must not break a promise of queuectl.

#[cfg(debug_assertions)]
mod clock;
#[cfg(debug_assertions)]
mod disk;
#[cfg(debug_assertions)]
mod every_call;
mod file_limit;
#[cfg(debug_assertions)]
mod full_disk;
#[cfg(debug_assertions)]
// Release builds have no guards that can be disabled, and take no migrations from tests.
mod hosts;
#[cfg(debug_assertions)] // Release builds are linked statically, so no library can be preloaded.
pub(crate) mod shim;
#[cfg(debug_assertions)]
mod slow;
#[cfg(debug_assertions)]
pub(crate) mod small_disk;
mod trials;

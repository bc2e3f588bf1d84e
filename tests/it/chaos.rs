//! A disk, a clock and a machine that misbehave: what must not break queuectl however its surroundings fail.

#[cfg(debug_assertions)]
mod clock;
#[cfg(debug_assertions)]
mod disk;
#[cfg(debug_assertions)]
mod every_call;
mod file_limit;
#[cfg(debug_assertions)]
mod full_disk;
#[cfg(debug_assertions)] // Released builds are linked statically: no library can step in.
pub(crate) mod shim;
#[cfg(debug_assertions)]
mod slow;
#[cfg(debug_assertions)]
mod small_disk;
mod trials;

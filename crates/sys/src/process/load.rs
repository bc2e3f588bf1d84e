//! The load of the machine.

use std::num::NonZero;

/// The number of runnable processes per processor, averaged over the last minute; `None` if the system does not report it.
pub fn per_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let runnable: f64 = text.split(' ').next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    Some(runnable / f64::from(u32::try_from(processors).ok()?))
}

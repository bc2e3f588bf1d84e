//! The processors of the machine, and their load.

use std::num::NonZero;

/// How many processors this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The number of runnable processes per processor, averaged over the last minute; `None` if the system does not report it.
pub fn per_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let runnable: f64 = text.split(' ').next()?.parse().ok()?;
    Some(runnable / f64::from(u32::try_from(processors()).ok()?))
}

//! How busy the machine is.

use std::num::NonZero;

/// How many processes wanted to run in the last minute, for each processor; `None` where nobody counts.
pub fn per_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let wanted: f64 = text.split(' ').next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    Some(wanted / f64::from(u32::try_from(processors).ok()?))
}

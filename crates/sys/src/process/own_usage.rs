//! What this process uses: memory, descriptors and processor time.

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::clock::{Clock, SystemClock, millis_since_boot};

/// The unit of times in `/proc/self/stat`.
const TICKS_PER_SECOND: f64 = 100.0;

/// `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnUsage {
    pub resident_bytes: Option<u64>,
    pub virtual_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub max_open_files: Option<u64>,
    pub cpu_seconds: Option<f64>,
    /// Since 1970.
    pub started_at_seconds: Option<f64>,
}

pub fn own_usage() -> OwnUsage {
    let memory = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may contain anything.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace().collect()).unwrap_or_default();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    OwnUsage {
        resident_bytes: kibibytes(&memory, "VmRSS:"),
        virtual_bytes: kibibytes(&memory, "VmSize:"),
        open_files: fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64),
        max_open_files: getrlimit(Resource::Nofile).current,
        cpu_seconds: ticks(11).zip(ticks(12)).map(|(user, system)| (user + system) / TICKS_PER_SECOND),
        started_at_seconds: ticks(19).map(|since_boot| boot_time() + since_boot / TICKS_PER_SECOND),
    }
}

/// A line such as `VmRSS: 3104 kB`.
fn kibibytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|number| number << 10)
}

/// When the machine booted, in seconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of this age have less than 52 bits")]
fn boot_time() -> f64 {
    (SystemClock.wall_millis() - millis_since_boot()) as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let usage = own_usage();
        assert!(usage.resident_bytes > Some(100 << 10) && usage.virtual_bytes >= usage.resident_bytes);
        assert!(usage.open_files > Some(2) && usage.max_open_files >= usage.open_files);
        #[expect(clippy::cast_precision_loss, reason = "seconds of this age have less than 52 bits")]
        let now = SystemClock.wall_millis() as f64 / 1_000.0;
        let started = usage.started_at_seconds.expect("a time");
        assert!(usage.cpu_seconds >= Some(0.0) && started <= now && started > now - 86_400.0, "{usage:?}");
    }
}

//! The resource usage of a process, as the kernel reports it.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Pid;

/// The CPU time of all threads of a process, from its CPU clock: the ticks of `/proc/PID/stat` are too coarse.
#[expect(unsafe_code, reason = "there is no safe wrapper for clock_getcpuclockid(3)")]
pub(crate) fn cpu(pid: Pid) -> Result<Duration> {
    let mut clock = 0;
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for writing.
    let error = unsafe { libc::clock_getcpuclockid(pid.as_raw_pid(), &raw mut clock) };
    ensure!(
        error == 0,
        "failed to get the CPU clock of process {pid}: {}",
        io::Error::from_raw_os_error(error)
    );
    // SAFETY: the pointer is valid for writing; the value is read only after success.
    let time = unsafe {
        ensure!(libc::clock_gettime(clock, time.as_mut_ptr()) == 0, io::Error::last_os_error());
        time.assume_init()
    };
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

/// The resident memory of a process.
pub(crate) fn resident_megabytes(pid: Pid) -> Result<f64> {
    megabytes(&format!("/proc/{pid}/status"), "VmRSS:")
}

/// The resident memory of a process, of which pages that it shares with others count in part.
pub(crate) fn proportional_megabytes(pid: Pid) -> Result<f64> {
    megabytes(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

/// The memory that the machine can still give to programs.
pub(crate) fn available_megabytes() -> Result<f64> {
    megabytes("/proc/meminfo", "MemAvailable:")
}

fn megabytes(file: &str, label: &str) -> Result<f64> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    let line = line.with_context(|| format!("{file} has no {label}"))?;
    let kilobytes: u32 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(f64::from(kilobytes) / 1024.0)
}

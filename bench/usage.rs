//! What the kernel says that a process uses.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Pid;

/// The time that all threads of a process have run, by its own clock: the ticks of `/proc/PID/stat` are too coarse.
#[expect(unsafe_code, reason = "there is no safe wrapper for clock_getcpuclockid(3)")]
pub(crate) fn cpu(pid: Pid) -> Result<Duration> {
    let mut clock = 0;
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for writing.
    let error = unsafe { libc::clock_getcpuclockid(pid.as_raw_pid(), &raw mut clock) };
    ensure!(error == 0, "process {pid} has no clock: {}", io::Error::from_raw_os_error(error));
    // SAFETY: the pointer is valid for writing; what it points to is read only after success.
    let time = unsafe {
        ensure!(libc::clock_gettime(clock, time.as_mut_ptr()) == 0, io::Error::last_os_error());
        time.assume_init()
    };
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

/// What is in memory of a process.
pub(crate) fn resident_megabytes(pid: Pid) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a process has memory")?;
    let kilobytes: u32 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(f64::from(kilobytes) / 1024.0)
}

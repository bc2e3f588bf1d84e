//! The processes of a trial. Only those are counted, and killed, that nobody else can have started.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, Uid, geteuid, getpid};

use crate::actor::{ACT, LINGER};
use sys::process;

/// Every living process of the trial in this folder.
pub fn processes_of(folder: &Path) -> Vec<Pid> {
    let mut found = process::all().unwrap_or_default();
    found.retain(|pid| *pid != getpid() && is_of(*pid, folder));
    found
}

/// Whether it works on the home of this trial, or is one of its commands or what these left behind. One that merely looks
/// at the folder is not.
pub fn is_of(pid: Pid, folder: &Path) -> bool {
    let is_alive = process::stat(pid).is_some_and(|stat| !stat.is_zombie);
    is_alive
        && is_ours(pid)
        && (works_on(pid, &folder.join("home")) || writes_to(pid, &folder.join("ledger")))
}

/// A command that became root counts too: it can be waited for, although only root can kill it.
fn is_ours(pid: Pid) -> bool {
    let owner = fs::metadata(format!("/proc/{}", pid.as_raw_pid())).map(|meta| meta.uid());
    owner.is_ok_and(|owner| [geteuid(), Uid::ROOT].map(Uid::as_raw).contains(&owner))
}

/// Supervisors, workers and calls, and whatever commands started with their environment.
fn works_on(pid: Pid, home: &Path) -> bool {
    let entry = [b"QUEUECTL_HOME=", home.as_os_str().as_bytes()].concat();
    process::environment(pid).split(|byte| *byte == 0).any(|variable| variable == entry)
}

/// What has shed its environment still has its arguments.
fn writes_to(pid: Pid, ledger: &Path) -> bool {
    let words = words(pid);
    let word = |at: usize| words.get(at).map(|word| OsStr::from_bytes(word));
    let is_act = [ACT, LINGER].iter().any(|verb| word(1) == Some(OsStr::new(verb)));
    is_act && word(2) == Some(ledger.as_os_str())
}

fn words(pid: Pid) -> Vec<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// What a process was started as, for people.
pub fn command_line(pid: Pid) -> String {
    let words = words(pid);
    let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    words.join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn start(command: &mut Command) -> Child {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().expect("it starts")
    }

    #[test]
    fn whoever_merely_looks_at_a_folder_is_a_stranger() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        fs::create_dir(folder.join("home")).expect("a home");
        let inside = start(Command::new("sleep").arg("60").current_dir(folder));
        let reads = start(Command::new("tail").arg("-f").arg(folder.join("ledger")));
        let longer = folder.join("home2");
        let named = start(Command::new("sleep").arg("60").env("QUEUECTL_HOME", longer));
        let own = start(Command::new("sleep").arg("60").env("QUEUECTL_HOME", folder.join("home")));
        let own_pid = Pid::from_child(&own);
        let began = std::time::Instant::now();
        // It has our own environment until it has become what it is to be.
        while processes_of(folder) != [own_pid] {
            assert!(began.elapsed().as_secs() < 20, "{:?} is not {own_pid:?}", processes_of(folder));
            std::thread::yield_now();
        }
        for mut child in [inside, reads, named, own] {
            child.kill().expect("killed");
            child.wait().expect("reaped");
        }
    }
}

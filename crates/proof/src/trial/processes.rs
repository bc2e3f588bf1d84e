//! The processes of a trial. Only processes that the trial itself must have started are counted and killed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, Uid, geteuid, getpid};

use crate::actor::{ACT, LINGER};
use crate::sandbox::Host;
use crate::sandbox::host::{HOME, HOMES};
use sys::process;

/// All live processes of the trial in this folder.
pub fn processes_of(folder: &Path) -> Vec<Pid> {
    found(|pid| belongs_to(pid, folder))
}

/// All live processes of one host of the trial in this folder.
pub fn processes_on(host: &Host, folder: &Path) -> Vec<Pid> {
    let ledger = folder.join("ledger");
    found(|pid| {
        is_alive(pid)
            && is_ours(pid)
            && (works_on(pid, |home| home == host.home) || writes_to(pid, &ledger, Some(&host.name)))
    })
}

fn found(is_wanted: impl Fn(Pid) -> bool) -> Vec<Pid> {
    let mut found = process::all().unwrap_or_default();
    found.retain(|pid| *pid != getpid() && is_wanted(*pid));
    found
}

/// Whether the process uses a home of this trial, or is one of its commands or their escapees. A process that merely has
/// the folder open is not.
pub fn belongs_to(pid: Pid, folder: &Path) -> bool {
    let (only, several) = (folder.join(HOME), folder.join(HOMES));
    let is_home = |home: &Path| home == only || home.parent() == Some(&several);
    is_alive(pid) && is_ours(pid) && (works_on(pid, is_home) || writes_to(pid, &folder.join("ledger"), None))
}

fn is_alive(pid: Pid) -> bool {
    process::stat(pid).is_some_and(|stat| !stat.is_zombie)
}

/// A command that became root counts too: the trial can wait for it, although only root can kill it.
fn is_ours(pid: Pid) -> bool {
    let owner = fs::metadata(format!("/proc/{}", pid.as_raw_pid())).map(|meta| meta.uid());
    owner.is_ok_and(|owner| [geteuid(), Uid::ROOT].map(Uid::as_raw).contains(&owner))
}

/// Supervisors, workers and calls, and all processes that commands started with their environment.
fn works_on(pid: Pid, is_home: impl Fn(&Path) -> bool) -> bool {
    let environment = process::environment(pid);
    let mut homes =
        environment.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(b"QUEUECTL_HOME="));
    homes.any(|home| is_home(Path::new(OsStr::from_bytes(home))))
}

/// A process without the environment can still be recognised by its arguments; an escapee names its host there.
fn writes_to(pid: Pid, ledger: &Path, host: Option<&str>) -> bool {
    let words = words(pid);
    let word = |at: usize| words.get(at).map(|word| OsStr::from_bytes(word));
    let is_act = [ACT, LINGER].iter().any(|verb| word(1) == Some(OsStr::new(verb)));
    let is_on_host = host.is_none_or(|host| word(3) == Some(OsStr::new(host)));
    is_act && word(2) == Some(ledger.as_os_str()) && is_on_host
}

fn words(pid: Pid) -> Vec<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// The command line of a process, for messages.
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
        quiet.spawn().expect("the process starts")
    }

    #[test]
    fn a_process_that_merely_uses_the_folder_is_not_counted() {
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
        // Until exec, the child has the environment of this process.
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

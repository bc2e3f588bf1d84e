//! A tree of processes in `/proc`, and its memory.
//!
//! It is read by following the lists of children, so that the cost depends on the size of the tree and not on the number of
//! processes on the machine. A process that is started during the read may be missed.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, Signal};

use super::{ProcessHandle, Stat, stat};

/// A process of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub pid: Pid,
    pub stat: Stat,
}

/// These processes and all their descendants.
pub fn of(roots: &[Pid]) -> Vec<Member> {
    let mut visited: HashSet<Pid> = HashSet::new();
    let mut unvisited: Vec<Pid> = roots.to_vec();
    let mut members = Vec::new();
    while let Some(pid) = unvisited.pop() {
        if !visited.insert(pid) {
            continue;
        }
        if let Some(member) = stat(pid).map(|stat| Member { pid, stat }) {
            unvisited.extend(member.children());
            members.push(member);
        }
    }
    members
}

/// The memory of all members together. While it does not exceed `limit`, shared pages are counted once per process, which
/// is cheap; otherwise each is counted once.
pub fn memory_of(members: &[Member], limit: u64) -> u64 {
    let resident = members.iter().map(Member::resident_bytes).sum();
    if resident <= limit {
        return resident;
    }
    // A process that is just being started may still share the memory of its parent, which would count twice.
    let is_in_parent = |member: &Member| {
        Pid::from_raw(member.stat.parent).is_some_and(|parent| share_memory(member.pid, parent))
    };
    let own = members.iter().filter(|member| !is_in_parent(member));
    own.map(|member| member.proportional_bytes().unwrap_or_else(|| member.resident_bytes())).sum()
}

/// Whether two processes share their memory, as threads do. If the kernel does not say, they do not.
#[expect(unsafe_code, reason = "there is no safe wrapper for kcmp(2)")]
fn share_memory(one: Pid, other: Pid) -> bool {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: all arguments are numbers; the kernel compares two tasks and writes nothing.
    let answer =
        unsafe { libc::syscall(libc::SYS_kcmp, one.as_raw_pid(), other.as_raw_pid(), KCMP_VM, 0_u64, 0_u64) };
    answer == 0
}

impl Member {
    fn resident_bytes(&self) -> u64 {
        self.stat.resident_pages.saturating_mul(page_bytes())
    }

    /// The children that any of its threads has started.
    fn children(&self) -> Vec<Pid> {
        let pid = self.pid.as_raw_pid();
        if self.stat.threads <= 1 {
            return children_of(&format!("/proc/{pid}/task/{pid}/children"));
        }
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return Vec::new();
        };
        let lists = threads.flatten().map(|thread| thread.path().join("children"));
        lists.flat_map(|list| children_of(&list.display().to_string())).collect()
    }

    /// Its proportional memory: a page that three processes share counts a third. The cost is proportional to its size.
    fn proportional_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid.as_raw_pid())).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes.saturating_mul(1024))
    }

    /// Sends a signal, unless the process has ended: another process that got its pid since is not signalled.
    pub fn signal(&self, signal: Signal) {
        let Ok(handle) = ProcessHandle::open(self.pid) else {
            return;
        };
        if stat(self.pid).is_some_and(|now| now.start_time == self.stat.start_time) {
            let _ = handle.signal(signal);
        }
    }
}

fn children_of(list: &str) -> Vec<Pid> {
    let list = fs::read_to_string(list).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect()
}

#[expect(unsafe_code, reason = "there is no safe wrapper for sysconf(3) without another feature")]
fn page_bytes() -> u64 {
    // SAFETY: takes a number and returns one.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes.try_into().unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::getpid;

    use super::*;

    #[test]
    fn descendants_are_found_counted_and_signalled() {
        let script = "sleep 60 & (sleep 60; true) & echo ready; wait";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let mut line = String::new();
        let mut out = std::io::BufReader::new(shell.stdout.take().expect("its output"));
        std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
        let root = Pid::from_raw(shell.id().cast_signed()).expect("a pid");
        let began = std::time::Instant::now();
        // The subshell starts its own sleep slightly later.
        let members = loop {
            let members = of(&[root, root]);
            if members.len() == 4 {
                break members;
            }
            assert!(began.elapsed() < std::time::Duration::from_secs(20), "{members:?}");
            std::thread::yield_now();
        };
        assert!(memory_of(&members, u64::MAX) >= memory_of(&members, 0), "shared pages count once");
        assert!(memory_of(&members, 0) > 0);
        assert!(share_memory(root, root) && !share_memory(root, getpid()));
        let mut recycled = members[0];
        recycled.stat.start_time += 1;
        recycled.signal(Signal::KILL);
        assert_eq!(of(&[root]).len(), 4, "another process with its pid is not signalled");
        for member in &members {
            member.signal(Signal::KILL);
        }
        assert!(!shell.wait().expect("reaped").success());
        assert_eq!(of(&[root]), []);
    }

    #[test]
    fn children_of_other_threads_are_found() {
        std::thread::spawn(|| {
            let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
            let pid = Pid::from_raw(child.id().cast_signed()).expect("a pid");
            assert!(of(&[getpid()]).iter().any(|member| member.pid == pid));
            child.kill().expect("killed");
            child.wait().expect("reaped");
        })
        .join()
        .expect("no panic");
    }
}

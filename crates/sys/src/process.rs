//! Processes: watching, signalling and reaping them, and their entries in `/proc`.

pub mod code;
pub mod cstr_array;
pub mod load;
pub mod own_usage;
pub(crate) mod peak_memory;
pub mod rlimit;
pub mod spawn;
pub mod tree;
pub mod user;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::host::FileId;

/// The names of programs that read scripts.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "busybox", "zsh", "ksh", "mksh", "fish"];

/// Whether the parent process is a shell whose standard input is this file, pipe or socket. Other programs, such as
/// `timeout`, have it only to pass it on.
pub fn is_input_of_shell(input: impl AsFd) -> bool {
    let Some(parent) = rustix::process::getppid().map(Pid::as_raw_nonzero) else {
        return false;
    };
    let name = fs::read_to_string(format!("/proc/{parent}/comm"));
    if !name.is_ok_and(|name| SHELLS.contains(&name.trim_end())) {
        return false;
    }
    let theirs = fs::metadata(format!("/proc/{parent}/fd/0"));
    let ours = rustix::fs::fstat(input);
    theirs
        .is_ok_and(|theirs| ours.is_ok_and(|ours| (ours.st_dev, ours.st_ino) == (theirs.dev(), theirs.ino())))
}

/// The path of the program that a process runs, if another file has that path now. `None` also if this user may not know.
pub fn replaced_program(pid: u32) -> Option<PathBuf> {
    let link = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let path = Path::new(OsStr::from_bytes(link.as_os_str().as_bytes().strip_suffix(b" (deleted)")?));
    path.exists().then(|| path.to_owned())
}

/// A handle to one process, which cannot be confused with another.
#[derive(Debug)]
pub struct ProcessHandle {
    descriptor: OwnedFd,
}

impl ProcessHandle {
    /// The process that has this pid now. Unless it is an unreaped child of ours, the caller must check that it is the
    /// expected process.
    pub fn open(pid: Pid) -> io::Result<Self> {
        Ok(Self { descriptor: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// Sends a signal; does nothing if the process has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.descriptor, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Whether it ends within this time or has already ended.
    pub fn ends_within(&self, timeout: Duration) -> io::Result<bool> {
        let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let timeout = timeout.try_into().map_err(io::Error::other)?;
        loop {
            match poll(&mut watched, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result? > 0),
            }
        }
    }
}

impl From<OwnedFd> for ProcessHandle {
    /// Wraps a pidfd.
    fn from(descriptor: OwnedFd) -> Self {
        Self { descriptor }
    }
}

impl AsFd for ProcessHandle {
    /// Becomes readable when the process ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// How a child ended, and the resources that it and its own children used.
#[derive(Clone, Copy, Debug)]
pub struct ChildExit {
    pub status: ExitStatus,
    pub cpu: Duration,
    /// `None` if it cannot be distinguished from the memory of the process that started it.
    pub max_rss_bytes: Option<u64>,
}

/// Reaps a child of ours if it has ended.
#[expect(
    unsafe_code,
    reason = "there is no safe wrapper for wait4(2), which alone reports what a child used"
)]
pub fn reap(pid: Pid) -> io::Result<Option<ChildExit>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid for writing for the whole call. All bytes zero are a valid usage, which is what is
    // read where the kernel writes none.
    let (result, usage) = unsafe {
        let result = libc::wait4(pid.as_raw_pid(), &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (result, usage.assume_init())
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some(ChildExit {
            status: ExitStatus::from_raw(status),
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
            max_rss_bytes: peak_memory::of_child(usage.ru_maxrss.cast_unsigned() * 1024),
        })),
    }
}

fn duration(time: libc::timeval) -> Duration {
    let micros = time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_usec);
    Duration::from_micros(micros.try_into().unwrap_or(0))
}

/// The fields of `/proc/PID/stat` that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub is_zombie: bool,
    /// Stopped by a signal or a debugger: it does not resume by itself.
    pub is_stopped: bool,
    pub parent: i32,
    pub session: i32,
    pub threads: u32,
    /// In clock ticks since boot: together with the pid it identifies one process for good.
    pub start_time: u64,
    /// Its resident memory, including shared pages.
    pub resident_pages: u64,
}

/// `None` if the process does not exist.
pub fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    parse_stat(&String::from_utf8_lossy(&text))
}

/// The name is in parentheses and may contain anything; the other fields follow the last closing parenthesis.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Stat {
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        is_stopped: matches!(*fields.first()?, "T" | "t"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
        resident_pages: fields.get(21)?.parse().ok()?,
    })
}

/// The environment that a process was started with; empty if it cannot be read.
pub fn environment(pid: Pid) -> Vec<u8> {
    fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).unwrap_or_default()
}

/// The children of this process's main thread: those that it started and those that it adopted as a subreaper. The file
/// stays open, because finding it costs more than reading it.
#[derive(Debug)]
pub struct Children {
    file: File,
}

impl Children {
    /// Fails if the kernel was built without the list of children.
    pub fn open() -> io::Result<Self> {
        let pid = rustix::process::getpid().as_raw_pid();
        Ok(Self { file: File::open(format!("/proc/self/task/{pid}/children"))? })
    }

    /// The current children.
    pub fn list(&self) -> Vec<Pid> {
        let list = self.read().unwrap_or_default();
        let list = String::from_utf8_lossy(&list);
        list.split_ascii_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect()
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let (mut list, mut part) = (Vec::new(), [0; 1024]);
        loop {
            let read = self.file.read_at(&mut part, list.len() as u64)?;
            if read == 0 {
                return Ok(list);
            }
            list.extend_from_slice(&part[..read]);
        }
    }
}

/// All visible processes.
pub fn all() -> io::Result<Vec<Pid>> {
    let entries = fs::read_dir("/proc")?;
    let pid = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(entries.filter_map(pid).filter_map(Pid::from_raw).collect())
}

/// The ranges of this file on which this process holds locks, its own or inherited ones.
pub fn locks_on(pid: Pid, file: &Path) -> Vec<Range<u64>> {
    let Ok(sought) = file.metadata().map(FileId::from) else {
        return Vec::new();
    };
    let pid = pid.as_raw_pid();
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let is_same_file =
        |entry: &fs::DirEntry| entry.path().metadata().is_ok_and(|found| FileId::from(found) == sought);
    let info = |entry: fs::DirEntry| {
        fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_string_lossy())).ok()
    };
    let infos = entries.flatten().filter(is_same_file).filter_map(info);
    infos.flat_map(|info| info.lines().filter_map(parse_lock).collect::<Vec<_>>()).collect()
}

/// The processes that hold a lock on this file, as far as this user may see them.
pub fn lockers_of(file: &Path) -> Vec<u32> {
    lockers(file).map(|pid| pid.as_raw_pid().cast_unsigned()).collect()
}

fn lockers(file: &Path) -> impl Iterator<Item = Pid> {
    all().unwrap_or_default().into_iter().filter(|pid| !locks_on(*pid, file).is_empty())
}

/// A process that holds a lock on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub name: String,
    /// Stopped by a signal or a debugger: it does not resume by itself.
    pub is_stopped: bool,
}

impl Holder {
    fn new(pid: Pid) -> Self {
        let is_stopped = stat(pid).is_some_and(|stat| stat.is_stopped);
        let pid = pid.as_raw_pid().cast_unsigned();
        Self { pid, name: name(pid).unwrap_or_default(), is_stopped }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "process {} ({})", self.pid, self.name)
    }
}

/// The process that has locked this file with flock(2). The kernel's list of locks is one small file, which is faster to
/// read than all descriptors of all processes; but on some filesystems it shows another device than the file itself has, so
/// the process's descriptors are checked as well.
pub fn holder_of(file: &Path) -> Option<Holder> {
    let inode = file.metadata().ok()?.ino();
    let list = fs::read_to_string("/proc/locks").ok()?;
    let mut pids = list.lines().filter_map(|line| parse_flock(line, inode));
    let pid = pids.find(|pid| !locks_on(*pid, file).is_empty())?;
    Some(Holder::new(pid))
}

/// As [`holder_of`], but also checks all processes, which finds an inherited lock whose original holder is gone.
pub fn any_holder_of(file: &Path) -> Option<Holder> {
    holder_of(file).or_else(|| lockers(file).next().map(Holder::new))
}

/// `1: FLOCK  ADVISORY  WRITE 4711 fe:00:10010813 0 EOF`; waiting processes have `->` after the number.
fn parse_flock(line: &str, inode: u64) -> Option<Pid> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, _, pid, place, ..] = words[..] else {
        return None;
    };
    let is_same_file = place.rsplit(':').next()?.parse() == Ok(inode);
    Pid::from_raw(pid.parse().ok().filter(|_| is_same_file)?)
}

/// The name that a process has given itself, which may contain anything.
pub fn name(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// `lock: 1: OFDLCK ADVISORY WRITE -1 fe:00:4711 256 511`: the last two fields are the first and the last byte.
fn parse_lock(line: &str) -> Option<Range<u64>> {
    let mut words = line.strip_prefix("lock:")?.split_ascii_whitespace().rev();
    let last = words.next()?;
    let end = if last == "EOF" { u64::MAX } else { last.parse::<u64>().ok()?.checked_add(1)? };
    Some(words.next()?.parse().ok()?..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::range_lock;

    #[test]
    fn a_name_with_parentheses_is_parsed() {
        let text = "42 (a) Z (b) S 7 42 43 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 5 0 98765 4096 3 0";
        let stat = parse_stat(text).expect("a line");
        let expected = Stat {
            is_zombie: false,
            is_stopped: false,
            parent: 7,
            session: 43,
            threads: 5,
            start_time: 98_765,
            resident_pages: 3,
        };
        assert_eq!(stat, expected);
        let stopped = text.replace(") S", ") T");
        assert!(parse_stat(&stopped).is_some_and(|stat| stat.is_stopped && !stat.is_zombie));
        assert!(parse_stat(&text.replace(") S", ") Z")).is_some_and(|stat| stat.is_zombie));
        assert_eq!(parse_stat("42 (cut) S 7"), None);
    }

    #[test]
    fn the_locks_of_a_process_are_read_from_proc() {
        let line = "lock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:10010813 256 511";
        assert_eq!(parse_lock(line), Some(256..512));
        assert_eq!(parse_lock("lock:\t1: FLOCK  ADVISORY  WRITE 7 fe:00:4711 0 EOF"), Some(0..u64::MAX));
        assert_eq!(parse_lock("flags:\t0100002"), None);
        let file = tempfile::NamedTempFile::new().expect("a file");
        let me = rustix::process::getpid();
        assert_eq!(locks_on(me, file.path()), []);
        assert!(range_lock::take(file.as_file(), 512..768).expect("a lock"));
        assert_eq!(locks_on(me, file.path()).first(), Some(&(512..768)));
        assert_eq!(lockers_of(file.path()), [std::process::id()]);
    }

    #[test]
    fn the_holder_of_a_lock_is_read_from_proc() {
        let line = "12: FLOCK  ADVISORY  WRITE 4711 fe:00:10010813 0 EOF";
        assert_eq!(parse_flock(line, 10_010_813), Pid::from_raw(4711));
        assert_eq!(parse_flock(line, 813), None, "another file");
        assert_eq!(parse_flock("12: -> FLOCK  ADVISORY  WRITE 4711 fe:00:10010813 0 EOF", 10_010_813), None);
        assert_eq!(parse_flock("3: POSIX  ADVISORY  WRITE 4711 fe:00:10010813 0 EOF", 10_010_813), None);
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(holder_of(file.path()), None);
        file.as_file().lock().expect("a lock");
        let holder = holder_of(file.path()).expect("a holder");
        assert_eq!((holder.pid, holder.is_stopped), (std::process::id(), false));
        assert_eq!(any_holder_of(file.path()), Some(holder));
    }

    #[test]
    fn a_process_finds_itself() {
        let me = rustix::process::getpid();
        assert!(all().expect("a list").contains(&me));
        let stat = stat(me).expect("it is alive");
        assert!(!stat.is_zombie && stat.start_time > 0);
        assert!(name(std::process::id()).is_some_and(|name| !name.is_empty()));
        assert!(environment(me).windows(5).any(|part| part == b"PATH="));
    }
}

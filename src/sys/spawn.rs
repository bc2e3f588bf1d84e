//! Starting a program with `posix_spawn`.
//!
//! Never fork and exec: copying the page tables of a large process makes that many times slower, and nothing between
//! the two may allocate. The child gets what is listed here and nothing else, because every descriptor of ours is
//! closed on exec.

use std::ffi::{CStr, CString, c_char, c_int, c_short};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

use super::user;

/// What to start, and how.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// A path; nothing is searched.
    pub program: &'a CStr,
    pub argv: &'a [CString],
    pub envp: &'a [CString],
    pub cwd: Option<&'a CStr>,
    pub leads: Leads,
    /// Descriptors of ours, and the numbers they have in the child. Standard input is `/dev/null` unless it is listed.
    pub descriptors: &'a [(BorrowedFd<'a>, RawFd)],
}

/// What the new process is the leader of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// A session of its own: no terminal reaches it.
    Session,
    /// A group of its own, so that the terminal's signals pass it by.
    Group,
}

/// Starts the program with no signal blocked.
#[expect(unsafe_code, reason = "there is no safe wrapper for posix_spawn(3)")]
pub fn spawn(spawn: &Spawn<'_>) -> io::Result<Pid> {
    let actions = Actions::of(spawn)?;
    let attributes = Attributes::of(spawn.leads)?;
    let (argv, envp) = (pointers(spawn.argv), pointers(spawn.envp));
    let mut pid = 0;
    // SAFETY: all pointers are to values that outlive the call; both lists end with a null pointer.
    let result = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            spawn.program.as_ptr(),
            &raw const actions.0,
            &raw const attributes.0,
            argv.as_ptr(),
            envp.as_ptr(),
        )
    };
    check(result)?;
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("the system gave no pid"))
}

fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|text| text.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
}

/// These functions return the error instead of setting it.
fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// What happens in the child before the program runs.
struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    #[expect(unsafe_code, reason = "there is no safe wrapper for posix_spawn(3)")]
    fn of(spawn: &Spawn<'_>) -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the initialiser writes the whole structure, or fails.
        let mut actions = unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            Self(actions.assume_init())
        };
        if !spawn.descriptors.iter().any(|(_, number)| *number == 0) {
            actions.open_null(0)?;
        }
        for (descriptor, number) in spawn.descriptors {
            // SAFETY: the structure is initialised.
            check(unsafe {
                libc::posix_spawn_file_actions_adddup2(&raw mut actions.0, descriptor.as_raw_fd(), *number)
            })?;
        }
        if let Some(cwd) = spawn.cwd {
            // SAFETY: the structure is initialised; the path is copied.
            check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&raw mut actions.0, cwd.as_ptr()) })?;
        }
        Ok(actions)
    }

    #[expect(unsafe_code, reason = "there is no safe wrapper for posix_spawn(3)")]
    fn open_null(&mut self, number: RawFd) -> io::Result<()> {
        // SAFETY: the structure is initialised; the path is copied.
        check(unsafe {
            libc::posix_spawn_file_actions_addopen(
                &raw mut self.0,
                number,
                c"/dev/null".as_ptr(),
                libc::O_RDONLY,
                0,
            )
        })
    }
}

impl Drop for Actions {
    #[expect(unsafe_code, reason = "there is no safe wrapper for posix_spawn(3)")]
    fn drop(&mut self) {
        // SAFETY: it was initialised, and this is the last use.
        unsafe {
            libc::posix_spawn_file_actions_destroy(&raw mut self.0);
        }
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    #[expect(
        unsafe_code,
        clippy::cast_possible_truncation,
        reason = "there is no safe wrapper for posix_spawn(3); its flags are defined wider than it takes them"
    )]
    fn of(leads: Leads) -> io::Result<Self> {
        let flags = libc::POSIX_SPAWN_SETSIGMASK as c_short
            | libc::POSIX_SPAWN_SETSIGDEF as c_short
            | match leads {
                Leads::Session => libc::POSIX_SPAWN_SETSID,
                Leads::Group => libc::POSIX_SPAWN_SETPGROUP as c_short,
            };
        let (mut attributes, mut no_signals) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the initialisers write the whole structures, or fail. Group 0, the default, is the child's own.
        unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let mut attributes = Self(attributes.assume_init());
            // The signals that this program ignores. Others it sets to their default when it starts.
            let mut defaults = MaybeUninit::uninit();
            libc::sigemptyset(defaults.as_mut_ptr());
            libc::sigaddset(defaults.as_mut_ptr(), libc::SIGPIPE);
            libc::sigaddset(defaults.as_mut_ptr(), libc::SIGXFSZ);
            check(libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, defaults.as_ptr()))?;
            libc::sigemptyset(no_signals.as_mut_ptr());
            check(libc::posix_spawnattr_setsigmask(&raw mut attributes.0, no_signals.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags))?;
            Ok(attributes)
        }
    }
}

impl Drop for Attributes {
    #[expect(unsafe_code, reason = "there is no safe wrapper for posix_spawn(3)")]
    fn drop(&mut self) {
        // SAFETY: it was initialised, and this is the last use.
        unsafe {
            libc::posix_spawnattr_destroy(&raw mut self.0);
        }
    }
}

/// The variables of this process, for a program that is to have the same.
pub fn own_environment() -> io::Result<Vec<CString>> {
    let entry = |(name, value): (Vec<u8>, Vec<u8>)| Ok(CString::new([name, value].join(&b'='))?);
    user::variables().map(entry).collect()
}

/// Makes sure that no program that is started from here on inherits a descriptor that somebody handed to us.
pub fn keep_descriptors_to_ourselves() -> io::Result<()> {
    close_range(libc::STDERR_FILENO, libc::CLOSE_RANGE_CLOEXEC.cast_signed())
}

/// Closes every descriptor with a higher number: what the caller forgot to keep to itself. To be called before anything
/// was opened.
pub fn close_descriptors_after(last: RawFd) -> io::Result<()> {
    close_range(last, 0)
}

#[expect(unsafe_code, reason = "there is no safe wrapper for close_range(2)")]
fn close_range(after: RawFd, flags: c_int) -> io::Result<()> {
    // SAFETY: either only marks descriptors, or is called before anybody owns those that it closes.
    let result = unsafe { libc::close_range(after.cast_unsigned() + 1, u32::MAX, flags) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A pipe that this process was started with under an agreed number. To be asked for once.
#[expect(unsafe_code, reason = "takes over a descriptor by its number")]
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: only looks at the descriptor, which may well not be open.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and nobody else in this process knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

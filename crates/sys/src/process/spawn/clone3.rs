//! `clone3(2)`, which can start a process in another control group.
//!
//! Moving a process into a group after its start costs a grace period of the kernel (milliseconds), and the process would
//! run outside of the group until then. The C library has no function for this call, and none could be used: the new
//! process has another stack, so it must not return from the function that made the call.

use std::arch::asm;
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use super::stack::Stack;

/// What the kernel reads (`struct clone_args`).
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Arguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

impl Arguments {
    /// The kernel writes the handle of the new process to `handle`.
    pub(super) fn new(flags: c_int, handle: &mut RawFd, stack: &Stack, group: BorrowedFd<'_>) -> Self {
        const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
        Self {
            flags: u64::from(flags.cast_unsigned()) | CLONE_INTO_CGROUP,
            pidfd: std::ptr::from_mut(handle).addr() as u64,
            exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
            stack: stack.lowest().addr() as u64,
            stack_size: (stack.top().addr() - stack.lowest().addr()) as u64,
            cgroup: u64::from(group.as_raw_fd().cast_unsigned()),
            ..Self::default()
        }
    }
}

/// Whether processes can be started in this way: the kernel may be too old, and sandboxes forbid the call, because they
/// cannot inspect its arguments.
pub(crate) fn is_allowed() -> bool {
    // SAFETY: a size of zero is refused before anything is read or started.
    #[expect(unsafe_code, reason = "there is no safe wrapper for clone3(2)")]
    let result = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<c_void>(), 0) };
    let is_known = result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    is_known && cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

/// Starts a process that calls `begin` with `orders` on the stack of the arguments; returns its pid.
///
/// # Safety
///
/// The arguments must ask for CLONE_VM and CLONE_VFORK. `orders` must be what `begin` requires, and `begin` must not return.
#[expect(unsafe_code, reason = "there is no safe wrapper for clone3(2)")]
pub(super) unsafe fn call(
    arguments: &Arguments,
    begin: extern "C" fn(*mut c_void) -> c_int,
    orders: *mut c_void,
) -> io::Result<libc::pid_t> {
    let result: i64;
    let size = size_of::<Arguments>();
    // SAFETY: the kernel reads `size` bytes of the arguments, and writes the handle that they point to. The parent
    // continues after the label with the registers that are listed. The new process starts with copies of all registers
    // but that of the stack, which is an unused one, aligned to pages; it calls a function that does not return.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") std::ptr::from_ref(arguments),
            in("rsi") size,
            in("r12") orders,
            in("r13") begin,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone3,
            inlateout("x0") std::ptr::from_ref(arguments) => result,
            in("x1") size,
            in("x20") orders,
            in("x21") begin,
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (arguments, begin, orders, size);
        result = -i64::from(libc::ENOSYS);
    }
    if result < 0 {
        return Err(io::Error::from_raw_os_error(c_int::try_from(-result).unwrap_or(libc::EINVAL)));
    }
    libc::pid_t::try_from(result).map_err(io::Error::other)
}

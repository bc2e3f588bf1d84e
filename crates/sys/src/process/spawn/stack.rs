//! The stack of a new process until it executes its program.

use std::cell::OnceCell;
use std::ffi::c_void;
use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Far more than is used; untouched pages cost nothing.
const BYTES: usize = 256 << 10;
/// The guard at the lower end, which makes an overflow end the process instead of overwriting memory. It is as long as the
/// longest page: with longer pages the whole first page would become inaccessible, which may be the whole stack.
const GUARD_BYTES: usize = 64 << 10;

thread_local! {
    /// Each thread starts one process at a time. Mapping a new stack for each process would cost more than everything else
    /// here, because unmapping it flushes this memory from the TLBs of the other cores.
    static STACK: OnceCell<Stack> = const { OnceCell::new() };
}

#[derive(Debug)]
pub(super) struct Stack {
    lowest: NonNull<c_void>,
}

impl Stack {
    /// Calls a function with the stack for this thread's next process.
    pub(super) fn with<T>(use_it: impl FnOnce(&Self) -> T) -> io::Result<T> {
        STACK.with(|cell| {
            if let Some(stack) = cell.get() {
                return Ok(use_it(stack));
            }
            let stack = Self::map()?;
            Ok(use_it(cell.get_or_init(|| stack)))
        })
    }

    #[expect(unsafe_code, reason = "there is no safe wrapper for mmap(2)")]
    fn map() -> io::Result<Self> {
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without MAP_FIXED the kernel chooses an unused range, so no existing memory is replaced. The guard lies
        // within that range, which no reference points into yet.
        unsafe {
            let lowest = mmap_anonymous(null_mut(), BYTES, writable, MapFlags::PRIVATE | MapFlags::STACK)?;
            let stack =
                Self { lowest: NonNull::new(lowest).ok_or_else(|| io::Error::other("no memory at zero"))? };
            mprotect(lowest, GUARD_BYTES, MprotectFlags::empty())?;
            Ok(stack)
        }
    }

    /// Its lower end.
    pub(super) fn lowest(&self) -> *mut c_void {
        self.lowest.as_ptr()
    }

    /// Its initial position: it grows downwards.
    pub(super) fn top(&self) -> *mut c_void {
        self.lowest.as_ptr().wrapping_byte_add(BYTES)
    }
}

impl Drop for Stack {
    #[expect(unsafe_code, reason = "there is no safe wrapper for munmap(2)")]
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map` and is unmapped only here. Only this thread uses it, to start a process,
        // and it waits until that process has left it. Where the call fails, the range stays mapped.
        let _ = unsafe { munmap(self.lowest.as_ptr(), BYTES) };
    }
}

/* Wraps functions of the C library and records every change and every sync of a file below one folder.
*
* Loaded with LD_PRELOAD. Only the program under test is recorded, not the shells of its jobs. Every call is made as a
* system call, so nothing here depends on the behaviour of the C library.
*
* The order of records must be sound across processes:
* - a change is recorded after it was made and before its process continues;
* - names change one at a time, under a lock: no process finds a folder and creates a file in it before the folder is
*   recorded;
* - a sync is recorded twice, before it begins and after it has ended: it covers the changes recorded before its beginning
*   and takes effect at its end;
* - standard output is recorded before it is written.
* A record is one append, which the kernel does not mix with others. The log is opened again each time, because the program
* may close any descriptor at any time.
*
* Two things are not recorded: the shared-memory file of SQLite, which has no meaning after a power cut, and reads. An
* unsupported way to write is recorded as such and fails the test.
*/
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The numbers are shared with record.rs. */
enum kind { CREATE = 1, MAKE_FOLDER, WRITE, RESIZE, ZERO, RENAME, REMOVE, SYNC_BEGIN, SYNC_END, SAY, END, UNSUPPORTED };

struct head {
    uint32_t kind, path_length, data_length, unused;
    uint64_t inode, offset, length;
};

static char root[PATH_MAX], record_path[PATH_MAX];
static const char *tag = "", *die_before_sync = "";
static int on;

__attribute__((constructor)) static void begin(void) {
    const char *program = getenv("POWER_PROGRAM"), *folder = getenv("POWER_ROOT"), *log = getenv("POWER_LOG");
    char exe[PATH_MAX] = "";
    if (!program || !folder || !log || readlink("/proc/self/exe", exe, sizeof exe - 1) < 0 || strcmp(exe, program))
        return;
    snprintf(root, sizeof root, "%s", folder);
    snprintf(record_path, sizeof record_path, "%s", log);
    /* Copied, because the environment may change. */
    const char *call = getenv("POWER_CALL");
    tag = call ? strdup(call) : "";
    const char *end = getenv("POWER_DIE_BEFORE_SYNC");
    die_before_sync = end ? strdup(end) : "";
    on = 1;
}

static void put(enum kind kind, uint64_t inode, const char *path, uint64_t offset, uint64_t length, const void *data,
                size_t data_length) {
    int before = errno;
    struct head head = {kind, strlen(path), data_length, 0, inode, offset, length};
    struct iovec parts[] = {
        {&head, sizeof head}, {(void *)path, head.path_length}, {(void *)data, data_length}};
    ssize_t whole = sizeof head + head.path_length + data_length;
    int log = syscall(SYS_openat, AT_FDCWD, record_path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    /* A missing record would invalidate all results. */
    if (log < 0 || syscall(SYS_writev, log, parts, 3) != whole)
        abort();
    syscall(SYS_close, log);
    errno = before;
}

/* Takes the lock for changing names. Returns the argument of `leave`. */
static int enter(void) {
    int lock = on ? syscall(SYS_openat, AT_FDCWD, record_path, O_RDONLY | O_CLOEXEC, 0) : -1;
    while (lock >= 0 && syscall(SYS_flock, lock, LOCK_EX) && errno == EINTR)
        ;
    return lock;
}

static void leave(int lock) {
    int before = errno;
    if (lock >= 0)
        syscall(SYS_close, lock);
    errno = before;
}

__attribute__((destructor)) static void end(void) {
    if (on && *tag)
        put(END, 0, tag, 0, 0, "", 0);
}

/* The path of an open file relative to the root. Returns 0 if it is elsewhere, has no name, or is not recorded. */
static int place_of(int fd, char *place) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    size_t above = strlen(root);
    if (length >= 0)
        path[length] = 0;
    if (length < 0 || (size_t)length < above || strncmp(path, root, above) || (path[above] && path[above] != '/'))
        return 0;
    if (length > 4 && !strcmp(path + length - 4, "-shm"))
        return 0;
    strcpy(place, path + above + (path[above] == '/'));
    return 1;
}

/* The same for a file that is not open. */
static int place_at(int folder, const char *path, char *place, uint64_t *inode) {
    int before = errno, found = 0;
    int fd = syscall(SYS_openat, folder, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    struct stat meta;
    if (fd >= 0 && !fstat(fd, &meta)) {
        *inode = meta.st_ino;
        found = place_of(fd, place);
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    errno = before;
    return found;
}

/* Whether changes to this descriptor are recorded, which must be a regular file. */
static int is_ours(int fd, struct stat *meta, char *place) {
    int before = errno;
    int ours = on && !fstat(fd, meta) && S_ISREG(meta->st_mode) && place_of(fd, place);
    errno = before;
    return ours;
}

static void unsupported(int fd, const char *what) {
    struct stat meta;
    char place[PATH_MAX];
    if (is_ours(fd, &meta, place))
        put(UNSUPPORTED, meta.st_ino, place, 0, 0, what, strlen(what));
}

/* The file position, which is the end of the last write without an offset, appended or not. */
static uint64_t position(int fd) { return syscall(SYS_lseek, fd, 0, SEEK_CUR); }

static void record_write(int fd, int64_t offset, const void *data, ssize_t length) {
    struct stat meta;
    char place[PATH_MAX];
    if (length > 0 && is_ours(fd, &meta, place))
        put(WRITE, meta.st_ino, place, offset < 0 ? position(fd) - length : (uint64_t)offset, 0, data, length);
}

/* Records a copy inside the kernel by reading the data back. */
static void record_copy(int fd, int64_t offset, ssize_t length) {
    struct stat meta;
    char place[PATH_MAX], link[64];
    if (length <= 0 || !is_ours(fd, &meta, place))
        return;
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int again = syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    char *data = malloc(length);
    if (offset < 0)
        offset = position(fd) - length;
    if (again < 0 || !data || pread(again, data, length, offset) != length)
        abort();
    put(WRITE, meta.st_ino, place, offset, 0, data, length);
    free(data);
    syscall(SYS_close, again);
    errno = before;
}

ssize_t write(int fd, const void *data, size_t length) {
    if (on && fd == STDOUT_FILENO && *tag)
        put(SAY, 0, tag, 0, 0, data, length);
    ssize_t done = syscall(SYS_write, fd, data, length);
    record_write(fd, -1, data, done);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    ssize_t done = syscall(SYS_pwrite64, fd, data, length, offset);
    record_write(fd, offset, data, done);
    return done;
}
ssize_t pwrite64(int, const void *, size_t, off_t) __attribute__((alias("pwrite")));

/* Writes one part after the other, which is a permitted partial write. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    ssize_t sum = 0;
    struct stat meta;
    char place[PATH_MAX];
    if (fd != STDOUT_FILENO && !is_ours(fd, &meta, place))
        return syscall(SYS_writev, fd, parts, count);
    for (int at = 0; at < count; at++) {
        ssize_t done = parts[at].iov_len ? write(fd, parts[at].iov_base, parts[at].iov_len) : 0;
        if (done < 0)
            return sum ? sum : -1;
        sum += done;
        if ((size_t)done < parts[at].iov_len)
            break;
    }
    return sum;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    unsupported(fd, "pwritev");
    return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}
ssize_t pwritev64(int, const struct iovec *, int, off_t) __attribute__((alias("pwritev")));

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags) {
    int64_t offset = to_offset ? *to_offset : -1;
    ssize_t done = syscall(SYS_copy_file_range, from, from_offset, to, to_offset, length, flags);
    record_copy(to, offset, done);
    return done;
}

ssize_t sendfile(int to, int from, off_t *offset, size_t length) {
    ssize_t done = syscall(SYS_sendfile, to, from, offset, length);
    record_copy(to, -1, done);
    return done;
}
ssize_t sendfile64(int, int, off_t *, size_t) __attribute__((alias("sendfile")));

ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags) {
    int64_t offset = to_offset ? *to_offset : -1;
    ssize_t done = syscall(SYS_splice, from, from_offset, to, to_offset, length, flags);
    record_copy(to, offset, done);
    return done;
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    if (fd >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE))
        unsupported(fd, "mmap");
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

int ftruncate(int fd, off_t size) {
    struct stat meta;
    char place[PATH_MAX];
    int failed = syscall(SYS_ftruncate, fd, size);
    if (!failed && is_ours(fd, &meta, place))
        put(RESIZE, meta.st_ino, place, size, 0, "", 0);
    return failed;
}
int ftruncate64(int, off_t) __attribute__((alias("ftruncate")));

int fallocate(int fd, int mode, off_t offset, off_t length) {
    struct stat meta;
    char place[PATH_MAX];
    int failed = syscall(SYS_fallocate, fd, mode, offset, length);
    if (failed || !is_ours(fd, &meta, place))
        return failed;
    if (mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
        put(ZERO, meta.st_ino, place, offset, length, "", 0);
    else if (mode == 0)
        put(RESIZE, meta.st_ino, place, meta.st_size, 0, "", 0);
    else
        unsupported(fd, "fallocate");
    return failed;
}
int fallocate64(int, int, off_t, off_t) __attribute__((alias("fallocate")));

static void begin_file(int fd, int is_new, int is_truncated) {
    struct stat meta;
    char place[PATH_MAX];
    /* A deleted file has no path to record. */
    if (fd < 0 || !is_ours(fd, &meta, place) || !meta.st_nlink)
        return;
    if (is_new)
        put(CREATE, meta.st_ino, place, 0, 0, "", 0);
    else if (is_truncated)
        put(RESIZE, meta.st_ino, place, 0, 0, "", 0);
}

/* Checks under the lock whether the file exists, so that no other process creates it in between. */
static int open_or_create(int folder, const char *path, int flags, mode_t mode) {
    int is_truncated = flags & O_TRUNC, fd;
    if (!(flags & O_CREAT) || !on) {
        fd = syscall(SYS_openat, folder, path, flags, mode);
        begin_file(on && is_truncated ? fd : -1, 0, is_truncated);
        return fd;
    }
    int lock = enter(), is_new = flags & O_EXCL;
    fd = syscall(SYS_openat, folder, path, is_new ? flags : flags & ~O_CREAT, mode);
    if (fd < 0 && errno == ENOENT && !is_new) {
        is_new = 1;
        fd = syscall(SYS_openat, folder, path, flags | O_EXCL, mode);
    }
    begin_file(fd, is_new, is_truncated);
    leave(lock);
    return fd;
}

#define MODE_ARGUMENT(flags, mode)                                                                                     \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                           \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE_ARGUMENT(flags, mode)
    return open_or_create(AT_FDCWD, path, flags, mode);
}
int open64(const char *, int, ...) __attribute__((alias("open")));

int openat(int folder, const char *path, int flags, ...) {
    MODE_ARGUMENT(flags, mode)
    return open_or_create(folder, path, flags, mode);
}
int openat64(int, const char *, int, ...) __attribute__((alias("openat")));

int mkdirat(int folder, const char *path, mode_t mode) {
    char place[PATH_MAX];
    uint64_t inode;
    int lock = enter();
    int failed = syscall(SYS_mkdirat, folder, path, mode);
    if (on && !failed && place_at(folder, path, place, &inode))
        put(MAKE_FOLDER, inode, place, 0, 0, "", 0);
    leave(lock);
    return failed;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* A pipe is recorded like a file; `length` distinguishes them. */
int mknodat(int folder, const char *path, mode_t mode, dev_t device) {
    char place[PATH_MAX];
    uint64_t inode;
    int lock = enter();
    int failed = syscall(SYS_mknodat, folder, path, mode, device);
    if (on && !failed && place_at(folder, path, place, &inode))
        put(CREATE, inode, place, 0, S_ISFIFO(mode), "", 0);
    leave(lock);
    return failed;
}

int unlinkat(int folder, const char *path, int flags) {
    char place[PATH_MAX];
    uint64_t inode;
    int lock = enter(), ours = on && place_at(folder, path, place, &inode);
    int failed = syscall(SYS_unlinkat, folder, path, flags);
    if (!failed && ours)
        put(REMOVE, inode, place, 0, 0, "", 0);
    leave(lock);
    return failed;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    char old[PATH_MAX], new[PATH_MAX];
    uint64_t inode;
    int lock = enter(), ours = on && place_at(from_folder, from, old, &inode);
    int failed = syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    // RENAME_NOREPLACE replaced nothing, so it is an ordinary rename.
    if (!failed && ours && !(flags & ~RENAME_NOREPLACE) && place_at(to_folder, to, new, &inode))
        put(RENAME, inode, old, 0, 0, new, strlen(new));
    else if (!failed && ours)
        put(UNSUPPORTED, inode, old, 0, 0, "renameat2", 9);
    leave(lock);
    return failed;
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, 0);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char place[PATH_MAX];
    uint64_t inode;
    int failed = syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    if (on && !failed && place_at(to_folder, to, place, &inode))
        put(UNSUPPORTED, inode, place, 0, 0, "linkat", 6);
    return failed;
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

static int sync_by(long call, int fd) {
    static atomic_uint count;
    struct stat meta;
    char place[PATH_MAX];
    int before = errno;
    int ours = on && !fstat(fd, &meta) && (S_ISREG(meta.st_mode) || S_ISDIR(meta.st_mode)) && place_of(fd, place);
    uint64_t token = (uint64_t)getpid() << 32 | atomic_fetch_add(&count, 1);
    errno = before;
    if (ours && *die_before_sync && !strcmp(place, die_before_sync))
        kill(getpid(), SIGKILL);
    if (ours)
        put(SYNC_BEGIN, meta.st_ino, place, S_ISDIR(meta.st_mode), token, "", 0);
    int failed = syscall(call, fd);
    if (ours && !failed)
        put(SYNC_END, meta.st_ino, place, S_ISDIR(meta.st_mode), token, "", 0);
    return failed;
}
int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

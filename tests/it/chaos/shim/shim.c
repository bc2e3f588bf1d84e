/*
 * Injects faults of disk and clock into processes that are started with this library in LD_PRELOAD.
 *
 * The faults are read from a file (QUEUECTL_SHIM) that the test writes and every process maps, so that a fault can begin
 * and end while the process runs. Only files below one folder (QUEUECTL_SHIM_BELOW) are affected. The layout of the file
 * must agree with control.rs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum mode { OFF = 0, ALWAYS = 1, NTH = 2, CHANCE = 3 };
enum kind { SYNC = 0, WRITE = 1, TRUNCATE = 2, ALLOCATE = 3, READ = 4, KINDS = 5 };

/* Every word has 64 bits. */
struct fault {
    _Atomic uint64_t mode;
    _Atomic uint64_t error;
    /* NTH: which call fails, counted from 1. CHANCE: how many of 1000. */
    _Atomic uint64_t number;
    _Atomic uint64_t seed;
    /* How many calls there were since the fault was set. */
    _Atomic uint64_t seen;
    /* How many calls failed in total. */
    _Atomic uint64_t struck;
};

struct control {
    struct fault faults[KINDS];
    _Atomic uint64_t delay_micros;
    _Atomic uint64_t delayed;
    _Atomic int64_t clock_shift_seconds;
    _Atomic uint64_t clock_shifted;
    /* How many times slower the monotonic clock runs; 0 means normal speed. */
    _Atomic uint64_t slowdown;
    /* Only files whose paths end with this are affected; empty means all. */
    char suffix[128];
};

static struct control *control;
static char below[PATH_MAX];
/* The monotonic time at which this process started. */
static struct timespec began;

/* The wrapped function of the C library; looked up once. */
#define REAL(name)                                                                                                     \
    ({                                                                                                                 \
        static __typeof__(&name) found;                                                                                \
        if (!found)                                                                                                    \
            found = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                        \
        found;                                                                                                         \
    })

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("QUEUECTL_SHIM"), *folder = getenv("QUEUECTL_SHIM_BELOW");
    if (!path || !folder || strlen(folder) >= sizeof below)
        return;
    strcpy(below, folder);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    REAL(clock_gettime)(CLOCK_MONOTONIC, &began);
    if (mapped != MAP_FAILED)
        control = mapped;
}

/* Whether a descriptor refers to one of the affected files. */
static int is_ours(int fd) {
    struct stat stat;
    if (fstat(fd, &stat) != 0 || !(S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode)))
        return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    size_t prefix = strlen(below), suffix = strnlen(control->suffix, sizeof control->suffix - 1);
    if (strncmp(path, below, prefix) != 0 || (path[prefix] != '/' && path[prefix] != 0))
        return 0;
    return suffix <= (size_t)length && memcmp(path + length - suffix, control->suffix, suffix) == 0;
}

/* splitmix64: the n-th number of a seed, so that the result does not depend on which process draws it. */
static uint64_t draw(uint64_t seed, uint64_t n) {
    uint64_t z = seed + n * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int is_struck(struct fault *fault) {
    uint64_t n = atomic_fetch_add(&fault->seen, 1) + 1;
    switch (atomic_load(&fault->mode)) {
    case ALWAYS:
        return 1;
    case NTH:
        return n == atomic_load(&fault->number);
    case CHANCE:
        return draw(atomic_load(&fault->seed), n) % 1000 < atomic_load(&fault->number);
    default:
        return 0;
    }
}

/* Delays a call and returns the error with which it must fail, or 0. */
static int strike(enum kind kind, int fd) {
    if (!control)
        return 0;
    struct fault *fault = &control->faults[kind];
    uint64_t delay = atomic_load(&control->delay_micros);
    if (atomic_load(&fault->mode) == OFF && delay == 0)
        return 0;
    int saved = errno, error = 0;
    if (is_ours(fd)) {
        if (delay > 0) {
            struct timespec pause = {delay / 1000000, delay % 1000000 * 1000};
            nanosleep(&pause, NULL);
            atomic_fetch_add(&control->delayed, 1);
        }
        if (is_struck(fault)) {
            error = (int)atomic_load(&fault->error);
            atomic_fetch_add(&fault->struck, 1);
        }
    }
    errno = saved;
    return error;
}

#define STRIKE(kind, fd)                                                                                               \
    do {                                                                                                               \
        int error = strike(kind, fd);                                                                                  \
        if (error) {                                                                                                   \
            errno = error;                                                                                             \
            return -1;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* A function of the C library that fails if its fault is on. */
#define FAIL(kind, result, name, parameters, arguments)                                                                \
    result name parameters {                                                                                           \
        STRIKE(kind, fd);                                                                                              \
        return REAL(name) arguments;                                                                                   \
    }

FAIL(SYNC, int, fsync, (int fd), (fd))
FAIL(SYNC, int, fdatasync, (int fd), (fd))

FAIL(WRITE, ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
FAIL(WRITE, ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
FAIL(WRITE, ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
FAIL(WRITE, ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
FAIL(WRITE, ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))

FAIL(TRUNCATE, int, ftruncate, (int fd, off_t size), (fd, size))
FAIL(TRUNCATE, int, ftruncate64, (int fd, off64_t size), (fd, size))
FAIL(ALLOCATE, int, fallocate, (int fd, int how, off_t from, off_t size), (fd, how, from, size))
FAIL(ALLOCATE, int, fallocate64, (int fd, int how, off64_t from, off64_t size), (fd, how, from, size))

/* These return the error. */
int posix_fallocate(int fd, off_t from, off_t size) {
    int error = strike(ALLOCATE, fd);
    return error ? error : REAL(posix_fallocate)(fd, from, size);
}

int posix_fallocate64(int fd, off64_t from, off64_t size) {
    int error = strike(ALLOCATE, fd);
    return error ? error : REAL(posix_fallocate64)(fd, from, size);
}

FAIL(READ, ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
FAIL(READ, ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
FAIL(READ, ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))
FAIL(READ, ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))

/* Only the wall clock is shifted, not the monotonic clocks. */
static int64_t shift(void) {
    int64_t seconds = control ? atomic_load(&control->clock_shift_seconds) : 0;
    if (seconds != 0)
        atomic_fetch_add(&control->clock_shifted, 1);
    return seconds;
}

static int64_t slowdown(void) {
    int64_t times = control ? (int64_t)atomic_load(&control->slowdown) : 0;
    return times > 1 ? times : 1;
}

static int64_t nanos(const struct timespec *time) { return time->tv_sec * 1000000000LL + time->tv_nsec; }

static struct timespec timespec(int64_t nanos) { return (struct timespec){nanos / 1000000000, nanos % 1000000000}; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = REAL(clock_gettime)(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += shift();
    if (result == 0 && clock == CLOCK_MONOTONIC && slowdown() > 1)
        *now = timespec(nanos(&began) + (nanos(now) - nanos(&began)) / slowdown());
    return result;
}

/* With a slow clock, timeouts are longer too. */
int epoll_wait(int fd, struct epoll_event *events, int count, int millis) {
    return REAL(epoll_wait)(fd, events, count, millis > 0 ? millis * (int)slowdown() : millis);
}

int epoll_pwait(int fd, struct epoll_event *events, int count, int millis, const sigset_t *mask) {
    return REAL(epoll_pwait)(fd, events, count, millis > 0 ? millis * (int)slowdown() : millis, mask);
}

#if __GLIBC_PREREQ(2, 35)
int epoll_pwait2(int fd, struct epoll_event *events, int count, const struct timespec *wait, const sigset_t *mask) {
    struct timespec longer = wait ? timespec(nanos(wait) * slowdown()) : (struct timespec){0, 0};
    return REAL(epoll_pwait2)(fd, events, count, wait ? &longer : NULL, mask);
}
#endif

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int result = REAL(gettimeofday)(now, zone);
    if (result == 0)
        now->tv_sec += shift();
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

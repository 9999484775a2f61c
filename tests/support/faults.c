/* Faults at calls that change files: preloaded into a lab by tests/support/faults.py.
 *
 * Each call that makes, writes, flushes, moves or removes a file below one folder is a point, named
 * by the call and the file ("fsync ws/dbdyno.sqlite-wal"). DBDYNO_FAULT=NAME:N:KIND lets the N-th
 * point whose name holds NAME go wrong: `kill` ends the process before the call, `torn` after half
 * of what it writes (after all of another call), `stop` halts it as SIGSTOP does, `eio` fails this
 * call, `full` this and every later one that takes room. DBDYNO_FAULT_FOLDER is the folder, and
 * DBDYNO_FAULT_LOG a file to which each point is written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum outcome { GO_ON, FAIL, TEAR };

static char folder[PATH_MAX], wanted[512], kind[8];
static size_t folder_length; /* 0: nothing is looked at */
static long wanted_at;
static int log_handle = -1;
static atomic_long seen;
static atomic_int is_full, is_paused;

void dbdyno_fault(const char *below, const char *fault, int log)
{
    folder_length = 0;
    snprintf(folder, sizeof folder, "%s/", below);
    wanted_at = 0;
    const char *end = strrchr(fault, ':'), *middle = end;
    while (middle && middle > fault && *--middle != ':')
        ;
    if (middle) {
        snprintf(wanted, sizeof wanted, "%.*s", (int)(middle - fault), fault);
        wanted_at = atol(middle + 1);
        snprintf(kind, sizeof kind, "%s", end + 1);
    }
    log_handle = log;
    seen = is_full = is_paused = 0;
    folder_length = strlen(folder);
}

/* Calls that stand for another program's are let go by. */
void dbdyno_fault_pause(int paused) { is_paused = paused; }

__attribute__((constructor)) static void from_environment(void)
{
    const char *below = getenv("DBDYNO_FAULT_FOLDER"), *fault = getenv("DBDYNO_FAULT");
    const char *log = getenv("DBDYNO_FAULT_LOG");
    if (below)
        dbdyno_fault(below, fault ? fault : "",
                     log ? (int)syscall(SYS_openat, AT_FDCWD, log,
                                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1);
}

static void die(void) { syscall(SYS_kill, getpid(), SIGKILL); }

/* What becomes of a call on this path. */
static enum outcome at_path(const char *call, const char *path, int takes_room)
{
    char name[PATH_MAX + 32];
    if (is_paused || strncmp(path, folder, folder_length) != 0)
        return GO_ON;
    int length = snprintf(name, sizeof name, "%s %s\n", call, path + folder_length);
    if (log_handle >= 0)
        syscall(SYS_write, log_handle, name, length);
    name[length - 1] = 0;
    if (is_full && takes_room)
        return errno = ENOSPC, FAIL;
    if (!wanted_at || !strstr(name, wanted) || atomic_fetch_add(&seen, 1) + 1 != wanted_at)
        return GO_ON;
    if (!strcmp(kind, "kill"))
        die();
    if (!strcmp(kind, "stop"))
        syscall(SYS_kill, getpid(), SIGSTOP);
    if (!strcmp(kind, "eio"))
        return errno = EIO, FAIL;
    if (!strcmp(kind, "full") && (is_full = 1) && takes_room)
        return errno = ENOSPC, FAIL;
    return strcmp(kind, "torn") ? GO_ON : TEAR;
}

static enum outcome at_name(const char *call, int inside, const char *path, int takes_room)
{
    char whole[2 * PATH_MAX], link[64];
    if (!folder_length)
        return GO_ON;
    if (path[0] == '/')
        return at_path(call, path, takes_room);
    snprintf(link, sizeof link, inside == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", inside);
    ssize_t length = readlink(link, whole, PATH_MAX);
    if (length <= 0)
        return GO_ON;
    snprintf(whole + length, sizeof whole - length, "/%s", path);
    return at_path(call, whole, takes_room);
}

static enum outcome at_handle(const char *call, int handle, int takes_room)
{
    char path[PATH_MAX + 1], link[64];
    if (!folder_length)
        return GO_ON;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, PATH_MAX);
    if (length <= 0)
        return GO_ON;
    path[length] = 0;
    return at_path(call, path, takes_room);
}

/* A call of which nothing can be half done: torn is after it. */
#define WHOLE(where, ...)                          \
    do {                                           \
        enum outcome out = where;                  \
        if (out == FAIL)                           \
            return -1;                             \
        long answer = syscall(__VA_ARGS__);        \
        if (out == TEAR)                           \
            die();                                 \
        return answer;                             \
    } while (0)

static int opened(const char *call, int inside, const char *path, int flags, mode_t mode)
{
    if (!(flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)))
        return syscall(SYS_openat, inside, path, flags, mode);
    WHOLE(at_name(call, inside, path, flags & O_CREAT), SYS_openat, inside, path, flags, mode);
}

static mode_t mode_of(int flags, va_list rest)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name)                                          \
    int name(const char *path, int flags, ...)              \
    {                                                       \
        va_list rest;                                       \
        va_start(rest, flags);                              \
        mode_t mode = mode_of(flags, rest);                 \
        va_end(rest);                                       \
        return opened("open", AT_FDCWD, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                       \
    int name(int inside, const char *path, int flags, ...) \
    {                                                      \
        va_list rest;                                      \
        va_start(rest, flags);                             \
        mode_t mode = mode_of(flags, rest);                \
        va_end(rest);                                      \
        return opened("open", inside, path, flags, mode);  \
    }
OPENAT(openat)
OPENAT(openat64)

static ssize_t written(int handle, const void *bytes, size_t count, long long at)
{
    enum outcome out = at_handle("write", handle, 1);
    if (out == FAIL)
        return -1;
    if (out == TEAR)
        count /= 2;
    ssize_t answer = at < 0 ? syscall(SYS_write, handle, bytes, count)
                            : syscall(SYS_pwrite64, handle, bytes, count, at);
    if (out == TEAR)
        die();
    return answer;
}

ssize_t write(int handle, const void *bytes, size_t count)
{
    return written(handle, bytes, count, -1);
}

ssize_t pwrite(int handle, const void *bytes, size_t count, off_t at)
{
    return written(handle, bytes, count, at);
}

ssize_t pwrite64(int handle, const void *bytes, size_t count, off64_t at)
{
    return written(handle, bytes, count, at);
}

ssize_t writev(int handle, const struct iovec *parts, int count)
{
    WHOLE(at_handle("write", handle, 1), SYS_writev, handle, parts, count);
}

static ssize_t sent(int to, int from, off64_t *at, size_t count)
{
    enum outcome out = at_handle("write", to, 1);
    if (out == FAIL)
        return -1;
    ssize_t answer = syscall(SYS_sendfile, to, from, at, out == TEAR ? count / 2 : count);
    if (out == TEAR)
        die();
    return answer;
}

ssize_t sendfile(int to, int from, off_t *at, size_t count) { return sent(to, from, at, count); }
ssize_t sendfile64(int to, int from, off64_t *at, size_t count) { return sent(to, from, at, count); }

int fsync(int handle) { WHOLE(at_handle("fsync", handle, 0), SYS_fsync, handle); }
int fdatasync(int handle) { WHOLE(at_handle("fsync", handle, 0), SYS_fdatasync, handle); }
int syncfs(int handle) { WHOLE(at_handle("syncfs", handle, 0), SYS_syncfs, handle); }

int ftruncate(int handle, off_t size)
{
    WHOLE(at_handle("truncate", handle, 0), SYS_ftruncate, handle, size);
}

int ftruncate64(int handle, off64_t size)
{
    WHOLE(at_handle("truncate", handle, 0), SYS_ftruncate, handle, size);
}

static int reserved(int handle, off64_t at, off64_t size)
{
    enum outcome out = at_handle("reserve", handle, 1);
    if (out == FAIL)
        return errno;
    int answer = syscall(SYS_fallocate, handle, 0, at, size) ? errno : 0;
    if (out == TEAR)
        die();
    return answer;
}

int posix_fallocate(int handle, off_t at, off_t size) { return reserved(handle, at, size); }
int posix_fallocate64(int handle, off64_t at, off64_t size) { return reserved(handle, at, size); }

int rename(const char *from, const char *to)
{
    WHOLE(at_name("rename", AT_FDCWD, to, 0), SYS_rename, from, to);
}

int renameat(int from_inside, const char *from, int to_inside, const char *to)
{
    WHOLE(at_name("rename", to_inside, to, 0), SYS_renameat, from_inside, from, to_inside, to);
}

int unlink(const char *path) { WHOLE(at_name("unlink", AT_FDCWD, path, 0), SYS_unlink, path); }

int unlinkat(int inside, const char *path, int flags)
{
    const char *call = flags & AT_REMOVEDIR ? "rmdir" : "unlink";
    WHOLE(at_name(call, inside, path, 0), SYS_unlinkat, inside, path, flags);
}

int rmdir(const char *path) { WHOLE(at_name("rmdir", AT_FDCWD, path, 0), SYS_rmdir, path); }

int mkdir(const char *path, mode_t mode)
{
    WHOLE(at_name("mkdir", AT_FDCWD, path, 1), SYS_mkdir, path, mode);
}

int mkdirat(int inside, const char *path, mode_t mode)
{
    WHOLE(at_name("mkdir", inside, path, 1), SYS_mkdirat, inside, path, mode);
}

int fchmod(int handle, mode_t mode)
{
    WHOLE(at_handle("chmod", handle, 0), SYS_fchmod, handle, mode);
}

int chmod(const char *path, mode_t mode)
{
    WHOLE(at_name("chmod", AT_FDCWD, path, 0), SYS_chmod, path, mode);
}

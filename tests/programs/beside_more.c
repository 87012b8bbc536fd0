/* More calls with memory on a page of which other bytes are in use by an unfinished copy (see
 * beside.c): names of files and programs, settings, and objects that threads wait for. */
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "beside.h"

/* ---- names ---- */

static char *put(void *p, const char *text) {
    return strcpy(p, text);
}
static long do_open(void *p) {
    int fd = open(put(p, "/dev/null"), O_RDONLY);
    return fd >= 0 ? close(fd) : -1;
}
static long do_openat(void *p) {
    int fd = openat(AT_FDCWD, put(p, "/dev/null"), O_RDONLY);
    return fd >= 0 ? close(fd) : -1;
}
static long do_fopen(void *p) {
    FILE *f = fopen(put(p, "/dev/null"), "r");
    return f ? fclose(f) : -1;
}
static long do_opendir(void *p) {
    DIR *d = opendir(put(p, "/"));
    return d ? closedir(d) : -1;
}
static long do_access(void *p) {
    return access(put(p, "/dev/null"), R_OK);
}
static long do_faccessat(void *p) {
    return faccessat(AT_FDCWD, put(p, "/dev/null"), R_OK, 0);
}
static long do_stat(void *p) {
    struct stat s;
    return stat(put(p, "/dev/null"), &s);
}
static long do_statvfs(void *p) {
    return statvfs("/", p);
}
static long do_statfs(void *p) {
    return statfs("/", p);
}
static long do_fstatfs(void *p) {
    return fstatfs(file, p);
}
static long do_directory(void *p) {
    char *other = (char *)p + 256;
    snprintf(p, 256, "beside-a-%d", (int)getpid());
    snprintf(other, 256, "beside-b-%d", (int)getpid());
    return mkdir(p, 0700) || rename(p, other) || rmdir(other);
}
static long do_links(void *p) {
    char *other = (char *)p + 256, *third = (char *)p + 400;
    snprintf(p, 256, "beside-a-%d", (int)getpid());
    snprintf(other, 100, "beside-b-%d", (int)getpid());
    snprintf(third, 100, "beside-c-%d", (int)getpid());
    int fd = creat(p, 0600);
    return fd < 0 || close(fd) || link(p, other) || symlink(p, third) || truncate(p, 0) ||
           chmod(p, 0400) || unlink(p) || unlink(other) || remove(third);
}
static long do_getcwd(void *p) {
    return getcwd(p, PART) != NULL;
}
static long do_chdir(void *p) {
    return chdir(put(p, "."));
}
static long do_realpath(void *p) {
    char *r = realpath(put(p, "/dev/../dev/null"), NULL);
    long same = r && !strcmp(r, "/dev/null");
    free(r);
    return same;
}
static long do_memfd(void *p) {
    int fd = memfd_create(put(p, "beside"), 0);
    return fd >= 0 ? close(fd) : -1;
}
static long do_utimensat(void *p) {
    struct timespec *t = p;
    t[0] = t[1] = (struct timespec){ 1, 2 };
    return futimens(file, t);
}
static long do_getxattr(void *p) {
    long n = fgetxattr(file, "user.none", p, PART);
    return n < 0 && (errno == ENODATA || errno == EOPNOTSUPP) ? 0 : -1;
}
static long do_setname(void *p) {
    return pthread_setname_np(pthread_self(), put(p, "beside"));
}
static long do_prctl(void *p) {
    return prctl(PR_SET_NAME, put(p, "beside"), 0, 0, 0) || prctl(PR_GET_NAME, p, 0, 0, 0) ||
           strcmp(p, "beside") != 0;
}

/* ---- programs ---- */

static long status_of(pid_t child) {
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : -1;
}
static long do_system(void *p) {
    return WEXITSTATUS(system(put(p, "exit 5")));
}
static long do_popen(void *p) {
    FILE *f = popen(put(p, "exit 6"), "r");
    return f ? WEXITSTATUS(pclose(f)) : -1;
}
static long do_spawn(void *p) {
    char **argv = (char **)((char *)p + 256);
    pid_t *child = (pid_t *)((char *)p + 400);
    argv[0] = put(p, "/bin/sh");
    argv[1] = put((char *)p + 64, "-c");
    argv[2] = put((char *)p + 80, "exit 8");
    argv[3] = NULL;
    return posix_spawn(child, p, NULL, NULL, argv, environ) ? -1 : status_of(*child);
}
/* In the child nobody waits for the copy: its own memory is open. */
static long do_execv(void *p) {
    pid_t child = fork();
    if (child == 0) {
        char **argv = (char **)((char *)p + 256);
        argv[0] = put(p, "/bin/sh");
        argv[1] = put((char *)p + 64, "-c");
        argv[2] = put((char *)p + 80, "exit 9");
        argv[3] = NULL;
        execv(p, argv);
        _exit(1);
    }
    return status_of(child);
}
static long do_vfork(void *p) {
    char *const argv[] = { put(p, "/bin/sh"), put((char *)p + 64, "-c"),
                           put((char *)p + 80, "exit 10"), NULL };
    pid_t child = vfork();
    if (child == 0) {
        execv(p, argv);
        _exit(1);
    }
    return status_of(child);
}
static long do_child(void *p) {
    ((unsigned char *)p)[5] = 11;
    pid_t child = fork();
    if (child == 0) {
        ((unsigned char *)p)[6] = 1;
        int fd = open("/dev/zero", O_RDONLY);
        _exit(read(fd, p, 4) == 4 ? ((unsigned char *)p)[5] : 1);
    }
    return status_of(child);
}

/* ---- settings ---- */

static long do_fcntl(void *p) {
    struct flock *l = p;
    *l = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    return fcntl(file, F_SETLK, l) || fcntl(file, F_GETLK, l);
}
static long do_sigaction(void *p) {
    struct sigaction *a = p;
    memset(a, 0, sizeof *a);
    a->sa_handler = SIG_IGN;
    return sigaction(SIGUSR1, a, NULL) || sigaction(SIGUSR1, NULL, a) || a->sa_handler != SIG_IGN;
}
static long do_sigmask(void *p) {
    sigset_t *set = p;
    sigemptyset(set);
    sigaddset(set, SIGUSR2);
    return sigprocmask(SIG_BLOCK, set, set + 1) || pthread_sigmask(SIG_UNBLOCK, set, set + 1) ||
           !sigismember(set + 1, SIGUSR2) || sigpending(set);
}
static long do_sigaltstack(void *p) {
    return sigaltstack(NULL, p);
}
static long do_clock_nanosleep(void *p) {
    struct timespec *t = p;
    *t = (struct timespec){ 0, 1000 };
    return clock_nanosleep(CLOCK_MONOTONIC, 0, t, t + 1);
}
static long do_clocks(void *p) {
    return gettimeofday(p, NULL) || clock_gettime(CLOCK_MONOTONIC, p) || times(p) == -1;
}
static long do_itimer(void *p) {
    struct itimerval *t = p;
    memset(t, 0, 2 * sizeof *t);
    return setitimer(ITIMER_REAL, t, t + 1) || getitimer(ITIMER_REAL, t);
}
static long do_timer(void *p) {
    timer_t *timer = (timer_t *)((char *)p + 256);
    struct sigevent *e = p;
    memset(e, 0, sizeof *e);
    e->sigev_notify = SIGEV_NONE;
    if (timer_create(CLOCK_MONOTONIC, e, timer))
        return -1;
    struct itimerspec *t = p;
    memset(t, 0, 2 * sizeof *t);
    return timer_settime(*timer, 0, t, t + 1) || timer_gettime(*timer, t) || timer_delete(*timer);
}
static long do_timerfd(void *p) {
    struct itimerspec *t = p;
    memset(t, 0, 2 * sizeof *t);
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    return timerfd_settime(fd, 0, t, t + 1) || timerfd_gettime(fd, t) || close(fd);
}
static long do_affinity(void *p) {
    cpu_set_t *set = p;
    return sched_getaffinity(0, sizeof *set, set) || sched_setaffinity(0, sizeof *set, set) ||
           pthread_getaffinity_np(pthread_self(), sizeof *set, set);
}
static long do_sched(void *p) {
    struct sched_param *s = p;
    return sched_getparam(0, s) || sched_setscheduler(0, SCHED_OTHER, s) ||
           sched_rr_get_interval(0, p);
}
static long do_limits(void *p) {
    return getrlimit(RLIMIT_NOFILE, p) || setrlimit(RLIMIT_NOFILE, p) ||
           prlimit(0, RLIMIT_NOFILE, NULL, p);
}
static long do_getgroups(void *p) {
    return getgroups(PART / 4, p) < 0;
}
static long do_ids(void *p) {
    uid_t *id = p;
    return getresuid(id, id + 1, id + 2) || getresgid(id, id + 1, id + 2);
}
static long do_sysinfo(void *p) {
    return sysinfo(p);
}
static long do_gethostname(void *p) {
    return gethostname(p, PART);
}
static long do_mincore(void *p) {
    return mincore((void *)((uintptr_t)pipe_fd & ~(uintptr_t)4095), 4096, p);
}
static long do_socketpair(void *p) {
    int *fd = p;
    return socketpair(AF_UNIX, SOCK_STREAM, 0, fd) || close(fd[0]) || close(fd[1]);
}
static long do_getaddress(void *p) {
    socklen_t *n = (socklen_t *)((char *)p + 256);
    *n = 128;
    return getsockname(pair[0], p, n);
}

/* ---- files ---- */

static long do_sendfile(void *p) {
    char out[8];
    off_t *at = p;
    *at = 4;
    return sendfile(pipe_fd[1], file, at, 4) == 4 && *at == 8 ? read(pipe_fd[0], out, 4) : -1;
}
static long do_splice(void *p) {
    char out[8];
    off64_t *at = p;
    *at = 4;
    return splice(file, at, pipe_fd[1], NULL, 4, 0) == 4 && *at == 8 ? read(pipe_fd[0], out, 4)
                                                                     : -1;
}
static long do_copy_file_range(void *p) {
    off64_t *at = p;
    at[0] = 0, at[1] = 600;
    long n = copy_file_range(file, at, file, at + 1, 4, 0);
    return n == 4 ? at[1] : -1;
}
static long do_vmsplice(void *p) {
    char out[8];
    struct iovec v = { put(p, "abcd"), 4 };
    return vmsplice(pipe_fd[1], &v, 1, 0) == 4 && read(pipe_fd[0], out, 4) == 4
               ? memcmp(out, "abcd", 4)
               : -1;
}
static long do_pwritev2(void *p) {
    struct iovec v = { p, PART };
    return pwritev2(file, &v, 1, 0, 0);
}
/* The stream writes the text as it is. */
static long do_fputs(void *p) {
    FILE *f = fdopen(dup(file), "w");
    setvbuf(f, NULL, _IONBF, 0);
    long r = fputs(put(p, "text"), f) >= 0 && fprintf(f, "%s", (char *)p) == 4;
    return fclose(f) ? -1 : r;
}
/* Its own memory is on the page. */
static long do_setvbuf(void *p) {
    char line[16];
    FILE *f = fdopen(dup(file), "w+");
    setvbuf(f, p, _IOFBF, PART);
    long r = fputs("text\n", f) >= 0 && fflush(f) == 0;
    rewind(f);
    r = r && fgets(line, sizeof line, f) && !strcmp(line, "text\n");
    return fclose(f) ? -1 : r;
}
static long do_aio(void *p) {
    struct aiocb request = { .aio_fildes = file, .aio_buf = p, .aio_nbytes = PART };
    const struct aiocb *list[] = { &request };
    if (aio_read(&request))
        return -1;
    while (aio_error(&request) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    return aio_error(&request) ? -1 : aio_return(&request);
}
static long do_semop(void *p) {
    int id = semget(IPC_PRIVATE, 1, 0600);
    if (id < 0)
        return 0;
    struct sembuf *op = p;
    *op = (struct sembuf){ 0, 1, 0 };
    long r = semop(id, op, 1);
    semctl(id, 0, IPC_RMID);
    return r;
}

/* ---- a call that begins before the copy ---- */

static _Atomic pid_t reader;

static void *read_there(void *p) {
    reader = gettid();
    return (void *)(intptr_t)read(pipe_fd[0], p, 4);
}

/* Is the thread asleep? What it sleeps in is the read. */
static bool is_asleep(pid_t thread) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *f = thread ? fopen(path, "r") : NULL;
    bool asleep = f && fgets(text, sizeof text, f) && strstr(text, ") S ");
    if (f)
        fclose(f);
    return asleep;
}

static long do_blocked(void *p) {
    pthread_t t;
    void *n;
    CHECK(hipStreamSynchronize(stream));
    if (pthread_create(&t, NULL, read_there, p))
        return -1;
    while (!is_asleep(reader))
        sched_yield();
    CHECK(hipMemcpyAsync(page, device, USED, hipMemcpyDeviceToHost, stream));
    if (write(pipe_fd[1], "abcd", 4) != 4 || pthread_join(t, &n))
        return -1;
    return (intptr_t)n == 4 ? memcmp(p, "abcd", 4) : -1;
}

/* ---- objects of threads, with a thread that comes later ---- */

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_barrier_t barrier;
    pthread_rwlock_t rw;
    sem_t sem;
    int go;
};
_Static_assert(sizeof(struct shared) <= 512, "must fit beside the copy");

static void later(void) {
    struct timespec t = { .tv_nsec = 20000000 };
    nanosleep(&t, NULL);
}
static void *post(void *p) {
    return later(), sem_post(&((struct shared *)p)->sem), NULL;
}
static void *signal_it(void *p) {
    struct shared *s = p;
    later();
    pthread_mutex_lock(&s->mutex);
    s->go = 1;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}
static void *hold(void *p) {
    struct shared *s = p;
    pthread_mutex_lock(&s->mutex);
    sem_post(&s->sem);
    later();
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}
static void *hold_rw(void *p) {
    struct shared *s = p;
    pthread_rwlock_wrlock(&s->rw);
    sem_post(&s->sem);
    later();
    pthread_rwlock_unlock(&s->rw);
    return NULL;
}
static void *meet(void *p) {
    return later(), pthread_barrier_wait(&((struct shared *)p)->barrier), NULL;
}

static long with_thread(void *p, void *(*other)(void *), long (*here)(struct shared *)) {
    struct shared *s = p;
    pthread_t t;
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->cond, NULL);
    pthread_barrier_init(&s->barrier, NULL, 2);
    pthread_rwlock_init(&s->rw, NULL);
    sem_init(&s->sem, 0, 0);
    if (pthread_create(&t, NULL, other, s))
        return -1;
    long r = here(s);
    return pthread_join(t, NULL) ? -1 : r;
}
static long wait_sem(struct shared *s) {
    return sem_wait(&s->sem);
}
static long wait_sem_until(struct shared *s) {
    struct timespec *t = (struct timespec *)(s + 1);
    clock_gettime(CLOCK_REALTIME, t);
    t->tv_sec += 100;
    return sem_timedwait(&s->sem, t);
}
static long wait_cond(struct shared *s) {
    pthread_mutex_lock(&s->mutex);
    while (!s->go)
        pthread_cond_wait(&s->cond, &s->mutex);
    return pthread_mutex_unlock(&s->mutex);
}
static long wait_mutex(struct shared *s) {
    sem_wait(&s->sem);
    return pthread_mutex_lock(&s->mutex) || pthread_mutex_unlock(&s->mutex);
}
static long wait_rw(struct shared *s) {
    sem_wait(&s->sem);
    return pthread_rwlock_rdlock(&s->rw) || pthread_rwlock_unlock(&s->rw);
}
static long wait_barrier(struct shared *s) {
    int r = pthread_barrier_wait(&s->barrier);
    return r && r != PTHREAD_BARRIER_SERIAL_THREAD;
}
static long do_sem_wait(void *p) {
    return with_thread(p, post, wait_sem);
}
static long do_sem_timedwait(void *p) {
    return with_thread(p, post, wait_sem_until);
}
static long do_cond_wait(void *p) {
    return with_thread(p, signal_it, wait_cond);
}
static long do_mutex(void *p) {
    return with_thread(p, hold, wait_mutex);
}
static long do_rwlock(void *p) {
    return with_thread(p, hold_rw, wait_rw);
}
static long do_barrier(void *p) {
    return with_thread(p, meet, wait_barrier);
}

#define EACH(F)                                                                                    \
    F(open)                                                                                        \
    F(openat)                                                                                      \
    F(fopen)                                                                                       \
    F(opendir)                                                                                     \
    F(access)                                                                                      \
    F(faccessat)                                                                                   \
    F(stat)                                                                                        \
    F(statvfs)                                                                                     \
    F(statfs)                                                                                      \
    F(fstatfs)                                                                                     \
    F(directory)                                                                                   \
    F(links)                                                                                       \
    F(getcwd)                                                                                      \
    F(chdir)                                                                                       \
    F(realpath)                                                                                    \
    F(memfd)                                                                                       \
    F(utimensat)                                                                                   \
    F(getxattr)                                                                                    \
    F(setname)                                                                                     \
    F(prctl)                                                                                       \
    F(system)                                                                                      \
    F(popen)                                                                                       \
    F(spawn)                                                                                       \
    F(execv)                                                                                       \
    F(vfork)                                                                                       \
    F(child)                                                                                       \
    F(fcntl)                                                                                       \
    F(sigaction)                                                                                   \
    F(sigmask)                                                                                     \
    F(sigaltstack)                                                                                 \
    F(clock_nanosleep)                                                                             \
    F(clocks)                                                                                      \
    F(itimer)                                                                                      \
    F(timer)                                                                                       \
    F(timerfd)                                                                                     \
    F(affinity)                                                                                    \
    F(sched)                                                                                       \
    F(limits)                                                                                      \
    F(getgroups)                                                                                   \
    F(ids)                                                                                         \
    F(sysinfo)                                                                                     \
    F(gethostname)                                                                                 \
    F(mincore)                                                                                     \
    F(socketpair)                                                                                  \
    F(getaddress)                                                                                  \
    F(sendfile)                                                                                    \
    F(splice)                                                                                      \
    F(copy_file_range)                                                                             \
    F(vmsplice)                                                                                    \
    F(pwritev2)                                                                                    \
    F(fputs)                                                                                       \
    F(setvbuf)                                                                                     \
    F(aio)                                                                                         \
    F(semop)                                                                                       \
    F(blocked)                                                                                     \
    F(sem_wait)                                                                                    \
    F(sem_timedwait)                                                                               \
    F(cond_wait)                                                                                   \
    F(mutex)                                                                                       \
    F(rwlock)                                                                                      \
    F(barrier)

BESIDE_MAIN(EACH)

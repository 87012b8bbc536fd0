/* matrix_run.c - starts runs, watches them, ends those that take too long.
 *
 * Every run is a process group of its own, and processes that leave the group are found through
 * their parents (tree.h), so that exactly the processes of a run can be ended. The first process of
 * a recorded run is `greta_audit run`: at the time limit the processes that it has started are
 * ended, and it remains to judge the recording. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_tree.h"
#include "tools/audit/cmd.h"
#include "tools/audit/matrix.h"
#include "tools/audit/tree.h"

enum { GRACE_S = 5, JUDGING_S = 3600, TICK_MS = 500, LOOK_AGAIN_MS = 100 };

struct job {
    pid_t pid; /* 0: free; also its process group */
    struct matrix_run *run;
    uint64_t start, deadline; /* clock_now_ns() */
    enum { RUNNING, ASKED_TO_END, KILLED } phase;
    bool late;
};

struct work {
    struct matrix *m;
    struct matrix_progress progress;
    struct job *jobs;
    unsigned running;
    size_t next; /* the first run that was not looked at yet */
    sigset_t signals, before;
    bool kept_one; /* --keep failed keeps the first recording, for the report */
    int code;      /* -1: fine so far */
};

/* ---- starting ---- */

static void set_variable(void *user, const char *name, const char *value) {
    (void)user;
    if (value ? setenv(name, value, 1) : unsetenv(name))
        _exit(127);
}

static bool redirect(const char *path, int flags, int to) {
    int fd = open(path, flags, 0666);
    bool done = fd >= 0 && dup2(fd, to) == to;
    if (fd >= 0 && fd != to)
        close(fd);
    return done;
}

/* In the child. */
static void execute(struct matrix *m, const struct matrix_run *r, char **command,
                    const sigset_t *mask, pid_t parent) {
    char out[PATH_MAX], errors[PATH_MAX];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed matrix leaves no run behind */
    if (getppid() != parent)
        _exit(127);
    sigprocmask(SIG_SETMASK, mask, NULL);
    matrix_run_path(m, r, "stdout.log", out);
    matrix_run_path(m, r, "stderr.log", errors);
    matrix_environment(m, r, set_variable, NULL);
    if (!redirect("/dev/null", O_RDONLY, STDIN_FILENO) ||
        !redirect(out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO) ||
        !redirect(errors, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, STDERR_FILENO))
        _exit(127);
    execv(r->mode->recorded ? m->self : m->program, command);
    if (errno == ENOEXEC) /* a script without #!: execvp() runs it with sh */
        execvp(command[0], command);
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static bool start(struct work *w, struct job *j, struct matrix_run *r) {
    struct err e = { 0 };
    char **command = matrix_command(w->m, r);
    if (!command)
        (void)err_set(&e, RC_MEMORY, "out of memory");
    if (command && matrix_store_prepare(w->m, r, &e) == RC_OK) {
        pid_t self = getpid();
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            execute(w->m, r, command, &w->before, self);
        if (child > 0) {
            setpgid(child, child); /* in both processes, whichever runs first */
            uint64_t now = clock_now_ns();
            *j = (struct job){ .pid = child,
                               .run = r,
                               .start = now,
                               .deadline = now + (uint64_t)(w->m->o.timeout * 1e9) };
            w->running++;
            matrix_progress_show(&w->progress, w->m, r);
            return true;
        }
        (void)err_set(&e, RC_IO, "cannot start a process: %s", strerror(errno));
    }
    matrix_say("%s", e.msg);
    w->code = EXIT_REFUSED;
    return false;
}

/* ---- ending ---- */

static void end_late(struct job *j, double limit) {
    bool recorded = j->run->mode->recorded;
    uint64_t now = clock_now_ns();
    if (now < j->deadline)
        return;
    switch (j->phase) {
    case RUNNING:
        j->late = tree_signal(j->pid, !recorded, 0, SIGTERM) > 0;
        /* If there was no process to signal, the program has not started yet or is being judged. */
        j->deadline = now + (j->late ? GRACE_S * UINT64_C(1000) : LOOK_AGAIN_MS) * 1000000;
        if (j->late)
            j->phase = ASKED_TO_END;
        else if (now - j->start > (uint64_t)(limit * 1e9) + JUDGING_S * UINT64_C(1000000000))
            j->phase = KILLED;
        break;
    case ASKED_TO_END:
        tree_signal(j->pid, !recorded, 0, SIGKILL);
        j->phase = KILLED;
        j->deadline = now + UINT64_C(1000000000) * JUDGING_S;
        break;
    case KILLED:
        tree_kill(j->pid);
        kill(-j->pid, SIGKILL);
        j->late = true;
        j->deadline = UINT64_MAX;
    }
}

/* ---- afterwards ---- */

/* The last line that is neither blank nor from the log of copies. */
static const char *last_line(struct matrix *m, const struct matrix_run *r, const char *file) {
    char path[PATH_MAX], text[4096];
    matrix_run_path(m, r, file, path);
    FILE *f = fopen(path, "re");
    if (!f)
        return "";
    if (fseek(f, -(long)(sizeof text - 1), SEEK_END) != 0)
        rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    size_t from = n;
    do { /* the log of copies says nothing about how the run ended */
        n = from;
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
            n--;
        from = n;
        while (from > 0 && text[from - 1] != '\n')
            from--;
    } while (from > 0 && !strncmp(text + from, "[D2H", 4));
    if (!strncmp(text + from, "[D2H", 4))
        n = from;
    if (n - from > 300)
        n = from + 300;
    const char *line = arena_copy_text(&m->arena, text + from, n - from);
    return line ? line : "";
}

/* For reports: the last line of standard error, or of standard output if there is none. */
static const char *find_last_line(struct matrix *m, const struct matrix_run *r) {
    const char *line = last_line(m, r, "stderr.log");
    return *line ? line : last_line(m, r, "stdout.log");
}

static void refuse(struct work *w, const struct matrix_run *r, const char *why) {
    const char *line = find_last_line(w->m, r);
    matrix_progress_end(&w->progress);
    matrix_say("%s: %s%s%s", r->id, why, *line ? ": " : "", line);
    w->code = EXIT_REFUSED;
}

static enum matrix_end classify(const struct matrix_run *r, bool late, const char *verdict) {
    if (late)
        return MATRIX_TIMEOUT;
    if (r->signal)
        return MATRIX_SIGNAL;
    if (r->exit_status)
        return MATRIX_FAILED;
    if (!r->mode->recorded)
        return MATRIX_PASSED;
    if (!strcmp(verdict, "FINDINGS") || !strcmp(verdict, "ROOT_CAUSE"))
        return MATRIX_BUGS;
    return !strcmp(verdict, "CLEAN") || !strcmp(verdict, "NOT_REPRODUCED") ? MATRIX_PASSED
                                                                           : MATRIX_UNJUDGED;
}

/* False if the matrix cannot go on. */
static bool judge(struct work *w, struct matrix_run *r, bool late) {
    struct matrix *m = w->m;
    char path[PATH_MAX], verdict[32] = "";
    json_tree *t = NULL;
    matrix_run_path(m, r, "record.gcr", path);
    if (r->mode->recorded && access(path, F_OK) != 0) {
        refuse(w, r, "it could not be run");
        return false;
    }
    matrix_run_path(m, r, "report.json", path);
    if (json_tree_open_file(&t, path, NULL) == RC_OK) {
        const struct json_node *root = json_tree_root(t);
        snprintf(verdict, sizeof verdict, "%s", json_tree_text(root, "verdict"));
        bool stale = false;
        const struct json_node *all = json_tree_get(root, "hypotheses");
        for (const struct json_node *h = all ? all->first : NULL; h; h = h->next)
            stale |= !strcmp(json_tree_text(h, "name"), hypothesis_name(HYPOTHESIS_STALE_BINARY)) &&
                     !strcmp(json_tree_text(h, "status"), "CONFIRMED");
        if (stale)
            refuse(w, r, json_tree_text(root, "answer"));
        json_tree_close(&t);
        if (stale)
            return false;
    }
    if (!m->o.command && !r->signal && !late && (r->exit_status == 2 || r->exit_status == 3)) {
        refuse(w, r, "greta_infer refused to run");
        return false;
    }
    if (!r->mode->recorded && r->exit_status == 127 && access(m->program, X_OK) != 0) {
        refuse(w, r, "it could not be run");
        return false;
    }
    r->end = classify(r, late, verdict);
    return true;
}

static void finish(struct work *w, struct job *j, int status) {
    struct matrix_run *r = j->run;
    struct err e = { 0 };
    j->pid = 0;
    w->running--;
    if (w->code >= 0)
        return;
    r->seconds = (double)(clock_now_ns() - j->start) / 1e9;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (r->mode->recorded && r->exit_status > 128 && r->exit_status <= 128 + SIGRTMAX) {
        r->signal = r->exit_status - 128; /* as `greta_audit run` passes it on */
        r->exit_status = 0;
    }
    if (!judge(w, r, j->late))
        return;
    r->last_line = r->end == MATRIX_PASSED ? "" : find_last_line(w->m, r);
    if (matrix_store_run(w->m, r, &e) != RC_OK) {
        matrix_say("%s", e.msg);
        w->code = EXIT_REFUSED;
        return;
    }
    if (w->m->o.keep_failed && r->end == MATRIX_PASSED && (w->kept_one || !r->mode->recorded))
        matrix_store_thin(w->m, r);
    w->kept_one |= r->mode->recorded;
    w->progress.done++;
    w->progress.errors += matrix_end_is_error(r->end);
    matrix_progress_show(&w->progress, w->m, NULL);
}

/* ---- all of them ---- */

static void reap(struct work *w) {
    for (unsigned i = 0; i < w->m->o.jobs; i++) {
        struct job *j = &w->jobs[i];
        siginfo_t info = { .si_pid = 0 };
        int status;
        if (!j->pid || waitid(P_PID, (id_t)j->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid != j->pid)
            continue;
        kill(-j->pid,
             SIGKILL); /* processes that it started; its pid cannot be reused before it is reaped */
        if (waitpid(j->pid, &status, 0) == j->pid)
            finish(w, j, status);
    }
}

static struct matrix_run *next_run(struct work *w) {
    while (w->next < w->m->run_count) {
        struct matrix_run *r = &w->m->runs[w->next++];
        if (!r->done)
            return r;
    }
    return NULL;
}

static void fill_jobs(struct work *w) {
    struct matrix_run *r;
    for (unsigned i = 0; i < w->m->o.jobs && w->code < 0; i++)
        if (!w->jobs[i].pid && (!(r = next_run(w)) || !start(w, &w->jobs[i], r)))
            return;
}

/* Waits until something has happened; returns a signal that says to stop, or 0. */
static int wait_for_news(struct work *w) {
    uint64_t now = clock_now_ns(), until = now + TICK_MS * UINT64_C(1000000);
    for (unsigned i = 0; i < w->m->o.jobs; i++)
        if (w->jobs[i].pid && w->jobs[i].deadline < until)
            until = w->jobs[i].deadline;
    uint64_t left = until > now ? until - now : 0;
    struct timespec step = { (time_t)(left / 1000000000), (long)(left % 1000000000) };
    int number = sigtimedwait(&w->signals, NULL, &step);
    for (unsigned i = 0; i < w->m->o.jobs; i++)
        if (w->jobs[i].pid)
            end_late(&w->jobs[i], w->m->o.timeout);
    return number == SIGINT || number == SIGTERM || number == SIGHUP ? number : 0;
}

/* Ends the runs that are in progress; they do not count as done. */
static void stop(struct work *w) {
    char path[PATH_MAX];
    for (unsigned i = 0; i < w->m->o.jobs; i++) {
        struct job *j = &w->jobs[i];
        if (!j->pid)
            continue;
        tree_kill(j->pid);
        kill(-j->pid, SIGKILL);
        while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        matrix_run_path(w->m, j->run, "", path);
        matrix_remove_folder(path);
        j->pid = 0;
        w->running--;
    }
}

int matrix_run_all(struct matrix *m, int *interrupted) {
    static const int heard[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
    struct work w = { .m = m, .code = -1 };
    *interrupted = 0;
    w.jobs = arena_alloc_array(&m->arena, m->o.jobs, sizeof *w.jobs);
    if (!w.jobs) {
        matrix_say("out of memory");
        return EXIT_REFUSED;
    }
    sigemptyset(&w.signals);
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++)
        sigaddset(&w.signals, heard[i]);
    signal(SIGCHLD, SIG_DFL); /* if it were ignored, there would be no exit status */
    sigprocmask(SIG_BLOCK, &w.signals, &w.before);
    for (size_t i = 0; i < m->run_count; i++)
        w.kept_one |= m->runs[i].done && m->runs[i].mode->recorded;
    matrix_progress_begin(&w.progress, m);
    for (;;) {
        fill_jobs(&w);
        if (w.code >= 0 || !w.running)
            break;
        *interrupted = wait_for_news(&w);
        reap(&w);
        if (*interrupted)
            break;
        matrix_progress_show(&w.progress, m, NULL);
    }
    stop(&w);
    matrix_progress_end(&w.progress);
    return w.code;
}

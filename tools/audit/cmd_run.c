/* greta_audit run - records an unmodified program, and judges the recording.
 *
 * The program is started with libgcore_preload.so in front of its HIP runtime and, where there is
 * no GPU or `--device soft` says so, with the software device as that runtime. The recording is
 * opened here and joined by the program and by whatever it starts: a shell script that runs three
 * programs is one recording. Output and exit status stay the program's own. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/folder.h"
#include "hip/hip_api.h"
#include "record/reader.h"
#include "record/writer.h"
#include "symbol/lines.h"
#include "tools/audit/cmd.h"
#include "tools/audit/find.h"
#include "tools/audit/judge.h"
#include "tools/audit/kind.h"
#include "tools/audit/tree.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/audit/run.def"
    char **command;
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/audit/run.def"
};

const struct option_table cmd_run_options = {
    .name = "greta_audit run",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .first_ends = true,
    .before =
        "Usage: greta_audit run [options] -- COMMAND [ARGUMENT…]\n"
        "\n"
        "Runs a HIP program, records what it does with the device, and says what went wrong.\n"
        "The program's output and exit status stay its own.\n"
        "\n",
    .after =
        "\n"
        "Without --exit-code, a program that was ended by signal N gives 128 + N, as in a shell.\n"
        "Exits with 3 in any case if the program is not the expected one, and with 1 if a report\n"
        "could not be written or events were lost because the disk was full.\n"
        "The recording takes 64 bytes per event, 1 GiB at most: then the oldest events are\n"
        "overwritten, unless GCORE_RECORD_EVENTS allows more of them.\n"
        "The time limit, Ctrl-C and SIGTERM end everything that the program has started; what is\n"
        "still running after 5 seconds gets SIGTERM, then SIGKILL.\n",
};

#define say(...) option_say(&cmd_run_options, __VA_ARGS__)

/* ---- what is needed -------------------------------------------------------------------------- */

/* -1: fine. */
static int choose_device(struct find_device *out, const char *wanted) {
    char why[512];
    if (!wanted)
        wanted = env_text(ENV_GRETA_DEVICE);
    bool found = strcmp(wanted, "soft") != 0 && find_device(out, "hip", why);
    if (!found && (strcmp(wanted, "soft") == 0 || strcmp(wanted, "auto") == 0))
        found = find_device(out, "soft", why);
    if (found)
        return -1;
    say("%s", why);
    return EXIT_REFUSED;
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* --out as it is, else artifacts/DATE/NAME, or NAME-2 and so on if that is taken. */
static int make_folder(char out[static PATH_MAX], const struct options *o) {
    if (o->out) {
        snprintf(out, PATH_MAX, "%s", o->out);
        if (folder_make(out))
            return -1;
        say("cannot create the folder %s: %s", out, strerror(errno));
        return EXIT_FOUND;
    }
    const char *slash = strrchr(o->command[0], '/');
    const char *name = o->name ? o->name : slash ? slash + 1 : o->command[0];
    time_t now = time(NULL);
    struct tm tm;
    char day[32] = "", parent[64];
    if (localtime_r(&now, &tm))
        strftime(day, sizeof day, "%Y-%m-%d", &tm);
    snprintf(parent, sizeof parent, "artifacts/%s", day);
    if (folder_make(parent)) {
        for (unsigned i = 1; i < 100000; i++) {
            snprintf(out, PATH_MAX, i > 1 ? "%s/%.200s-%u" : "%s/%.200s", parent, name, i);
            if (mkdir(out, 0777) == 0)
                return -1;
            if (errno != EEXIST)
                break;
        }
    }
    say("cannot create a folder in %s: %s (--out names another)", parent, strerror(errno));
    return EXIT_FOUND;
}

/* ---- the recording --------------------------------------------------------------------------- */

static const char *fn_name(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

/* %: is special in GCORE_RECORD. */
static void escape(char *out, size_t size, const char *text) {
    size_t n = 0;
    for (; *text && n + 3 < size; text++) {
        if (*text == '%')
            out[n++] = '%';
        out[n++] = *text;
    }
    out[n] = '\0';
}

static enum rc open_recording(writer **out, const char *folder, struct err *e) {
    char path[PATH_MAX + 16], name[2 * PATH_MAX];
    struct record_options o = { 0 };
    enum rc rc = record_options_read(&o, NULL, e);
    if (rc != RC_OK)
        return rc;
    snprintf(path, sizeof path, "%s/record.gcr", folder);
    escape(name, sizeof name, path);
    o.path = name;
    o.join = 0;
    o.fn_count = HIP_FN_COUNT;
    o.fn_name = fn_name;
    return record_open(out, &o, e);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void put_in_front(enum env_id variable, const char *what) {
    const char *now = env_text(variable);
    size_t size = strlen(what) + (now ? strlen(now) : 0) + 2;
    char *text = malloc(size);
    if (!text)
        abort();
    snprintf(text, size, "%s%s%s", what, now ? ":" : "", now ? now : "");
    if (setenv(env_name(variable), text, 1))
        abort();
    free(text);
}

/* In the child: sets up the environment of the program. */
static void set_environment(const struct options *o, const struct find_device *d,
                            const char *preload, const writer *w) {
    char id[24], path[2 * PATH_MAX];
    escape(path, sizeof path, record_path(w));
    snprintf(id, sizeof id, "%016" PRIx64, record_run_id(w));
    setenv("GCORE_RECORD", path, 1);
    setenv("GCORE_RECORD_JOIN", id, 1);
    if (o->watch_host)
        setenv("GCORE_WATCH_HOST", "1", 1);
    if (d->soft) {
        setenv("GRETA_DEVICE", "soft", 1);
        put_in_front(ENV_LD_LIBRARY_PATH, d->folder);
    }
    put_in_front(ENV_LD_PRELOAD, preload);
}

/* Blocks SIGCHLD and the signals that are passed on to the program: sigtimedwait() waits for them.
 * *before is the mask that the program gets. */
static void block_signals(sigset_t *ours, sigset_t *before) {
    static const int heard[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD };
    sigemptyset(ours);
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++)
        sigaddset(ours, heard[i]);
    signal(SIGCHLD, SIG_DFL); /* if it were ignored, there would be no exit status */
    sigprocmask(SIG_BLOCK, ours, before);
}

/* -1 if it cannot be started; *problem says why. */
static pid_t start(const struct options *o, const char *file, const struct find_device *d,
                   const char *preload, const writer *w, const sigset_t *mask, int *problem) {
    int fd[2];
    *problem = 0;
    if (pipe2(fd, O_CLOEXEC) != 0) {
        *problem = errno;
        return -1;
    }
    pid_t child = fork();
    if (child < 0)
        *problem = errno;
    if (child == 0) {
        sigprocmask(SIG_SETMASK, mask, NULL);
        set_environment(o, d, preload, w);
        execv(file, o->command);
        if (errno == ENOEXEC) /* a script without #!: execvp() runs it with sh */
            execvp(o->command[0], o->command);
        int why = errno;
        _exit(write(fd[1], &why, sizeof why) == sizeof why ? 127 : 126);
    }
    close(fd[1]);
    ssize_t n;
    do
        n = child > 0 ? read(fd[0], problem, sizeof *problem) : 0;
    while (n < 0 && errno == EINTR);
    close(fd[0]);
    if (*problem && child > 0) {
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
        child = -1;
    }
    return child;
}

/* The ways in which the program was asked to end so far. */
enum { ASKED_NOT, ASKED_BY_SIGNAL, ASKED_TO_END, ASKED_BY_KILL };

struct waiting {
    pid_t child;
    int status;
    bool ended;     /* the program has ended; processes it started may still run */
    bool late;      /* the time limit was reached */
    int asked;      /* ASKED_* */
    unsigned kills; /* signals sent so far */
    uint64_t limit; /* clock_now_ns() at which it is asked the next time; UINT64_MAX: never */
};

/* Reaps the program and the orphans that this process has inherited. */
static void reap(struct waiting *w) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == w->child) {
            w->status = status;
            w->ended = true;
        }
}

/* The next, stronger signal, to everything that the run started. */
static void ask_to_end(struct waiting *w) {
    enum { GRACE_S = 5 };
    if (w->asked < ASKED_TO_END) {
        tree_signal(getpid(), false, 0, SIGTERM);
        w->asked = ASKED_TO_END;
        w->limit = clock_now_ns() + GRACE_S * UINT64_C(1000000000);
    } else {
        tree_signal(getpid(), false, 0, SIGKILL);
        w->asked = ASKED_BY_KILL;
        w->kills++;
        w->limit = clock_now_ns() + UINT64_C(10000000); /* again: one may have forked meanwhile */
    }
}

/* A signal that asks us to end is passed on to all that the run started. A signal from the terminal
 * has reached its whole foreground group already, but no daemon. A further signal is passed on as a
 * stronger one. */
static void pass_on(struct waiting *w, int number, const siginfo_t *info) {
    enum { GRACE_S = 5 };
    if (w->asked != ASKED_NOT) {
        ask_to_end(w);
        return;
    }
    tree_signal(getpid(), false, info->si_code > 0 ? getpgrp() : 0, number);
    w->asked = ASKED_BY_SIGNAL;
    w->limit = clock_now_ns() + GRACE_S * UINT64_C(1000000000);
}

/* True while a process that has to end is still there. Processes stuck in the kernel are not waited
 * for. */
static bool is_waited_for(const struct waiting *w) {
    enum { KILLS_MAX = 500 };
    return !w->ended ||
           (w->asked && w->kills < KILLS_MAX && tree_signal(getpid(), false, 0, 0) > 0);
}

/* Waits for the program; returns its wait status. Where the run is ended, by the time limit or by a
 * signal, everything that the program started ends too. */
static int wait_for(pid_t child, const sigset_t *signals, double timeout, bool *late) {
    enum { TICK_NS = 20000000 }; /* poll at the end: not every process of the tree is our child */
    struct waiting w = { .child = child, .limit = UINT64_MAX };
    if (timeout > 0)
        w.limit = clock_now_ns() + (uint64_t)(timeout * 1e9);
    for (reap(&w); is_waited_for(&w); reap(&w)) {
        uint64_t now = clock_now_ns();
        if (now >= w.limit) {
            w.late |= w.asked == ASKED_NOT;
            ask_to_end(&w);
        }
        uint64_t left = w.limit > now ? w.limit - now : 0;
        if (w.ended && left > TICK_NS)
            left = TICK_NS;
        struct timespec step = { 3600, 0 };
        if (w.limit != UINT64_MAX)
            step = (struct timespec){ (time_t)(left / 1000000000), (long)(left % 1000000000) };
        siginfo_t info;
        int number = sigtimedwait(signals, &info, &step);
        if (number > 0 && number != SIGCHLD)
            pass_on(&w, number, &info);
    }
    *late = w.late;
    return w.status;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static struct judge_options judge_options(const struct options *o, const char *recording) {
    return (struct judge_options){
        .verdict = { .recording = recording,
                     .expect_commit = o->expect_commit,
                     .expect_build_id = o->expect_build_id,
                     .expect_model_hash = o->expect_model_hash },
        .lang = o->lang,
        .perfetto = o->perfetto,
        .verbose = true,
    };
}

/* The audit's exit code. *counts: it replaces the program's own, because this was not the expected
 * binary or model, or because the recording or a report is incomplete. */
static int judge_run(const struct options *o, const char *folder, const char *path, bool *counts) {
    struct judge_options options = judge_options(o, path);
    struct err e = { 0 };
    reader *r;
    if (reader_open(&r, path, &e) != RC_OK) {
        say("%s", e.msg);
        *counts = true;
        return EXIT_FOUND;
    }
    lines_attach(r);
    bool whole;
    int code = judge_recording(r, folder, &options, o->quiet ? NULL : stderr, &whole);
    *counts = !whole || (code == EXIT_REFUSED && judge_expects(&options));
    reader_close(&r);
    return code;
}

/* How the program ended, for the verdict. */
static void record_exit(writer *w, pid_t child, int status, bool late) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)child);
    record_provenance(w, "run.pid", text);
    snprintf(text, sizeof text, "%d", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    record_provenance(w, WIFSIGNALED(status) ? "run.signal" : "run.exit", text);
    if (late)
        record_provenance(w, "run.late", "1");
}

static int program_code(const struct options *o, int status, bool late) {
    if (late)
        say("%s took longer than %g s and was ended", o->command[0], o->timeout);
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    say("%s was ended by signal %d (%s)%s", o->command[0], WTERMSIG(status),
        strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
    return 128 + WTERMSIG(status);
}

static int run(const struct options *o, const char *file, const struct find_device *d,
               const char *preload, const char *folder) {
    struct err e = { 0 };
    sigset_t signals, mask;
    writer *w = NULL;
    int problem;
    bool late;
    if (open_recording(&w, folder, &e) != RC_OK) {
        say("%s", e.msg);
        return e.rc == RC_REFUSED ? EXIT_REFUSED : EXIT_FOUND;
    }
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", record_path(w));
    record_provenance(w, "run.recorder", "greta_audit run");
    record_provenance(w, "run.device", d->soft ? "soft" : "hip");
    fflush(NULL);
    block_signals(&signals, &mask);
    tree_adopt();
    pid_t child = start(o, file, d, preload, w, &mask, &problem);
    if (child < 0) {
        record_close(&w);
        unlink(path);
        rmdir(folder); /* if it is empty */
        say("cannot run %s: %s", o->command[0], strerror(problem));
        return EXIT_REFUSED;
    }
    int status = wait_for(child, &signals, o->timeout, &late);
    record_exit(w, child, status, late);
    record_close(&w);
    int code = program_code(o, status, late);
    bool counts = false;
    int judged = judge_run(o, folder, path, &counts);
    if (counts && !judged)
        judged = EXIT_FOUND;
    return o->exit_code || counts ? judged : code;
}

int cmd_run(int argc, char **argv) {
    struct options o = { 0 };
    struct option_operands words;
    struct find_device device;
    char file[PATH_MAX], preload[PATH_MAX], folder[PATH_MAX];
    int code = option_begin(&cmd_run_options, &o, argc, argv, &words);
    if (code >= 0)
        return code;
    if (!words.count)
        return option_wrong(&cmd_run_options, "expected a program after --", NULL);
    o.command = words.words;
    if (!find_program(o.command[0], file)) {
        say("no such program: %s: %s", o.command[0], find_obstacle(o.command[0]));
        return EXIT_REFUSED;
    }
    if (!find_preload(preload) || strpbrk(preload, " :")) {
        say("expected libgcore_preload.so in ../lib beside this program, in a path without spaces "
            "and colons; build or install greta again (builds with clang's sanitizers do not have "
            "it)");
        return EXIT_REFUSED;
    }
    if ((code = choose_device(&device, o.device)) >= 0 || (code = make_folder(folder, &o)) >= 0)
        return code;
    return run(&o, file, &device, preload, folder);
}

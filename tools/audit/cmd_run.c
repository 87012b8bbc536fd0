/* greta_audit run - records a program that knows nothing of it, and judges the recording.
 *
 * The program is started with libgcore_preload.so in front of its HIP runtime and, where there is
 * no GPU or `--device soft` says so, with the software device as that runtime. The recording is
 * opened here and joined by the program and by whatever it starts: a shell script that runs three
 * programs is one recording. Output and exit status stay the program's own. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "audit/cmd.h"
#include "audit/judge.h"
#include "base/clock.h"
#include "base/env.h"
#include "hip/hip_load.h"
#include "record/reader.h"
#include "record/writer.h"

struct options {
    const char *device; /* NULL: GRETA_DEVICE, else auto */
    const char *out, *name;
    double timeout; /* seconds; 0: none */
    bool watch_host, exit_code, quiet;
    struct judge_options judge;
    char **command;
};

static const char help[] =
    "Usage: greta_audit run [options] -- COMMAND [ARGUMENT…]\n"
    "\n"
    "Runs a HIP program, records what it does with the device, and says what went wrong.\n"
    "The program's output and exit status stay its own.\n"
    "\n"
    "  --device D     hip: a GPU; soft: the software device; auto: a GPU if there is one\n"
    "  --out DIR      where recording and reports go (artifacts/DATE/NAME)\n"
    "  --name NAME    of the run, instead of the program's\n"
    "  --watch-host   catch the host's accesses to memory of unfinished copies\n"
    "  --timeout S    end the program after S seconds\n"
    "  --exit-code    end with the audit's verdict: 0 clean, 1 bugs found, 3 nothing to judge\n"
    "  --expect-commit C, --expect-build-id B, --expect-model-hash H\n"
    "                 refuse (3) to judge a run of anything else\n"
    "  --lang L       language of the Markdown report: en or es\n"
    "  --quiet        say nothing but errors\n"
    "  --help         this text\n"
    "\n"
    "Without --exit-code, a program that was ended by signal N gives 128 + N, as in a shell.\n"
    "Is the program not the expected one, the exit status is 3 in any case.\n";

enum {
    OPTION_DEVICE = 256,
    OPTION_OUT,
    OPTION_NAME,
    OPTION_WATCH,
    OPTION_TIMEOUT,
    OPTION_EXIT,
    OPTION_COMMIT,
    OPTION_BUILD,
    OPTION_MODEL,
    OPTION_LANG,
    OPTION_QUIET,
};

static const struct option long_options[] = {
    { "device", required_argument, NULL, OPTION_DEVICE },
    { "out", required_argument, NULL, OPTION_OUT },
    { "name", required_argument, NULL, OPTION_NAME },
    { "watch-host", no_argument, NULL, OPTION_WATCH },
    { "timeout", required_argument, NULL, OPTION_TIMEOUT },
    { "exit-code", no_argument, NULL, OPTION_EXIT },
    { "expect-commit", required_argument, NULL, OPTION_COMMIT },
    { "expect-build-id", required_argument, NULL, OPTION_BUILD },
    { "expect-model-hash", required_argument, NULL, OPTION_MODEL },
    { "lang", required_argument, NULL, OPTION_LANG },
    { "quiet", no_argument, NULL, OPTION_QUIET },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("greta_audit run: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

static int wrong(const char *what, const char *value) {
    say("%s%s%s; `greta_audit run --help` shows the usage", what, value ? ": " : "",
        value ? value : "");
    return EXIT_WRONG;
}

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool is_name(const char *text) {
    return *text && !strchr(text, '/') && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

/* -1: fine. */
static int expect(struct options *o, enum judge_expectation what, const char *value) {
    const char *wanted = judge_expect(&o->judge, what, value);
    char text[80];
    snprintf(text, sizeof text, "expected %s, found", wanted ? wanted : "");
    return wanted ? wrong(text, value) : -1;
}

/* One option with its value; -1: fine, otherwise the exit code. */
static int take(struct options *o, int c, const char *value) {
    static const char *const devices[] = { "auto", "hip", "soft", NULL };
    char *end = NULL;
    switch (c) {
    case OPTION_DEVICE:
        o->device = value;
        return is_one_of(value, devices) ? -1
                                         : wrong("--device wants auto, hip or soft, found", value);
    case OPTION_OUT:
        o->out = value;
        return *value ? -1 : wrong("--out wants a folder", NULL);
    case OPTION_NAME:
        o->name = value;
        return is_name(value) ? -1 : wrong("--name wants a file name, found", value);
    case OPTION_TIMEOUT:
        o->timeout = strtod(value, &end);
        return *value && !*end && o->timeout > 0 && o->timeout < 1e9
                   ? -1
                   : wrong("--timeout wants seconds, found", value);
    case OPTION_LANG:
        return lang_parse(value, &o->judge.lang) ? -1
                                                 : wrong("--lang wants en or es, found", value);
    case OPTION_COMMIT:
        return expect(o, JUDGE_COMMIT, value);
    case OPTION_BUILD:
        return expect(o, JUDGE_BUILD_ID, value);
    case OPTION_MODEL:
        return expect(o, JUDGE_MODEL_HASH, value);
    case OPTION_WATCH:
        o->watch_host = true;
        return -1;
    case OPTION_EXIT:
        o->exit_code = true;
        return -1;
    default:
        o->quiet = true;
        return -1;
    }
}

static int parse(struct options *o, int argc, char **argv) {
    int c, code = -1;
    opterr = 0;
    optind = 0; /* makes glibc start over */
    while (code < 0 && (c = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return EXIT_CLEAN;
        }
        if (c == ':')
            return wrong("option without its value", argv[optind - 1]);
        if (c == '?')
            return wrong("unknown option", argv[optind - 1]);
        code = take(o, c, optarg);
    }
    if (code >= 0)
        return code;
    if (optind >= argc)
        return wrong("name a program after --", NULL);
    o->command = argv + optind;
    return -1;
}

/* ---- what is needed ----------------------------------------------------------------------------
 */

/* The file that exec would take for the command; false if there is none. */
static bool find_command(const char *command, char out[static PATH_MAX]) {
    struct stat st;
    if (strchr(command, '/')) {
        snprintf(out, PATH_MAX, "%s", command);
        return access(out, X_OK) == 0 && stat(out, &st) == 0 && S_ISREG(st.st_mode);
    }
    const char *path = getenv("PATH");
    for (const char *p = path ? path : "/bin:/usr/bin"; *command; p++) {
        size_t n = strcspn(p, ":");
        int used = n ? snprintf(out, PATH_MAX, "%.*s/%s", (int)n, p, command)
                     : snprintf(out, PATH_MAX, "./%s", command);
        if (used > 0 && used < PATH_MAX && access(out, X_OK) == 0 && stat(out, &st) == 0 &&
            S_ISREG(st.st_mode))
            return true;
        p += n;
        if (!*p)
            break;
    }
    return false;
}

/* The library lies beside this program, in the build as in an installation. */
static bool find_preload(char out[static PATH_MAX]) {
    static const char *const beside[] = { "../lib", "." };
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(path, sizeof path, "%s/%s/libgcore_preload.so", self, beside[i]);
        if (realpath(path, out))
            return true;
    }
    return false;
}

struct device {
    bool soft;
    char library[PATH_MAX]; /* the software device's */
};

/* Asks in a process of its own: a HIP runtime that was looked at never goes away again. */
static bool probe(const char *choice, char *path, size_t size, char *why, size_t why_size) {
    struct {
        bool found;
        char path[PATH_MAX], why[512];
    } answer = { .why = "the search ended without an answer" };
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) != 0) {
        snprintf(why, why_size, "%s", strerror(errno));
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        struct hip_runtime rt;
        struct err e = { 0 };
        answer.found = hip_load(&rt, choice, &e) == RC_OK;
        snprintf(answer.path, sizeof answer.path, "%s", answer.found ? rt.path : "");
        snprintf(answer.why, sizeof answer.why, "%s", e.msg);
        _exit(write(fd[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
    }
    close(fd[1]);
    if (child > 0) {
        size_t got = 0;
        ssize_t n;
        while (got < sizeof answer &&
               ((n = read(fd[0], (char *)&answer + got, sizeof answer - got)) > 0 ||
                (n < 0 && errno == EINTR)))
            got += n > 0 ? (size_t)n : 0;
        if (got < sizeof answer)
            answer.found = false;
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(fd[0]);
    snprintf(path, size, "%s", answer.path);
    snprintf(why, why_size, "%s", answer.why);
    return answer.found;
}

/* -1: fine. */
static int choose_device(struct device *out, const char *wanted) {
    char why[512];
    if (!wanted)
        wanted = env_get_str("GRETA_DEVICE", "auto");
    if (!*wanted)
        wanted = "auto";
    *out = (struct device){ .soft = false };
    if (strcmp(wanted, "soft") != 0) {
        if (probe("hip", out->library, sizeof out->library, why, sizeof why))
            return -1;
        if (strcmp(wanted, "auto") != 0) {
            say("%s", why);
            return EXIT_REFUSED;
        }
    }
    out->soft = true;
    if (probe("soft", out->library, sizeof out->library, why, sizeof why))
        return -1;
    say("%s", why);
    return EXIT_REFUSED;
}

/* ---- the folder --------------------------------------------------------------------------------
 */

static bool make_folders(const char *path) {
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return false;
        *p = '/';
    }
    return mkdir(part, 0777) == 0 || errno == EEXIST;
}

/* --out as it is, else artifacts/DATE/NAME, or NAME-2 and so on if that is taken. */
static int make_folder(char out[static PATH_MAX], const struct options *o) {
    if (o->out) {
        snprintf(out, PATH_MAX, "%s", o->out);
        if (make_folders(out))
            return -1;
        say("cannot make the folder %s: %s", out, strerror(errno));
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
    if (make_folders(parent)) {
        for (unsigned i = 1; i < 100000; i++) {
            snprintf(out, PATH_MAX, i > 1 ? "%s/%.200s-%u" : "%s/%.200s", parent, name, i);
            if (mkdir(out, 0777) == 0)
                return -1;
            if (errno != EEXIST)
                break;
        }
    }
    say("cannot make a folder in %s: %s (--out names another)", parent, strerror(errno));
    return EXIT_FOUND;
}

/* ---- the recording -----------------------------------------------------------------------------
 */

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
    enum rc rc = record_options_read(&o, e);
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

/* ---- the program -------------------------------------------------------------------------------
 */

static void put_in_front(const char *variable, const char *what) {
    const char *now = getenv(variable);
    size_t size = strlen(what) + (now ? strlen(now) : 0) + 2;
    char *text = malloc(size);
    if (!text)
        abort();
    snprintf(text, size, "%s%s%s", what, now && *now ? ":" : "", now ? now : "");
    if (setenv(variable, text, 1))
        abort();
    free(text);
}

/* In the child: what the program finds in its environment. */
static void set_environment(const struct options *o, const struct device *d, const char *preload,
                            const writer *w) {
    char id[24], path[2 * PATH_MAX];
    escape(path, sizeof path, record_path(w));
    snprintf(id, sizeof id, "%016" PRIx64, record_run_id(w));
    setenv("GCORE_RECORD", path, 1);
    setenv("GCORE_RECORD_JOIN", id, 1);
    if (o->watch_host)
        setenv("GCORE_WATCH_HOST", "1", 1);
    if (d->soft) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%s", d->library);
        *strrchr(folder, '/') = '\0';
        setenv("GRETA_DEVICE", "soft", 1);
        put_in_front("LD_LIBRARY_PATH", folder);
    }
    put_in_front("LD_PRELOAD", preload);
}

/* What is meant for the program, and its end, is waited for with sigtimedwait(): *before is the
 * mask that the program gets. */
static void block_signals(sigset_t *ours, sigset_t *before) {
    static const int heard[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD };
    sigemptyset(ours);
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++)
        sigaddset(ours, heard[i]);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would not come, nor the exit status */
    sigprocmask(SIG_BLOCK, ours, before);
}

/* -1 if it cannot be started; *problem says why. */
static pid_t start(const struct options *o, const char *file, const struct device *d,
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
        if (errno == ENOEXEC) /* a script without a first line, as shells take it */
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

/* Waits for the program; returns its wait status. What the terminal sends, the program has got too;
 * what somebody sends to us alone is handed on. */
static int wait_for(pid_t child, const sigset_t *signals, double timeout, bool *late) {
    enum { GRACE_S = 5 };
    uint64_t begin = clock_now_ns(), limit = (uint64_t)(timeout * 1e9);
    int status = 0, sent = 0;
    *late = false;
    while (waitpid(child, &status, WNOHANG) != child) {
        struct timespec step = { .tv_sec = 3600 };
        uint64_t spent = clock_now_ns() - begin;
        if (timeout > 0 && spent >= limit && sent < 2) {
            kill(child, sent++ ? SIGKILL : SIGTERM);
            *late = true;
            limit = spent + GRACE_S * UINT64_C(1000000000);
        }
        if (timeout > 0 && sent < 2) {
            uint64_t left = limit > spent ? limit - spent : 0;
            step = (struct timespec){ (time_t)(left / 1000000000), (long)(left % 1000000000) };
        }
        siginfo_t info;
        int number = sigtimedwait(signals, &info, &step);
        if (number > 0 && number != SIGCHLD && info.si_code <= 0)
            kill(child, number);
    }
    return status;
}

/* ---- afterwards --------------------------------------------------------------------------------
 */

/* The audit's exit code. */
static int judge_run(const struct options *o, const char *folder, const char *path) {
    struct judge_options options = o->judge;
    struct err e = { 0 };
    reader *r;
    if (reader_open(&r, path, &e) != RC_OK) {
        say("%s", e.msg);
        return EXIT_FOUND;
    }
    options.verdict.recording = path;
    options.verbose = true;
    int code = judge_recording(r, folder, &options, o->quiet ? NULL : stderr);
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

static int run(const struct options *o, const char *file, const struct device *d,
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
    int judged = judge_run(o, folder, path);
    bool refused = judged == EXIT_REFUSED && judge_expects(&o->judge);
    return o->exit_code || refused ? judged : code;
}

int cmd_run(int argc, char **argv) {
    struct options o = { 0 };
    struct device device;
    char file[PATH_MAX], preload[PATH_MAX], folder[PATH_MAX];
    int code = parse(&o, argc, argv);
    if (code >= 0)
        return code;
    if (!find_command(o.command[0], file)) {
        say("no such program: %s (expected an executable file, or a name that PATH finds)",
            o.command[0]);
        return EXIT_REFUSED;
    }
    if (!find_preload(preload) || strpbrk(preload, " :")) {
        say("expected libgcore_preload.so in ../lib beside this program, in a path without spaces "
            "and colons; build or install greta again (builds with sanitizers do not have it)");
        return EXIT_REFUSED;
    }
    if ((code = choose_device(&device, o.device)) >= 0 || (code = make_folder(folder, &o)) >= 0)
        return code;
    return run(&o, file, &device, preload, folder);
}

#include "tools/common/program.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "greta_build.h"

int program_exit_code(enum rc rc, bool began) {
    return rc == RC_OK                  ? EXIT_CLEAN
           : rc == RC_USAGE             ? EXIT_WRONG
           : rc == RC_REFUSED && !began ? EXIT_REFUSED
                                        : EXIT_FOUND;
}

void program_print_version(const char *name) {
    printf("%s %s (%s%s)\n", name, GRETA_VERSION, GRETA_BUILD_COMMIT,
           GRETA_BUILD_DIRTY ? ", changed" : "");
}

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal) {
    if (++interrupts > 1) { /* the second time is meant */
        static const struct sigaction plain = { .sa_handler = SIG_DFL };
        sigaction(signal, &plain, NULL);
        raise(signal);
    }
}

void program_catch_interrupts(void) {
    struct sigaction action = { .sa_handler = on_interrupt };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool program_interrupted(void) {
    return interrupts > 0;
}

bool program_make_folder(const char *path) {
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

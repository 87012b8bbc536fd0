#include "tools/common/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "greta_build.h"

static atomic_bool interrupted;
static volatile sig_atomic_t last_signal;
static volatile sig_atomic_t patient;

int program_exit_code(enum rc rc, bool began) {
    return program_interrupted()        ? 128 + (int)last_signal
           : rc == RC_OK                ? EXIT_CLEAN
           : rc == RC_USAGE             ? EXIT_WRONG
           : rc == RC_REFUSED && !began ? EXIT_REFUSED
                                        : EXIT_FOUND;
}

int program_finish_output(const char *name) {
    if (!fflush(stdout) && !ferror(stdout))
        return EXIT_CLEAN;
    fprintf(stderr, "%s: cannot write the output: %s\n", name, strerror(errno));
    return EXIT_FOUND;
}

void program_survive_file_limit(void) {
    signal(SIGXFSZ, SIG_IGN);
}

void program_print_version(const char *name) {
    printf("%s %s (%s%s)\n", name, GRETA_VERSION, GRETA_BUILD_COMMIT,
           GRETA_BUILD_DIRTY ? ", changed" : "");
}

static void on_signal(int signal) {
    bool again = atomic_exchange(&interrupted, true);
    last_signal = signal;
    if (again && !(patient && signal == SIGINT)) { /* the second one ends the process */
        static const struct sigaction plain = { .sa_handler = SIG_DFL };
        sigaction(signal, &plain, NULL);
        raise(signal);
    }
}

const atomic_bool *program_catch_interrupts(void) {
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}

bool program_interrupted(void) {
    return atomic_load(&interrupted);
}

void program_expect_ctrl_c(void) {
    patient = 1;
}

bool program_take_ctrl_c(void) {
    bool came = atomic_load(&interrupted) && last_signal == SIGINT;
    if (came)
        atomic_store(&interrupted, false);
    return came;
}

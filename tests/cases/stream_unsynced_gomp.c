/* Two threads of a parallel region of GNU's OpenMP runtime meet at a barrier, as code of gcc
 * -fopenmp has it. The runtime is loaded here, so that the program can be built by every compiler.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#define _GNU_SOURCE
#include "case_relay.h"

static void (*meet)(void);
static int (*which)(void);
static void (*parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags);

static void load(void *into, const char *name) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (!symbol) {
        fprintf(stderr, "libgomp.so.1 has no %s\n", name);
        exit(99);
    }
    memcpy(into, &symbol, sizeof symbol);
}

static void hand_over(void) {
    meet();
}

static void take_over(void) {
    meet();
}

static void body(void *unused) {
    (void)(which() == 0 ? produce : consume)(unused);
}

int main(void) {
    if (!dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "%s\n", dlerror());
        return 99;
    }
    load(&meet, "GOMP_barrier");
    load(&which, "omp_get_thread_num");
    load(&parallel, "GOMP_parallel");
    open_both();
    parallel(body, NULL, 2, 0);
    close_both();
    return 0;
}

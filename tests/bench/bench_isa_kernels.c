/* bench_isa_kernels - the interpreter on kernels that a compiler made (tests/hip/speed.hip), with
 * bounds checked: wave instructions per second on a loop of fused multiply-adds and on a stencil,
 * the time of a kernel that copies 64 MiB, the gain of a second core, and how much of the time the
 * checks take. One-core figures are processor time, so that other programs do not count.
 *
 * The program starts itself with GRETA_SOFT_CHECK=off for the last figure: settings are read once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/promise.h"
#include "support/soft_fixture.h"

enum { BLOCK = 256, WIDTH = 1024, HEIGHT = 512, COPY_BYTES = 64 << 20, ROUNDS = 5 };

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(hipError_t e, const char *what) {
    if (e == hipSuccess)
        return;
    fprintf(stderr, "%s: error %d\n", what, (int)e);
    exit(2);
}

/* ---- kernels --------------------------------------------------------------------------------- */

struct kernel {
    const char *name;
    unsigned grid[2];
    void **args;
    hipFunction_t function;
    uint64_t instructions; /* wave instructions of a launch */
};

static void launch(const struct kernel *k) {
    must(hip->hipModuleLaunchKernel(k->function, k->grid[0], k->grid[1], 1, BLOCK, 1, 1, 0, NULL,
                                    k->args, NULL),
         k->name);
    must(hip->hipDeviceSynchronize(), k->name);
}

static void count(const struct greta_soft_executed *e, void *user) {
    *(uint64_t *)user += e->exact + e->precise + e->approximate;
}

static void count_instructions(struct kernel *k) {
    static const struct greta_soft_launch_observer observer = { .executed = count };
    soft_observe_launches(&observer, &k->instructions);
    launch(k);
    soft_observe_launches(NULL, NULL);
}

/* The best of a few launches, in seconds of that clock. */
static double time_of(const struct kernel *k, clockid_t clock) {
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now(clock);
        launch(k);
        double seconds = now(clock) - begin;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* ---- the compiler ---------------------------------------------------------------------------- */

static bool compile(char path[40]) {
    char command[600];
    const char *sources = getenv("SOURCE_DIR");
    strcpy(path, "/tmp/greta-bench-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0 || system("command -v hipcc >/dev/null") != 0)
        return false;
    close(fd);
    snprintf(command, sizeof command,
             "hipcc --offload-arch=gfx90a --genco -O3 '%s/tests/hip/speed.hip' -o %s",
             sources ? sources : ".", path);
    return system(command) == 0;
}

/* ---- figures --------------------------------------------------------------------------------- */

struct figures {
    double fma, stencil, copy, scaling; /* M/s, M/s, s, times */
};

static struct figures measure(const char *image) {
    hipModule_t module;
    float *in, *out, a = 0.999f, b = 0.001f, centre = 0.6f, side = 0.1f;
    int n = 4000, w = WIDTH, h = HEIGHT;
    void *fma_args[] = { &out, &a, &b, &n };
    void *stencil_args[] = { &out, &in, &w, &h, &centre, &side };
    void *copy_args[] = { &out, &in };
    struct kernel k[] = { { "fma_loop", { 8, 1 }, fma_args, NULL, 0 },
                          { "stencil", { WIDTH / BLOCK, HEIGHT }, stencil_args, NULL, 0 },
                          { "copy", { COPY_BYTES / 4 / BLOCK, 1 }, copy_args, NULL, 0 } };
    if (soft_fixture_load(NULL))
        exit(2);
    must(hip->hipModuleLoad(&module, image), "hipModuleLoad");
    must(hip->hipMalloc((void **)&in, COPY_BYTES), "hipMalloc");
    must(hip->hipMalloc((void **)&out, COPY_BYTES), "hipMalloc");
    must(hip->hipMemset(in, 0, COPY_BYTES), "hipMemset");
    soft_set_threads(1);
    for (int i = 0; i < 3; i++) {
        must(hip->hipModuleGetFunction(&k[i].function, module, k[i].name), k[i].name);
        count_instructions(&k[i]);
    }
    struct figures f = { 0 };
    f.fma = (double)k[0].instructions / time_of(&k[0], CLOCK_PROCESS_CPUTIME_ID) * 1e-6;
    f.stencil = (double)k[1].instructions / time_of(&k[1], CLOCK_PROCESS_CPUTIME_ID) * 1e-6;
    f.copy = time_of(&k[2], CLOCK_PROCESS_CPUTIME_ID);
    double one = time_of(&k[0], CLOCK_MONOTONIC);
    soft_set_threads(2);
    f.scaling = one / time_of(&k[0], CLOCK_MONOTONIC);
    must(hip->hipFree(in), "hipFree");
    must(hip->hipFree(out), "hipFree");
    must(hip->hipModuleUnload(module), "hipModuleUnload");
    return f;
}

static bool measure_unchecked(const char *program, const char *image, struct figures *f) {
    char command[600];
    snprintf(command, sizeof command, "GRETA_SOFT_CHECK=off '%s' %s", program, image);
    FILE *in = popen(command, "r");
    int read = in ? fscanf(in, "%lf %lf %lf", &f->fma, &f->stencil, &f->copy) : 0;
    return in && pclose(in) == 0 && read == 3;
}

int main(int argc, char **argv) {
    char path[40] = "";
    struct figures off = { 0 };
    if (argc > 1) { /* by measure_unchecked() */
        struct figures f = measure(argv[1]);
        printf("%f %f %f\n", f.fma, f.stencil, f.copy);
        return 0;
    }
    if (!compile(path)) {
        puts("skipped: there is no hipcc");
        if (*path)
            unlink(path);
        return 0;
    }
    struct figures f = measure(path);
    bool both = measure_unchecked(argv[0], path, &off);
    unlink(path);
    double bytes = 2.0 * COPY_BYTES;
    printf("compiled kernels, one core, bounds checked (and the rate without checks over it):\n");
    printf("  fma_loop %7.1f million wave instructions/s (%.2f)\n", f.fma, off.fma / f.fma);
    printf("  stencil  %7.1f million wave instructions/s (%.2f)\n", f.stencil,
           off.stencil / f.stencil);
    printf("  copy     %7.2f GB/s checked, 64 MiB in %.3f s (%.2f)\n", bytes / f.copy * 1e-9,
           f.copy, off.copy > 0 ? f.copy / off.copy : 0.0);
    printf("  2 cores: %.2f times as fast as 1\n", f.scaling);
    int missed = promise_at_least("isa.fma_loop", f.fma, 20);
    missed |= promise_at_least("isa.stencil", f.stencil, 10);
    missed |= promise_at_most("isa.copy_64mib", f.copy, 0.3);
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        missed |= promise_at_least("isa.two_cores", f.scaling, 1.8);
    return both ? missed : 2;
}

/* bench_gpu_kernels: how much of a compute unit the GPU code of every kernel occupies, from the
 * metadata of the code objects that the build made; and for the kernels that determine speed, what
 * the interpreter counts and the time predicted from it. `make kernel-report` prints it. Exits with
 * 1 if a kernel spills. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>
#include <greta/soft.h>

#include "codeobj/codeobj.h"
#include "infer/device.h"
#include "kernels/example.h"
#include "kernels/hip/image.h"
#include "kernels/spec.h"
#include "kernels/twin.h"

/* A compute unit: registers of a SIMD and how they are given out, waves, LDS. */
struct machine {
    const char *target, *name;
    unsigned simds, waves; /* waves of a SIMD at most */
    unsigned vgprs, granule;
    unsigned lds;
};

static const struct machine machines[] = {
    { "gfx90a:sramecc+:xnack-", "gfx90a", 4, 8, 512, 8, 64 << 10 },
    { "gfx942:sramecc+:xnack-", "gfx942", 4, 8, 512, 8, 64 << 10 },
    { "gfx1100", "gfx1100", 2, 16, 1536, 24, 64 << 10 },
};

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Waves of a compute unit that can be resident at the same time: whole workgroups. */
static unsigned resident_waves(const struct machine *m, const struct codeobj_kernel *k,
                               unsigned threads) {
    unsigned lanes = k->wavefront ? k->wavefront : 64, group = (threads + lanes - 1) / lanes;
    unsigned vgprs = k->vgprs ? (k->vgprs + m->granule - 1) / m->granule * m->granule : m->granule;
    unsigned waves = least(m->waves, m->vgprs / vgprs) * m->simds;
    unsigned groups = waves / group;
    if (k->group_bytes)
        groups = least(groups, m->lds / k->group_bytes);
    return groups * group;
}

static bool print_machine(const struct machine *m) {
    struct codeobj_image image = { 0 };
    struct codeobj_list *list = NULL;
    struct err e = { 0 };
    bool good = true;
    if (image_find(m->target, &image, &e) ||
        codeobj_list_open(&list, image.bytes, image.size, &e)) {
        printf("%s: %s\n", m->name, e.msg);
        free(image.bytes);
        return false;
    }
    printf("%-8s %-16s %6s %6s %6s %9s %8s %8s %10s\n", m->name, "kernel", "VGPR", "AGPR", "SGPR",
           "in lanes", "LDS", "spilled", "occupancy");
    for (int i = 0; i < KERN_COUNT; i++) {
        const struct codeobj_kernel *k = codeobj_list_kernel(list, spec_table[i].name);
        if (!k)
            continue;
        unsigned waves = resident_waves(m, k, spec_table[i].threads);
        printf("%-8s %-16s %6u %6u %6u %9u %8u %8u %3u of %3u\n", "", k->name, k->vgprs, k->agprs,
               k->sgprs, k->sgpr_spills, k->group_bytes, k->private_bytes, waves,
               m->waves * m->simds);
        good &= k->private_bytes == 0 && k->vgpr_spills == 0 && k->sgpr_spills == 0;
    }
    codeobj_list_close(&list);
    free(image.bytes);
    return good;
}

/* ---- what the interpreter counts, and the time predicted from it ----------------------------- */

/* An MI300X. Peaks are what its data sheet states at 2.1 GHz. */
#define CLOCK     2.1e9
#define HBM       5.3e12 /* bytes per second */
#define LAUNCH    1.0e-6 /* seconds from the end of a kernel to the start of the next, in a graph */
#define CUS       304
#define HALF_RATE 512.0 /* flops of halves per cycle and SIMD: 1307 TFLOPS */
#define FULL_RATE 64.0  /* of floats: 163 TFLOPS */

static const char *const assumptions[] = {
    "A launch costs 1 us. Each line of 128 bytes comes from HBM once, at 5.3 TB/s: the caches hold",
    "what is read again. A compute unit (304 at 2.1 GHz, 4 SIMDs) does these side by side: a "
    "vector",
    "instruction per SIMD in 4 cycles; 1024 operations on 8-bit numbers, 512 on halves or 64 on "
    "floats",
    "per SIMD and cycle in matrix instructions; 128 bytes of LDS per cycle, conflicts as counted; "
    "a",
    "64-byte half of a line of device memory per cycle. Whole workgroups are dealt out to compute "
    "units;",
    "the one with the most ends last. The time is the launch and the slowest of these. Not in it: "
    "the",
    "latency of memory, clocks that drop, barriers: it takes for granted that a wave's vector and",
    "matrix instructions overlap, as they can where they do not depend on each other.",
};

struct measured {
    struct greta_soft_count count;
    uint64_t groups, needed; /* workgroups; bytes of all footprints */
    double distance;
};

static void (*count_start)(void);
static void (*count_stop)(struct greta_soft_count *out);

/* Runs one launch with the interpreter and compares it with the CPU. */
static bool measure(struct device *d, enum kern_id id, const void *arguments,
                    struct measured *out) {
    const struct spec *s = &spec_table[id];
    struct err e = { 0 };
    *out = (struct measured){ .groups = s->groups(arguments) };
    for (uint32_t i = 0; i < s->view_count; i++)
        out->needed += s->views[i].bytes(arguments);
    count_start();
    enum rc rc = twin_compare(d->kernels, d->hip, id, arguments, &out->distance, &e);
    count_stop(&out->count);
    if (rc)
        printf("%s: %s\n", s->name, e.msg);
    return rc == RC_OK;
}

struct prediction {
    double seconds, memory, vector, matrix, lds, cache; /* all in seconds; `seconds` is the total */
};

/* groups, needed: workgroups and bytes of the whole. */
static struct prediction predict(const struct measured *m, uint64_t groups, double needed) {
    const struct greta_soft_count *c = &m->count;
    const uint64_t busiest = (groups + CUS - 1) / CUS; /* workgroups of one compute unit */
    const double rounds = (double)busiest / (double)m->groups / CLOCK;
    const double wasted = (double)c->lines * 128 / (double)m->needed;
    struct prediction p = { .memory = needed * (wasted > 1 ? wasted : 1) / HBM };
    p.vector = (double)c->vector * 4 / 4 * rounds;
    p.matrix = (2 * (double)c->products[1] / HALF_RATE + 2 * (double)c->products[2] / FULL_RATE +
                (double)c->products[0] / HALF_RATE) /
               4 * rounds;
    p.lds = (double)c->lds_cycles * rounds;
    p.cache = (double)c->half_lines * rounds;
    const double all[] = { p.memory, p.vector, p.matrix, p.lds, p.cache };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        p.seconds = all[i] > p.seconds ? all[i] : p.seconds;
    p.seconds += LAUNCH;
    return p;
}

static const char *limit_of(const struct prediction *p) {
    const double most = p->seconds - LAUNCH - 1e-12;
    return p->memory >= most   ? "HBM"
           : p->vector >= most ? "vector"
           : p->matrix >= most ? "matrix"
           : p->lds >= most    ? "LDS"
                               : "cache";
}

static void print_counts(const char *what, const char *type, const struct measured *m) {
    const struct greta_soft_count *c = &m->count;
    const double all = (double)(c->vector + c->matrix + c->scalar + c->control + c->scalar_memory +
                                c->lds + c->memory) /
                       100;
    printf("  %-14s %-5s %8.2f %8.2f %8.1f%% %7.0f %7.0f %7.0f %7.0f %7.0f\n", what, type,
           (double)c->lines * 128 / (double)m->needed,
           c->bytes ? (double)c->half_lines * 64 / (double)c->bytes : 0,
           c->lds_cycles ? 100 * (double)c->lds_conflicts / (double)c->lds_cycles : 0,
           (double)c->vector / all, (double)c->matrix / all,
           (double)(c->scalar + c->scalar_memory + c->control) / all, (double)c->lds / all,
           (double)c->memory / all);
}

/* ---- a layer of Llama-3-8B ------------------------------------------------------------------- */

enum { DIM = 4096, HIDDEN = 14336, KV = 1024, SLICE = 128 };

struct projection {
    const char *name;
    uint32_t n, k; /* rows and width of its weights; of matmul_qkv and gate_up all together */
};

static const struct projection projections[] = {
    { "matmul_qkv", DIM + 2 * KV, DIM },
    { "matmul (out)", DIM, DIM },
    { "matmul_gate_up", 2 * HIDDEN, DIM },
    { "matmul (down)", DIM, HIDDEN },
};
enum { PROJECTIONS = sizeof projections / sizeof *projections };

/* Measures a slice of the rows, which shows what every workgroup does. */
static bool measure_projection(struct device *d, enum tensor_type type, uint32_t tokens,
                               uint32_t rows, uint32_t k, struct measured *out) {
    struct example x = { .seed = 7 };
    bool good;
    struct kern_matmul a = example_matmul(&x, type, tokens, rows, k, false, false);
    good = !x.failed && measure(d, KERN_matmul, &a, out);
    example_close(&x);
    return good;
}

static uint64_t matmul_groups(uint32_t tokens, uint32_t n) {
    struct kern_matmul a = { .tokens = tokens, .n = n };
    return spec_table[KERN_matmul].groups(&a);
}

/* What a layer launches for one token besides its projections. */
enum { NORM, ATTENTION, OTHERS, HEADS = 32, HEAD = DIM / HEADS, CONTEXT = 512 };

static const struct other {
    const char *name;
    unsigned launches; /* per layer */
} others[OTHERS] = { { "rmsnorm", 2 }, { "attention_step", 1 } };

/* run: how many elements of its result share a scale; 0: it is not quantised. */
static bool measure_norm(struct device *d, uint32_t run, struct measured *out) {
    struct example x = { .seed = 7 };
    struct kern_rmsnorm a = { .rows = 1, .dim = DIM, .run = run, .eps = 1e-5f };
    a.x = example_tensor(&x, TENSOR_TYPE_F32, 1, DIM);
    a.out = example_room(&x, TENSOR_TYPE_F32, a.x.bytes);
    a.weight = example_tensor(&x, TENSOR_TYPE_F32, 1, DIM);
    a.levels = example_levels_room(&x, 1, DIM, run);
    bool good = !x.failed && measure(d, KERN_rmsnorm, &a, out);
    example_close(&x);
    return good;
}

/* The last of CONTEXT tokens. */
static bool measure_attention(struct device *d, uint32_t run, struct measured *out) {
    struct example x = { .seed = 7 };
    int32_t tables[KERN_BLOCKS(CONTEXT)];
    for (int32_t i = 0; i < (int32_t)KERN_BLOCKS(CONTEXT); i++)
        tables[i] = i;
    struct kern_attention_step a =
        example_attention_step(&x, 1, HEADS, KV / HEAD, HEAD, (uint32_t)KERN_RANGES(CONTEXT), run);
    a.rows = CONTEXT;
    a.sequences = 1;
    a.table_width = KERN_BLOCKS(CONTEXT);
    a.scale = 1 / 11.3137085f; /* the square root of HEAD */
    a.keys = example_tensor(&x, TENSOR_TYPE_F16, CONTEXT, KV);
    a.values = example_tensor(&x, TENSOR_TYPE_F16, CONTEXT, KV);
    a.pos = example_ints(&x, (int32_t[]){ CONTEXT - 1 }, 1);
    a.seqs = example_ints(&x, (int32_t[]){ 0 }, 1);
    a.tables = example_ints(&x, tables, a.table_width);
    bool good = !x.failed && measure(d, KERN_attention_step, &a, out);
    example_close(&x);
    return good;
}

/* The seven launches of a layer: the projections, whose total seconds and bytes are given, and the
 * others. */
static bool print_layer(struct device *d, enum tensor_type type, double seconds, double bytes) {
    const uint32_t run = tensor_type_is_float(type) ? 0 : 32;
    struct measured m[OTHERS];
    if (!measure_norm(d, run, &m[NORM]) || !measure_attention(d, run, &m[ATTENTION]))
        return false;
    for (int i = 0; i < OTHERS; i++) {
        struct prediction t = predict(&m[i], m[i].groups, (double)m[i].needed);
        printf("  %-14s %-5s %10.2f %10.2f %10.2f %10.2f %10.2f %8s\n", others[i].name,
               others[i].launches > 1 ? "each" : "", (double)m[i].needed / 1e6, t.memory * 1e6,
               t.vector * 1e6, t.cache * 1e6, t.seconds * 1e6, limit_of(&t));
        seconds += others[i].launches * t.seconds;
        bytes += others[i].launches * (double)m[i].needed;
    }
    printf("  the layer, after %d tokens: %.1f MB in %.1f us, %.2f of the bandwidth\n\n",
           CONTEXT - 1, bytes / 1e6, seconds * 1e6, bytes / seconds / HBM);
    return true;
}

static bool print_decode(struct device *d, enum tensor_type type) {
    const char *name = tensor_type_find(type)->name;
    struct measured m[PROJECTIONS];
    double seconds = 0, bytes = 0;
    bool good = true;
    for (int i = 0; i < PROJECTIONS && good; i++)
        good = measure_projection(d, type, 1, SLICE, projections[i].k, &m[i]);
    if (!good)
        return false;
    printf("One token through the projections of a layer of Llama-3-8B, %s:\n"
           "  %-14s %-5s %8s %8s %9s %7s %7s %7s %7s %7s\n",
           name, "", "", "lines/", "halves/", "LDS con-", "vector", "matrix", "scalar", "LDS",
           "memory");
    printf("  %-14s %-5s %8s %8s %9s %7s %7s %7s %7s %7s\n", "", "", "needed", "asked", "flicts",
           "%", "%", "%", "%", "%");
    for (int i = 0; i < PROJECTIONS; i++)
        print_counts(projections[i].name, name, &m[i]);
    printf("  %-14s %-5s %10s %10s %10s %10s %10s %8s\n", "", "", "MB", "HBM us", "vector us",
           "cache us", "total us", "limit");
    for (int i = 0; i < PROJECTIONS; i++) {
        const struct projection *p = &projections[i];
        double needed = (double)tensor_type_row_bytes(type, p->k) * p->n + 4.0 * (p->k + p->n);
        struct prediction t = predict(&m[i], matmul_groups(1, p->n), needed);
        printf("  %-14s %-5s %10.1f %10.2f %10.2f %10.2f %10.2f %8s\n", p->name, name, needed / 1e6,
               t.memory * 1e6, t.vector * 1e6, t.cache * 1e6, t.seconds * 1e6, limit_of(&t));
        seconds += t.seconds;
        bytes += needed;
    }
    printf("  all projections: %.1f MB in %.1f us, %.2f of the bandwidth (goal 0.7)\n", bytes / 1e6,
           seconds * 1e6, bytes / seconds / HBM);
    return print_layer(d, type, seconds, bytes);
}

enum { TOKENS = 512, WIDTH = 512 };

/* A product of rows of WIDTH elements, and one of twice as many. The work of a workgroup is a fixed
 * part and one that grows with the width, so that these two tell the work for any width. */
struct widths {
    struct measured one, two;
};

static uint64_t wider(uint64_t one, uint64_t two, uint32_t k) {
    return one + (two - one) * (k / WIDTH - 1);
}

static struct measured at_width(const struct widths *w, uint32_t k) {
    const struct greta_soft_count *a = &w->one.count, *b = &w->two.count;
    struct measured m = w->two; /* lines and needed: their ratio is what counts */
    m.count.vector = wider(a->vector, b->vector, k);
    m.count.lds_cycles = wider(a->lds_cycles, b->lds_cycles, k);
    m.count.half_lines = wider(a->half_lines, b->half_lines, k);
    for (int i = 0; i < 3; i++)
        m.count.products[i] = wider(a->products[i], b->products[i], k);
    return m;
}

static bool print_prompt(struct device *d, enum tensor_type type) {
    enum { ROWS = KERN_TILE_ROWS };
    const char *name = tensor_type_find(type)->name;
    struct widths w;
    double seconds = 0, flops = 0;
    if (!measure_projection(d, type, KERN_TILE_TOKENS, ROWS, WIDTH, &w.one) ||
        !measure_projection(d, type, KERN_TILE_TOKENS, ROWS, 2 * WIDTH, &w.two))
        return false;
    const struct greta_soft_count *c = &w.one.count;
    const double peak = HALF_RATE * 4 * CUS * CLOCK;
    const double products = (double)KERN_TILE_TOKENS * ROWS * WIDTH;
    printf(
        "512 tokens through the projections of a layer of Llama-3-8B, %s (matrix instructions "
        "multiply %.2f halves,\n%.2f floats and %.2f 8-bit numbers for each product of the result, "
        "LDS conflicts %.0f%%; distance from the CPU %.1e):\n  %-14s %8s %10s %10s %8s "
        "%9s %7s %9s %7s %8s\n",
        name, (double)c->products[1] / products, (double)c->products[2] / products,
        (double)c->products[0] / products,
        c->lds_cycles ? 100 * (double)c->lds_conflicts / (double)c->lds_cycles : 0, w.two.distance,
        "", "groups", "vector us", "matrix us", "LDS us", "cache us", "HBM us", "total us", "limit",
        "of peak");
    for (int i = 0; i < PROJECTIONS; i++) {
        const struct projection *p = &projections[i];
        uint64_t groups = matmul_groups(TOKENS, p->n);
        double needed =
            (double)tensor_type_row_bytes(type, p->k) * p->n + 4.0 * TOKENS * (p->k + (double)p->n);
        struct measured m = at_width(&w, p->k);
        struct prediction t = predict(&m, groups, needed);
        double own = 2.0 * TOKENS * p->n * p->k;
        printf("  %-14s %8llu %10.1f %10.1f %8.1f %9.1f %7.1f %9.1f %7s %8.2f\n", p->name,
               (unsigned long long)groups, t.vector * 1e6, t.matrix * 1e6, t.lds * 1e6,
               t.cache * 1e6, t.memory * 1e6, t.seconds * 1e6, limit_of(&t),
               own / t.seconds / peak);
        seconds += t.seconds;
        flops += own;
    }
    printf("  all: %.1f us, %.0f TFLOPS, %.2f of the peak of halves (goal 0.5)\n\n", seconds * 1e6,
           flops / seconds / 1e12, flops / seconds / peak);
    return true;
}

static bool print_prediction(void) {
    struct device d = { 0 };
    struct err e = { 0 };
    setenv("GRETA_SOFT_ARCH", "gfx942", 1);
    if (device_open(&d, "soft", "isa", NULL, &e)) {
        printf("The interpreter: %s\n", e.msg);
        return false;
    }
    *(void **)&count_start = gcore_runtime_symbol("greta_soft_count_start");
    *(void **)&count_stop = gcore_runtime_symbol("greta_soft_count_stop");
    bool good = count_start && count_stop;
    puts(
        "\nCounted by the interpreter on gfx942, and the time that a model of an MI300X predicts:");
    for (size_t i = 0; i < sizeof assumptions / sizeof *assumptions; i++)
        printf("  %s\n", assumptions[i]);
    puts("  lines/needed: bytes of all lines touched by bytes of the footprint; halves/asked: "
         "bytes of\n"
         "  the half lines of every instruction by the bytes that its lanes ask for.\n");
    static const enum tensor_type types[] = { TENSOR_TYPE_Q4_K, TENSOR_TYPE_F16 };
    for (int i = 0; i < 2 && good; i++)
        good = print_decode(&d, types[i]);
    static const enum tensor_type many[] = { TENSOR_TYPE_Q4_K, TENSOR_TYPE_Q6_K, TENSOR_TYPE_Q8_0,
                                             TENSOR_TYPE_F16 };
    for (size_t i = 0; i < sizeof many / sizeof *many && good; i++)
        good = print_prompt(&d, many[i]);
    device_close(&d);
    gcore_close();
    return good;
}

int main(void) {
    bool good = true;
    printf("GPU kernels: %s\n", image_origin());
    if (!strcmp(image_origin(), "none")) {
        puts("This build has none: no clang with the AMDGPU target was found.");
        return 0;
    }
    puts("LDS and spilled are bytes per workgroup and per thread; occupancy is waves of a compute "
         "unit.\nIn lanes: scalar values that the compiler keeps in lanes of a vector register.");
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        good &= print_machine(&machines[i]);
    puts(good ? "No kernel spills registers." : "FAIL: a kernel spills registers.");
    return !(print_prediction() && good);
}

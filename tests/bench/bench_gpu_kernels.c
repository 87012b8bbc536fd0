/* bench_gpu_kernels: what the GPU code of every kernel takes of a compute unit, from the metadata
 * of the code objects that the build made. `make kernel-report` prints it. Exits with 1 if a kernel
 * spills. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/codeobj.h"
#include "kernels/hip/image.h"
#include "kernels/spec.h"

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
    printf("%-8s %-16s %6s %6s %6s %8s %8s %10s\n", m->name, "kernel", "VGPR", "AGPR", "SGPR",
           "LDS", "spilled", "occupancy");
    for (int i = 0; i < KERN_COUNT; i++) {
        const struct codeobj_kernel *k = codeobj_list_kernel(list, spec_table[i].name);
        if (!k)
            continue;
        unsigned waves = resident_waves(m, k, spec_table[i].threads);
        printf("%-8s %-16s %6u %6u %6u %8u %8u %3u of %3u\n", "", k->name, k->vgprs, k->agprs,
               k->sgprs, k->group_bytes, k->private_bytes, waves, m->waves * m->simds);
        good &= k->private_bytes == 0;
    }
    codeobj_list_close(&list);
    free(image.bytes);
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
         "unit.");
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        good &= print_machine(&machines[i]);
    puts(good ? "No kernel spills registers." : "FAIL: a kernel spills registers.");
    return !good;
}

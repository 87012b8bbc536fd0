/* native.h - the kernels as host functions for the software device. */
#ifndef KERNELS_CPU_NATIVE_H
#define KERNELS_CPU_NATIVE_H

#include <greta/soft.h>

#include "kernels/kern.h"

/* The description the software device registers; constant, valid for the process. The first call
 * picks the instruction set (ops.h). Thread-safe. */
const struct greta_soft_kernel *native_kernel(enum kern_id id);

/* cpu_embed(work, arguments), …: blocks work->first to work->last - 1 of a launch (kernels.c). */
#define KERN_BEGIN(k) void cpu_##k(const struct greta_soft_work *work, const struct kern_##k *a);
#include "kernels/kernel.def"

#endif

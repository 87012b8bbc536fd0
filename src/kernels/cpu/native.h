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
#define KERN_VIEW(k, name, access, type, bytes)
#define KERN_U32(k, name)
#define KERN_F32(k, name)
#define KERN_GRID(k, blocks)
#define KERN_END(k)
#include "kernels/kernel.def"
#undef KERN_BEGIN
#undef KERN_VIEW
#undef KERN_U32
#undef KERN_F32
#undef KERN_GRID
#undef KERN_END

#endif

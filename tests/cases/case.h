/* case.h - what the programs of this folder need: the HIP API without ROCm's headers, calls that
 * are checked, and kernels in host code.
 *
 * A program is compiled twice: with BUG=1 it has the one bug that its first comment names, with
 * BUG=0 it is the same program without it. It knows nothing of the audit. Its first comment also
 * says what greta_audit must find, and is read by run_cases.c:
 *
 *   Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also UPSTREAM_KERNEL_FAULT;
 *           culprit kernel=fill argument=out site=overrun; messenger hipMemcpy site=download
 *   Run:    --watch-host GRETA_SOFT_DEVICES=2
 *
 * The hypothesis is what the first finding is about, or follows from it; `also` lists all others
 * that the run confirms, with ? those that it may confirm; `undecided` names one that must be
 * INCONCLUSIVE beside the finding. culprit and messenger are a HIP
 * function, or kernel=NAME; then tensor=, argument=, line= and site=, the function of the program
 * that made the call. `messenger none`: no call reported it. Where the outcome of the run depends
 * on the schedule, as it does with races, `ROOT_CAUSE|FINDINGS` and `none or hipMemcpy site=f`
 * allow several answers; the culprit should not depend on it. `findings N` says how many findings
 * there are if not one. `FINDINGS|INCONCLUSIVE`: it is found, or the hypothesis is left undecided.
 * Run is optional: options of greta_audit run, and environment variables.
 *
 * The fixed twin ends with 0, is CLEAN and has no finding. Both hold under every schedule. */
#ifndef CASES_CASE_H
#define CASES_CASE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <greta/soft.h>

#include "hip/hip_types.h"

#ifndef BUG
#error "compile with -DBUG=1 or -DBUG=0"
#endif

#define HIP_FN(ret, name, params, args, cls, since) extern ret name params;
#define HIP_VOID_FN(name, params, args, cls, since) extern void name params;
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

/* Ends the program in good order, as programs do that check their calls. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        hipError_t check_result = (call);                                                          \
        if (check_result != hipSuccess) {                                                          \
            fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(check_result));                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Makes a kernel in host code known; stub is any address of the program's, to launch it by, as a
 * kernel's host function is in compiled HIP code. */
static inline void case_kernel(const struct greta_soft_kernel *kernel, const void *stub) {
    int (*enter)(const struct greta_soft_kernel *);
    void *symbol = dlsym(RTLD_DEFAULT, "greta_soft_kernel_register");
    memcpy(&enter, &symbol, sizeof enter);
    if (!symbol || enter(kernel) != 0) {
        fprintf(stderr, "kernels in host code need the software device\n");
        exit(99);
    }
    __hipRegisterFunction(NULL, stub, NULL, kernel->name, 0, NULL, NULL, NULL, NULL, NULL);
}

/* KERNEL(fill, ...params...): the body gets `work` and `args`; ARG(type, i) is argument i.
 *
 *   KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
 *       float *out = ARG(float *, 0);
 *       for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
 *           out[i] = 1;
 *   }
 *
 * KERNEL_ENTER(fill) in main makes it known; LAUNCH(fill, blocks, stream, &a, &b) launches it. */
#define KERNEL(name, ...)                                                                          \
    static char name##_stub;                                                                       \
    static void name##_run(const struct greta_soft_work *work, void *const *args);                 \
    static const struct greta_soft_param name##_params[] = { __VA_ARGS__ };                        \
    static const struct greta_soft_kernel name##_kernel = {                                        \
        #name, name##_run, name##_params, sizeof name##_params / sizeof *name##_params             \
    };                                                                                             \
    static void name##_run(const struct greta_soft_work *work, void *const *args)
#define ARG(type, i)       (*(type *)args[i])
#define KERNEL_ENTER(name) case_kernel(&name##_kernel, &name##_stub)
#define LAUNCH(name, blocks, stream, ...)                                                          \
    hipLaunchKernel(&name##_stub, (dim3){ (blocks), 1, 1 }, (dim3){ 64, 1, 1 },                    \
                    (void *[]){ __VA_ARGS__ }, 0, (stream))

#endif

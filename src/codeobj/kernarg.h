/* kernarg.h - what a dispatch puts into memory for a kernel: the kernarg segment with its hidden
 * arguments, the AQL packet, and the queue that the packet belongs to.
 *
 * Values only; pure functions. */
#ifndef CODEOBJ_KERNARG_H
#define CODEOBJ_KERNARG_H

#include <stddef.h>
#include <stdint.h>

#include "codeobj/codeobj.h"

/* What hidden arguments contain. Addresses are device addresses; 0 where something does not exist.
 */
struct codeobj_dispatch {
    uint32_t grid[3];  /* work-items */
    uint32_t block[3]; /* work-items per workgroup */
    uint32_t dims;     /* 1 to 3 */
    uint32_t dynamic_lds;
    uint64_t printf_buffer, hostcall_buffer, heap, multigrid_sync, default_queue, completion_action;
    uint64_t queue;
    uint64_t private_base, shared_base; /* apertures; the low 32 bits are 0 */
};

/* Bytes of the segment: what the descriptor and every argument need. */
uint32_t codeobj_kernarg_bytes(const struct codeobj_kernel *k);

/* The number of arguments the program passes, and the bytes up to the end of the last one. */
uint32_t codeobj_explicit_count(const struct codeobj_kernel *k);
uint32_t codeobj_explicit_bytes(const struct codeobj_kernel *k);

/* Writes the program's arguments, each from where params points, into a segment of
 * codeobj_kernarg_bytes() that is all zeros. RC_USAGE if one of them is NULL, RC_FORMAT if an
 * argument leaves the segment. */
NODISCARD enum rc codeobj_kernarg_pack(const struct codeobj_kernel *k, void *const *params,
                                       unsigned char *segment, struct err *e);

/* Writes the hidden arguments. RC_UNSUPPORTED for one that is not in value_kind.def: the kernel
 * would read zeros where it expects something. */
NODISCARD enum rc codeobj_kernarg_hide(const struct codeobj_kernel *k,
                                       const struct codeobj_dispatch *dispatch,
                                       unsigned char *segment, struct err *e);

/* hsa_kernel_dispatch_packet_t: what a kernel reads through its dispatch pointer. */
struct codeobj_packet {
    uint16_t header, setup;
    uint16_t workgroup_size[3], reserved0;
    uint32_t grid_size[3];
    uint32_t private_segment_size, group_segment_size;
    uint64_t kernel_object, kernarg_address, reserved2, completion_signal;
};
_Static_assert(sizeof(struct codeobj_packet) == 64, "the packet is 64 bytes by HSA");

void codeobj_packet_fill(struct codeobj_packet *out, const struct codeobj_dispatch *dispatch,
                         uint64_t kernel_object, uint64_t kernarg, uint32_t private_bytes,
                         uint32_t group_bytes);

/* The part of amd_queue_t that kernels read: the apertures, by which code object v4 and older tell
 * flat addresses of LDS and scratch. */
struct codeobj_queue {
    uint32_t type, features;
    uint64_t base_address, doorbell_signal;
    uint32_t size, reserved0;
    uint64_t id;
    uint32_t caps, reserved1[3];
    uint64_t write_dispatch_id;
    uint32_t group_aperture_hi, private_aperture_hi;
    uint32_t max_cu_id, max_wave_id;
    uint32_t rest[44];
};
_Static_assert(offsetof(struct codeobj_queue, group_aperture_hi) == 0x40, "amd_queue_t");
_Static_assert(sizeof(struct codeobj_queue) == 256, "amd_queue_t");

void codeobj_queue_fill(struct codeobj_queue *out, const struct codeobj_dispatch *dispatch);

#endif

/* descriptor.h - the 64 bytes that tell the hardware how to start a kernel (AMDGPUUsage, "Kernel
 * Descriptor"), and which of a wave's registers hold what it asks for, on gfx90a and gfx942.
 *
 * Values only; pure functions. */
#ifndef CODEOBJ_DESCRIPTOR_H
#define CODEOBJ_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "codeobj/codeobj.h"

enum { CODEOBJ_DESCRIPTOR_BYTES = 64 };

/* What a kernel asked for in SGPRs, in this order, as numbers of registers. */
enum codeobj_user_sgprs {
    CODEOBJ_SGPRS_PRIVATE_BUFFER = 4, /* V# of the scratch */
    CODEOBJ_SGPRS_POINTER = 2, /* dispatch packet, queue, kernarg, dispatch id, flat scratch */
    CODEOBJ_SGPRS_PRIVATE_SIZE = 1,
};

struct codeobj_descriptor {
    uint32_t group_bytes, private_bytes, kernarg_bytes;
    int64_t entry; /* of the first instruction, from the descriptor's own address */

    /* compute_pgm_rsrc1 */
    uint32_t vgprs, sgprs; /* allocated, decoded from granules; vgprs includes AGPRs */
    uint32_t mode;         /* as the MODE register starts: rounding, denormals, clamp, IEEE, FP16 */
    bool debug, privileged, bulky;
    uint8_t priority;
    /* compute_pgm_rsrc2 */
    bool has_private;   /* scratch is set up */
    uint8_t user_sgprs; /* how many; the workgroup's ids follow them */
    bool trap_handler;
    bool group_id[3]; /* workgroup ids wanted, x, y, z */
    bool group_info;
    uint8_t work_item_ids; /* 0: x, 1: x and y, 2: x, y and z */
    uint16_t lds_granules;
    uint8_t exceptions; /* those that trap; bits as in compute_pgm_rsrc2 from 24 on */
    bool traps_address_watch, traps_memory;
    /* compute_pgm_rsrc3 of gfx90a and gfx942 */
    uint32_t accum_offset; /* the first AGPR is this VGPR */
    bool tg_split;
    /* kernel_code_properties */
    bool private_buffer, dispatch_ptr, queue_ptr, kernarg_ptr, dispatch_id, flat_scratch_init;
    bool private_size, wavefront32, dynamic_stack;
    /* kernarg preload: dwords of the kernarg segment that start in SGPRs */
    uint8_t preload_count;
    uint16_t preload_offset;
};

/* From the bytes of a code object. The hardware accepts any bytes, so this cannot fail. */
void codeobj_descriptor_read(struct codeobj_descriptor *out,
                             const unsigned char bytes[CODEOBJ_DESCRIPTOR_BYTES]);

/* Where things are when a wave starts: numbers of the first SGPR, -1 for what is not there. */
struct codeobj_start {
    int8_t private_buffer, dispatch_ptr, queue_ptr, kernarg_ptr, dispatch_id, flat_scratch_init;
    int8_t private_size, preload;
    int8_t group_id[3], group_info;
    int8_t scratch_offset; /* bytes from the scratch's start to the wave's own; not on gfx942 */
    uint8_t count;         /* SGPRs in use */
    /* Code whose kernarg is preloaded begins with 256 bytes that load it on old firmware: the first
     * instruction is that far after the entry. */
    uint32_t entry_skip;
};

/* RC_FORMAT if the descriptor asks for more registers than it says it does. */
NODISCARD enum rc codeobj_descriptor_start(struct codeobj_start *out,
                                           const struct codeobj_descriptor *d,
                                           enum codeobj_processor processor, struct err *e);

/* The V# of scratch that gfx90a's code addresses through MUBUF: swizzled by lane, four bytes each.
 */
void codeobj_private_buffer(uint32_t out[4], uint64_t base, uint64_t bytes);

#endif

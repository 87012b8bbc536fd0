/* array.h - arrays: memory that textures and surfaces read and write.
 *
 * An array is linear here: rows of width elements without a gap, slices without a gap, in one block
 * of device memory. What programs hold is a pointer to the struct hipArray of ROCm 5, which they
 * may read; later releases keep it opaque. Thread-safe as HIP is: an array is not freed while it is
 * used. */
#ifndef SOFT_RUNTIME_ARRAY_H
#define SOFT_RUNTIME_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "hip/hip_types.h"
#include "soft/runtime/handle.h"

struct soft_array {
    struct soft_handle handle;
    struct hipArray seen; /* what the program's handle points at; height and depth may be 0 */
    uint64_t addr;
    size_t element, pitch, slice; /* bytes: of an element, from row to row, from slice to slice */
    size_t rows, slices;          /* at least 1 */
    unsigned flags;               /* hipArray... */
    int device;
};

/* The array behind a program's handle; NULL if it is none. */
struct soft_array *soft_array_of(hipArray_const_t handle);

/* Arrays and textures: false where the GPU has none (gfx942). */
bool soft_has_images(void);

/* Bits of each channel and their number; false if no image can have them. */
bool soft_channels(const hipChannelFormatDesc *desc, unsigned *bits, unsigned *count);

/* What driver and runtime call the same thing. */
hipChannelFormatDesc soft_channel_desc(hipArray_Format format, unsigned channels);
bool soft_array_format(const hipChannelFormatDesc *desc, hipArray_Format *out);

#endif

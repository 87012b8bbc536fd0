/* device.h - shared by the device*.c files: what the software device says it is.
 * Constants and pure functions; thread-safe. */
#ifndef SOFT_RUNTIME_DEVICE_H
#define SOFT_RUNTIME_DEVICE_H

#include "hip/hip_types.h"

/* "greta software device (AMD Instinct MI210)", as snprintf() does. */
int soft_device_name(char *out, size_t size);

/* Priorities run from least to greatest downwards, as in HIP on AMD. */
enum { SOFT_PRIORITY_LEAST = 1, SOFT_PRIORITY_GREATEST = -1 };

/* Sixteen characters, the same in every process and different for each device. */
void soft_device_uuid(int device, hipUUID *out);

#endif

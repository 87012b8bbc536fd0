/* device.h - shared by the device*.c files: what the software device says it is.
 * Constants and pure functions; thread-safe. */
#ifndef SOFT_RUNTIME_DEVICE_H
#define SOFT_RUNTIME_DEVICE_H

#include "soft/runtime/soft.h"

#define SOFT_DEVICE_NAME "greta software device"

/* Priorities run from least to greatest downwards, as in HIP on AMD. */
enum { SOFT_PRIORITY_LEAST = 1, SOFT_PRIORITY_GREATEST = -1 };

/* Sixteen characters that are the same in every process and differ between devices. */
void soft_device_uuid(int device, hipUUID *out);

#endif

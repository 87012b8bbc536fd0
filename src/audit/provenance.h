/* provenance.h - what made this run: binary, command line, environment, device, system. */
#ifndef AUDIT_PROVENANCE_H
#define AUDIT_PROVENANCE_H

#include "hip/hip_api.h"
#include "record/writer.h"

/* Writes all but the devices into the recording, as definitions. runtime_path may be NULL. Makes no
 * HIP call: what registers the kernels of a program, before main(), does not initialise HIP either,
 * and a program that then forks has HIP in its child. */
void provenance_write(writer *w, const char *runtime_path);

/* Writes versions and devices. Initialises HIP, so it waits for a call of the program's that does.
 */
void provenance_write_devices(writer *w, const struct hip_api *api);

#endif

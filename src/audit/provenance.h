/* provenance.h - what made this run: binary, command line, environment, device, system. */
#ifndef AUDIT_PROVENANCE_H
#define AUDIT_PROVENANCE_H

#include "hip/hip_api.h"
#include "record/writer.h"

/* Writes it into the recording as definitions. runtime_path may be NULL. */
void provenance_write(writer *w, const struct hip_api *api, const char *runtime_path);

#endif

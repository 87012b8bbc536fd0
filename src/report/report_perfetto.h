/* report_perfetto.h - a recording as a trace that ui.perfetto.dev (and chrome://tracing) opens.
 *
 * JSON of the Chrome trace event format. Each process has its host threads as tracks, with a slice
 * per call; each device has its streams as tracks, with a slice per operation, drawn where it was
 * queued: when the device really ran it the recording does not say. Arrows go from the culprit to
 * the messenger, from a recorded event to the call that waits for it, and from a launch to its
 * fault; memory is a counter per family.
 *
 * The stream stays the caller's; nothing is changed. Any number of threads, each with its own
 * stream. */
#ifndef VERDICT_REPORT_PERFETTO_H
#define VERDICT_REPORT_PERFETTO_H

#include <stdio.h>

#include "verdict/verdict.h"

/* RC_MEMORY; RC_IO if the stream has failed. */
NODISCARD enum rc report_perfetto(FILE *out, const verdict *v, const reader *r, struct err *e);

#endif

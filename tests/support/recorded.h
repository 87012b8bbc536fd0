/* recorded.h - engines in child processes under a recording, and the verdict on it.
 *
 * A process reads its settings once and has one recording, so that every run is a process of its
 * own; what it computed it leaves in memory that it shares with the test. One such memory and one
 * recording per test program. Failures end the test. */
#ifndef SUPPORT_RECORDED_H
#define SUPPORT_RECORDED_H

#include <stddef.h>
#include <stdint.h>

#include "infer/engine.h"
#include "verdict/verdict.h"

/* What every run leaves. */
struct recorded {
    enum rc rc;
    char message[512];
    uint64_t logits; /* a hash of all */
    int32_t tokens[64];
    size_t count;
};

/* The shared memory, of a struct that begins with a struct recorded; NULL if there is none. */
void *recorded_open(size_t bytes);
void recorded_close(void);

/* Runs work(argument) in a child, with the shared memory zeroed and a recording that begins with
 * its first HIP call; name is for the message if it does not exit with 0. */
void recorded_run(const char *name, void (*work)(const void *argument), const void *argument);

/* The verdict on the recording of the last run. */
verdict *recorded_judge(void);
const char *recorded_path(void);

/* Callbacks of requests: add logits to the hash (user: the engine), keep the tokens of a finished
 * sequence. */
enum rc recorded_add_logits(uint32_t position, int32_t token, const float *logits, void *user,
                            struct err *e);
void recorded_keep_tokens(uint32_t sequence, const struct engine_finished *f, void *user);

#endif

/* A ring of small slots in one pinned block. With its bug the program waits for the event of the
 * wrong slot, so that a slot is filled again while its upload may still read it. The slots share
 * pages, and the other slots may be written at any time.
 *
 * Expect: verdict FINDINGS; hypothesis STAGING_REUSE; also STREAM_UNSYNCED;
 *         culprit site=push; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { SLOTS = 4, BYTES = 512, ROUNDS = 3 };

static char *ring, *device;
static hipEvent_t done[SLOTS];
static hipStream_t stream;

void push(int number) {
    int slot = number % SLOTS, wait = BUG ? (slot + SLOTS / 2) % SLOTS : slot;
    if (number >= SLOTS)
        CHECK(hipEventSynchronize(done[wait]));
    for (int i = 0; i < BYTES; i++)
        ring[slot * BYTES + i] = (char)number;
    CHECK(hipMemcpyAsync(device + (size_t)number * BYTES, ring + slot * BYTES, BYTES,
                         hipMemcpyHostToDevice, stream));
    CHECK(hipEventRecord(done[slot], stream));
}

int main(void) {
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipHostMalloc((void **)&ring, SLOTS * BYTES, 0));
    CHECK(hipMalloc((void **)&device, (size_t)ROUNDS * SLOTS * BYTES));
    for (int i = 0; i < SLOTS; i++)
        CHECK(hipEventCreate(&done[i]));
    /* In order 0 1 2 3, then backwards, so that the newest slot comes first. */
    for (int i = 0; i < SLOTS; i++)
        push(i);
    for (int i = 2 * SLOTS - 1; i >= SLOTS; i--)
        push(i);
    CHECK(hipStreamSynchronize(stream));
    for (int i = 0; i < SLOTS; i++)
        CHECK(hipEventDestroy(done[i]));
    CHECK(hipHostFree(ring));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}

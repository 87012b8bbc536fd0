/* A byte in a pipe tells another thread that a buffer is filled.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include <unistd.h>

#include "case_relay.h"

static int end[2];

static void hand_over(void) {
    if (write(end[1], "", 1) != 1)
        exit(1);
}

static void take_over(void) {
    char byte;
    if (read(end[0], &byte, 1) != 1)
        exit(1);
}

int main(void) {
    return pipe(end) == 0 ? relay() : 1;
}

/* A message through a pair of sockets tells another thread that a buffer is filled.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include <sys/socket.h>

#include "case_relay.h"

static int end[2];

static void hand_over(void) {
    if (send(end[1], "", 1, 0) != 1)
        exit(1);
}

static void take_over(void) {
    char byte;
    if (recv(end[0], &byte, 1, 0) != 1)
        exit(1);
}

int main(void) {
    return socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0 ? relay() : 1;
}

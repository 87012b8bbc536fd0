/* The device buffers of a list are freed, the pinned ones are not.
 *
 * Expect: verdict FINDINGS; hypothesis LEAK;
 *         culprit hipHostMalloc site=add; messenger none */
#include "case.h"

struct item {
    struct item *next;
    void *device, *host;
};

struct item *add(struct item *list) {
    struct item *i = malloc(sizeof *i);
    if (!i)
        exit(1);
    CHECK(hipMalloc(&i->device, 512));
    CHECK(hipHostMalloc(&i->host, 512, 0));
    i->next = list;
    return i;
}

int main(void) {
    struct item *list = NULL;
    for (int i = 0; i < 3; i++)
        list = add(list);
    while (list) {
        struct item *i = list;
        list = i->next;
        CHECK(hipFree(i->device));
        if (!BUG)
            CHECK(hipHostFree(i->host));
        free(i);
    }
    return 0;
}

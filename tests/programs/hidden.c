/* Calls HIP from functions that nobody can see from outside: static ones, in a program that exports
 * none (and, with an argument, from a thread). */
#include <pthread.h>

#include "program.h"

__attribute__((noinline)) static void *fill_in_secret(void *unused) {
    void *device = NULL;
    CHECK(hipMalloc(&device, 512));
    CHECK(hipMemset(device, 3, 512));
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    (void)argv;
    if (argc > 1 && pthread_create(&thread, NULL, fill_in_secret, NULL) == 0)
        pthread_join(thread, NULL);
    else
        fill_in_secret(NULL);
    return 0;
}

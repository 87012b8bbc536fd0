/* Sums numbers that went to the device and back; ends with the status it is given. Says what it was
 * built from. */
#include "program.h"

extern const char gcore_program_commit[];
const char gcore_program_commit[] = "00112233445566778899aabbccddeeff00112233";

int *round_trip(const int *numbers, size_t bytes);
__attribute__((noinline)) int *round_trip(const int *numbers, size_t bytes) {
    int *back = malloc(bytes);
    void *device = NULL;
    CHECK(hipMalloc(&device, bytes));
    CHECK(hipMemcpy(device, numbers, bytes, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(back, device, bytes, hipMemcpyDeviceToHost));
    CHECK(hipFree(device));
    return back;
}

int main(int argc, char **argv) {
    int numbers[100], sum = 0;
    for (int i = 0; i < 100; i++)
        numbers[i] = i;
    int *back = round_trip(numbers, sizeof numbers);
    for (int i = 0; i < 100; i++)
        sum += back[i];
    free(back);
    printf("sum=%d\n", sum);
    fprintf(stderr, "this is for standard error\n");
    return argc > 1 ? atoi(argv[1]) : 0;
}

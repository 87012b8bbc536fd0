/* Tensors of one arena, named with gcore_name_range(): with the argument "bug" a kernel runs past
 * one into the next. tensors CODE_OBJECT [bug] */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <gcore/audit.h>
#include <gcore/d2h.h>

typedef void *handle;
enum { ROWS = 64, HOST_TO_DEVICE = 1 };

/* Calls the HIP function of that name with these arguments; ends the program if it fails. */
#define HIP(name, types, ...)                                                                      \
    do {                                                                                           \
        int(*call) types = (int(*) types)gcore_hip_function(#name);                                \
        int error = call ? call(__VA_ARGS__) : -1;                                                 \
        if (error) {                                                                               \
            fprintf(stderr, "%s: error %d\n", #name, error);                                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int launch(handle module, const char *kernel, void **arguments) {
    handle function;
    HIP(hipModuleGetFunction, (handle *, handle, const char *), &function, module, kernel);
    HIP(hipModuleLaunchKernel,
        (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle,
         void **, void **),
        function, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL);
    HIP(hipDeviceSynchronize, (void));
    return 0;
}

int main(int argc, char **argv) {
    char message[256];
    handle module, arena, counts;
    int is_bug = argc > 2 && !strcmp(argv[2], "bug");
    int32_t count[3] = { is_bug ? ROWS + 3 : ROWS, 3 * ROWS, is_bug ? ROWS : ROWS - 4 };
    if (argc < 2 || gcore_open("soft", message, sizeof message)) {
        fprintf(stderr, "%s\n", argc < 2 ? "usage: tensors CODE_OBJECT [bug]" : message);
        return 2;
    }
    HIP(hipModuleLoad, (handle *, const char *), &module, argv[1]);
    HIP(hipMalloc, (handle *, size_t), &arena, 3 * ROWS * sizeof(float));
    HIP(hipMalloc, (handle *, size_t), &counts, sizeof count);
    HIP(hipMemcpy, (void *, const void *, size_t, int), counts, count, sizeof count,
        HOST_TO_DEVICE);
    float *query = (float *)arena, *key = query + ROWS, *value = key + ROWS;
    void *all[] = { &query, &counts };
    if (launch(module, "whole", all)) /* allowed: nothing is named yet */
        return 1;
    if (gcore_name_range(query, (ROWS - 2) * sizeof(float), "query") ||
        gcore_name_range(key, ROWS * sizeof(float), "key") ||
        gcore_name_range(value, ROWS * sizeof(float), "value"))
        return 1;
    void *some[] = { &key, &query, &counts };
    if (launch(module, "scale", some) || launch(module, "quads", all))
        return 1;
    if (gcore_unname_range(query) || launch(module, "whole", all)) /* allowed again */
        return 1;
    HIP(hipFree, (handle), arena);
    HIP(hipFree, (handle), counts);
    HIP(hipModuleUnload, (handle), module);
    gcore_close();
    puts("PASS");
    return 0;
}

#include "infer/demo.h"

/* GRETA_DEMO_MODEL: the file's path, from the build. */
__asm__(".section .rodata\n"
        ".balign 64\n"
        "demo_model_begin:\n"
        ".incbin \"" GRETA_DEMO_MODEL "\"\n"
        "demo_model_end:\n"
        ".previous\n");

extern const char demo_model_begin[] __attribute__((visibility("hidden")));
extern const char demo_model_end[] __attribute__((visibility("hidden")));

const void *demo_model(size_t *size) {
    *size = (size_t)(demo_model_end - demo_model_begin);
    return demo_model_begin;
}

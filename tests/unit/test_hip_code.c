/* The code objects that the build embeds: all kernels for every architecture, with the arguments of
 * kernel.def, and nothing spilled. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "codeobj/codeobj.h"
#include "kernels/hip/image.h"
#include "kernels/spec.h"

static void every_kernel_has_gpu_code_with_its_arguments(void **state) {
    (void)state;
    if (!strcmp(image_origin(), "none"))
        skip();
    static const char *const targets[] = { "gfx90a:sramecc+:xnack-", "gfx942:sramecc+:xnack-",
                                           "gfx1100" };
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        struct codeobj_image image = { 0 };
        struct codeobj_list *list = NULL;
        struct err e = { 0 };
        if (image_find(targets[t], &image, &e) ||
            codeobj_list_open(&list, image.bytes, image.size, &e))
            fail_msg("%s: %s", targets[t], e.msg);
        for (int k = 0; k < KERN_COUNT; k++) {
            const struct spec *s = &spec_table[k];
            const struct codeobj_kernel *code = codeobj_list_kernel(list, s->name);
            if (k == KERN_repack) /* this device multiplies weights as they are in the file */
                continue;
            if (!code) {
                fail_msg("%s: no code for %s", targets[t], s->name);
                continue;
            }
            assert_int_equal(code->max_threads, s->threads);
            if (code->private_bytes || code->vgpr_spills || code->sgpr_spills)
                fail_msg("%s: %s spills registers", targets[t], s->name);
            uint32_t n = 0;
            for (uint32_t i = 0; i < code->argument_count; i++)
                n += !code->arguments[i].is_hidden;
            assert_int_equal(n, s->param_count);
        }
        codeobj_list_close(&list);
        free(image.bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_has_gpu_code_with_its_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

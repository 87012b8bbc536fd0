/* test_audit_code.c - what the audit learns about kernels from code objects: layouts of registered
 * fat binaries and loaded modules, and types from the names of kernels. */
#include "unit/audit_fake.h"

#include "audit/code.h"
#include "audit/kernel.h"
#include "test_soft_module_elf.h"

enum { GFX90A = 0x3f, GFX942 = 0x4c };

static char path[64];

static int setup(void **state) {
    (void)state;
    strcpy(path, "/tmp/greta-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    fake_attach_with((struct audit_config){ .record = { .path = path, .events = 65536 } }, false);
    return 0;
}

static int teardown(void **state) {
    unlink(path);
    return fake_detach(state);
}

/* ---- layouts ------------------------------------------------------------------------------- */

static struct image build_bundle(void) {
    struct bundle_entry entries[] = { { "host-x86_64-unknown-linux--", { 0 } },
                                      { "hipv4-amdgcn-amd-amdhsa--gfx942", elf_build(GFX942) } };
    struct image b = bundle_build(entries, 2, 64);
    free(entries[1].image.bytes);
    return b;
}

/* Of the kernel that elf_build() makes: a pointer that is read, and a number. */
static void check_layout(const struct kernel *k) {
    assert_string_equal(k->name, "vadd");
    assert_non_null(k->layout);
    assert_int_equal(k->layout->count, 2);
    assert_true(k->layout->has_offsets);
    assert_int_equal(k->layout->param[0].access, EVENT_ARG_READ);
    assert_int_equal(k->layout->param[0].size, 8);
    assert_int_equal(k->layout->param[1].access, 0);
    assert_int_equal(k->layout->param[1].offset, 8);
    assert_false(k->layout->param[1].opaque);
    assert_true(k->layout->reaches); /* what the pointer points at is not known */
}

static void kernels_of_a_fat_binary_have_arguments(void **state) {
    (void)state;
    static int handle, stub, other;
    struct image b = build_bundle();
    struct hip_fatbin_wrapper wrapper = { HIP_FATBIN_MAGIC, HIP_FATBIN_VERSION, b.bytes, NULL };
    code_enter_fatbin(&handle, &wrapper);
    kernel_enter(&stub, "vadd", &handle);
    kernel_enter(&other, "wadd", &handle);
    struct kernel k = kernel_find(&stub);
    check_layout(&k);
    assert_null(kernel_find(&other).layout); /* not in it */

    uint64_t x = 0x7f0000001000, bytes;
    uint32_t n = 5;
    void *params[] = { &x, &n };
    struct event_arg args[8];
    assert_int_equal(kernel_pointers(&k, params, NULL, args, 8, &bytes), 2);
    assert_int_equal(args[0].flags, EVENT_ARG_READ);
    assert_int_equal(args[0].value, x);
    assert_int_equal(args[1].flags, EVENT_ARG_NUMBER);
    assert_int_equal(args[1].value, 5);

    /* The same in one block. */
    unsigned char block[12];
    size_t size = sizeof block;
    memcpy(block, &x, 8);
    memcpy(block + 8, &n, 4);
    void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, block, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      HIP_LAUNCH_PARAM_END };
    assert_int_equal(kernel_pointers(&k, NULL, extra, args, 8, &bytes), 2);
    assert_int_equal(args[0].flags, EVENT_ARG_READ);
    assert_int_equal(args[1].value, 5);
    assert_int_equal(bytes, sizeof block);
    size = 8; /* too small for the second */
    assert_int_equal(kernel_pointers(&k, NULL, extra, args, 8, &bytes), 1);

    static int alias;
    kernel_alias(&alias, &stub);
    k = kernel_find(&alias);
    check_layout(&k);
    free(b.bytes);
}

static void a_fat_binary_that_is_gone_is_not_read(void **state) {
    (void)state;
    static int handle, stub;
    struct hip_fatbin_wrapper wrapper = { HIP_FATBIN_MAGIC, HIP_FATBIN_VERSION, (void *)64, NULL };
    code_enter_fatbin(&handle, &wrapper);
    kernel_enter(&stub, "vadd", &handle);
    code_leave(&handle);
    assert_null(kernel_find(&stub).layout);
    /* One whose memory cannot be read, and one that is no image, are no reason to crash. */
    static int wild, stub2;
    code_enter_fatbin(&wild, &wrapper);
    kernel_enter(&stub2, "vadd", &wild);
    assert_null(kernel_find(&stub2).layout);
}

static void images_of_modules_may_be_freed_at_once(void **state) {
    (void)state;
    static int module, function, file, function2;
    struct image b = build_bundle();
    code_enter_image(&module, b.bytes);
    char name[] = "/tmp/greta-test-code-XXXXXX";
    int fd = mkstemp(name);
    assert_int_equal(write(fd, b.bytes, b.size), (ssize_t)b.size);
    close(fd);
    memset(b.bytes, 0, b.size);
    free(b.bytes);
    code_enter_file(&file, name);
    unlink(name);
    kernel_enter(&function, "vadd", &module);
    kernel_enter(&function2, "vadd", &file);
    struct kernel k = kernel_find(&function);
    check_layout(&k);
    k = kernel_find(&function2);
    check_layout(&k);
}

static void a_handle_used_again_stands_for_the_new_module(void **state) {
    (void)state;
    static int module, function;
    struct image b = build_bundle();
    code_enter_image(&module, "nothing that is an image, and long enough to be looked at");
    kernel_enter(&function, "vadd", &module);
    assert_null(kernel_find(&function).layout);
    code_enter_image(&module, b.bytes);
    kernel_enter(&function, "vadd", &module);
    struct kernel k = kernel_find(&function);
    check_layout(&k);
    free(b.bytes);
}

/* ---- types --------------------------------------------------------------------------------- */

/* A layout as metadata gives it: p is a pointer, digits are values of that many bytes (8 and more
 * may hold pointers). */
static struct kernel_layout layout_of(const char *kinds) {
    struct kernel_layout l = { .has_offsets = true };
    for (; *kinds; kinds++, l.count++) {
        struct kernel_param *p = &l.param[l.count];
        bool pointer = *kinds == 'p';
        *p = (struct kernel_param){ .size = pointer ? 8 : (uint32_t)(*kinds - '0'),
                                    .access = pointer ? EVENT_ARG_READ | EVENT_ARG_WRITE : 0,
                                    .opaque = *kinds >= '8' && !pointer,
                                    .leads_on = pointer };
    }
    return l;
}

/* One letter per parameter: r, w (read and write), capital if it leads on; n a number, S a struct.
 */
static void check_types(const char *signature, const char *kinds, const char *expected) {
    struct kernel_layout l = layout_of(kinds);
    char found[KERNEL_PARAMS_MAX + 1] = "";
    assert_true(code_add_signature(signature, &l));
    for (unsigned i = 0; i < l.count; i++) {
        const struct kernel_param *p = &l.param[i];
        char c = (char)(p->access == EVENT_ARG_READ ? 'r' : p->access ? 'w' : 'n');
        found[i] = (char)(p->leads_on ? c - 'a' + 'A' : p->opaque ? 'S' : c);
    }
    assert_string_equal(found, expected);
}

static void types_come_from_signatures(void **state) {
    (void)state;
    check_types("saxpy(int, float, float const*, float*, S)", "44pp9", "nnrwS");
    check_types("void fill<double>(double*, double, unsigned long)", "p88", "wnn");
    check_types("k(float**, float const* const*, void*, void const*)", "pppp", "WRWR");
    check_types("(anonymous namespace)::k(Node*, Node const*)", "pp", "WR");
    check_types("void ns::k<int, (E)1>(HIP_vector_type<float, 4u>*, __half const*)", "pp", "wr");
    check_types("void k<void (*)(int, int)>(int volatile*, std::pair<int, char*>)", "p9", "wS");
    check_types("k(float const* __restrict, long, dim3)", "p89", "rnn");
    check_types("k()", "", "");
    check_types("k(void (*)(float*, int), long long)", "88", "Sn");
}

static void signatures_that_do_not_fit_change_nothing(void **state) {
    (void)state;
    struct kernel_layout l = layout_of("pp"), same = l;
    assert_false(code_add_signature("k(float const*)", &l));
    assert_false(code_add_signature("k(float const*, int, int)", &l));
    assert_false(code_add_signature("k", &l));
    assert_false(code_add_signature("", &l));
    assert_false(code_add_signature("k(a, b))", &l));
    assert_false(code_add_signature("k(a<b, c)", &l));
    assert_memory_equal(&l, &same, sizeof l);
    code_add_types("plain_c_name", &l);
    assert_memory_equal(&l, &same, sizeof l);
}

static void words_of_a_struct_are_guesses(void **state) {
    (void)state;
    struct kernel_layout l = { .count = 2, .reaches = true };
    l.param[0] = (struct kernel_param){ .size = 40, .opaque = true };
    l.param[1] = (struct kernel_param){ .size = 8, .opaque = true };
    uint64_t by_value[5] = { 7, 0x7f1234567000, 0x3ff0000000000000, 0x7f0000000008, 0 }, count = 9;
    void *params[] = { by_value, &count };
    struct kernel k = { .name = "k", .layout = &l };
    struct event_arg args[8];
    uint64_t bytes;
    assert_int_equal(kernel_pointers(&k, params, NULL, args, 8, &bytes), 3);
    assert_int_equal(args[0].flags, EVENT_ARG_GUESSED);
    assert_int_equal(args[0].value, by_value[1]);
    assert_int_equal(args[0].index, 0);
    assert_int_equal(args[1].value, by_value[3]);
    assert_int_equal(args[2].flags, EVENT_ARG_NUMBER);
    assert_int_equal(args[2].value, 9);
    assert_int_equal(kernel_pointers(&k, params, NULL, args, 1, &bytes), 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(kernels_of_a_fat_binary_have_arguments),
        TEST(a_fat_binary_that_is_gone_is_not_read),
        TEST(images_of_modules_may_be_freed_at_once),
        TEST(a_handle_used_again_stands_for_the_new_module),
        cmocka_unit_test(types_come_from_signatures),
        cmocka_unit_test(signatures_that_do_not_fit_change_nothing),
        cmocka_unit_test(words_of_a_struct_are_guesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_soft_module_list.c - reading code objects without a device: kernels, arguments, variables,
 * and images that contradict themselves. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "codeobj/codeobj.h"
#include "test_soft_module_elf.h"

enum { GFX90A = 0x3f, GFX942 = 0x4c };

static struct codeobj_list *open_good(const struct image *i) {
    struct codeobj_list *list = NULL;
    struct err e = { 0 };
    if (codeobj_list_open(&list, i->bytes, i->size, &e))
        fail_msg("%s", e.msg);
    return list;
}

static void kernels_have_sizes_and_arguments(void **state) {
    (void)state;
    struct image elf = elf_build(GFX942);
    struct codeobj_list *list = open_good(&elf);
    assert_int_equal(list->processor, CODEOBJ_GFX942);
    assert_int_equal(list->kernel_count, 1);
    const struct codeobj_kernel *k = codeobj_list_kernel(list, "vadd");
    assert_non_null(k);
    assert_null(codeobj_list_kernel(list, "vadd.kd"));
    assert_int_equal(k->kernarg_bytes, 12);
    assert_int_equal(k->group_bytes, 512);
    assert_int_equal(k->private_bytes, 16);
    assert_int_equal(k->max_threads, 256);
    assert_int_equal(k->vgprs, 64);
    assert_int_equal(k->sgprs, 16);
    assert_int_equal(k->agprs, 32);
    assert_int_equal(k->vgpr_spills, 5);
    assert_int_equal(k->sgpr_spills, 300);
    assert_int_equal(k->entry, k->descriptor + 64);
    assert_int_equal(k->argument_count, 2);
    assert_true(k->arguments[0].is_pointer && k->arguments[0].is_read_only);
    assert_int_equal(k->arguments[0].size, 8);
    assert_int_equal(k->arguments[1].offset, 8);
    assert_int_equal(k->arguments[1].size, 4);
    assert_false(k->arguments[1].is_pointer || k->arguments[1].is_hidden);
    codeobj_list_close(&list);
    assert_null(list);
    codeobj_list_close(&list);
    free(elf.bytes);
}

static void variables_know_their_initial_bytes(void **state) {
    (void)state;
    struct image elf = elf_build(GFX90A);
    struct codeobj_list *list = open_good(&elf);
    const struct codeobj_variable *table = codeobj_list_variable(list, "table");
    const struct codeobj_variable *zeros = codeobj_list_variable(list, "zeros");
    assert_non_null(table);
    assert_int_equal(table->size, sizeof ELF_TABLE);
    assert_memory_equal(table->initial, ELF_TABLE, sizeof ELF_TABLE);
    assert_non_null(zeros);
    assert_int_equal(zeros->size, 300);
    assert_null(zeros->initial);
    assert_null(codeobj_list_variable(list, "vadd"));
    codeobj_list_close(&list);
    free(elf.bytes);
}

/* The header of section i. */
static Elf64_Shdr *section(struct image *elf, size_t i) {
    uint64_t at;
    memcpy(&at, elf->bytes + offsetof(Elf64_Ehdr, e_shoff), sizeof at);
    return (Elf64_Shdr *)(elf->bytes + at) + i;
}

static Elf64_Sym *symbol(struct image *elf, size_t i) {
    return (Elf64_Sym *)(elf->bytes + section(elf, 1)->sh_offset) + i;
}

static void expect(struct image *elf, enum rc expected) {
    struct codeobj_list *list = NULL;
    struct err e = { 0 };
    enum rc rc = codeobj_list_open(&list, elf->bytes, elf->size, &e);
    assert_int_equal(rc, expected);
    assert_true(!list == (rc != RC_OK));
    assert_true(rc == RC_OK || e.msg[0]);
    codeobj_list_close(&list);
    free(elf->bytes);
}

static void contradictions_are_format_errors(void **state) {
    (void)state;
    struct image elf = elf_build(0x36); /* whether a device takes it is the device's business */
    expect(&elf, RC_OK);
    elf = elf_build(GFX90A);
    elf.bytes[EI_CLASS] = ELFCLASS32;
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    elf.bytes[EI_OSABI] = 0;
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    elf.size = 63;
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    memset(elf.bytes + offsetof(Elf64_Ehdr, e_shoff), 0xff, 8); /* wraps with the size added */
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    section(&elf, 1)->sh_link = 99;
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    section(&elf, 2)->sh_size -= 1; /* the last name has no end */
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    symbol(&elf, 1)->st_name = 1 << 20;
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    symbol(&elf, 1)->st_value = UINT64_MAX - 8; /* the descriptor wraps */
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    symbol(&elf, 2)->st_size = UINT64_MAX;
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    symbol(&elf, 2)->st_shndx = 77;
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    section(&elf, 4)->sh_offset = UINT64_MAX;
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    section(&elf, 6)->sh_size = 40; /* the note is cut */
    expect(&elf, RC_FORMAT);
    elf = elf_build(GFX90A);
    symbol(&elf, 2)->st_shndx = SHN_ABS; /* not a variable, and no error */
    expect(&elf, RC_OK);
}

/* A list in a list in a list … must not be followed without end. */
static void deep_metadata_is_refused(void **state) {
    (void)state;
    struct image deep = { 0 };
    image_put(&deep, "\x81", 1);
    image_text(&deep, "x");
    for (int i = 0; i < 100000; i++)
        image_put(&deep, "\x91", 1);
    struct codeobj_list list = { 0 };
    struct err e = { 0 };
    assert_int_equal(codeobj_list_read_metadata(&list, deep.bytes, deep.size, &e), RC_FORMAT);
    /* A count far beyond the document. */
    static const unsigned char huge[] = { 0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1, 'x' };
    assert_int_equal(codeobj_list_read_metadata(&list, huge, sizeof huge, &e), RC_FORMAT);
    free(deep.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_have_sizes_and_arguments),
        cmocka_unit_test(variables_know_their_initial_bytes),
        cmocka_unit_test(contradictions_are_format_errors),
        cmocka_unit_test(deep_metadata_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

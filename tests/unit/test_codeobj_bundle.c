/* test_codeobj_bundle.c - the code object for a target in bundles, plain and compressed, in memory
 * of unknown size; and images that lie. */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "codeobj/bundle.h"
#include "codeobj/codeobj.h"
#include "test_soft_module_elf.h"

enum { GFX90A = 0x3f, GFX942 = 0x4c };
static const char MI210[] = "gfx90a:sramecc+:xnack-";
static const char MI300[] = "gfx942:sramecc+:xnack-";

/* A bundle for the host, gfx90a and gfx942, as clang writes it. */
static struct image build_bundle(void) {
    struct bundle_entry entries[] = {
        { "host-x86_64-unknown-linux--", { 0 } },
        { "hipv4-amdgcn-amd-amdhsa--gfx90a", elf_build(GFX90A) },
        { "hipv4-amdgcn-amd-amdhsa--gfx942:xnack-", elf_build(GFX942) },
    };
    struct image b = bundle_build(entries, 3, 4096);
    free(entries[1].image.bytes);
    free(entries[2].image.bytes);
    return b;
}

static struct image compress_bundle(const struct image *plain, int version, bool zstd) {
    size_t room = zstd ? ZSTD_compressBound(plain->size) : compressBound(plain->size);
    unsigned char *data = malloc(room);
    uLongf made = room;
    if (zstd)
        made = ZSTD_compress(data, room, plain->bytes, plain->size, 3);
    else
        assert_int_equal(compress2(data, &made, plain->bytes, plain->size, 6), Z_OK);
    struct image out = { 0 };
    uint16_t words[] = { (uint16_t)version, zstd };
    uint64_t hash = 0x1234, size = plain->size;
    size_t head = version == 1 ? 20 : version == 2 ? 24 : 32, width = version == 3 ? 8 : 4;
    uint64_t file = head + made;
    image_put(&out, "CCOB", 4);
    image_put(&out, words, sizeof words);
    if (version > 1)
        image_put(&out, &file, width);
    image_put(&out, &size, width);
    image_put(&out, &hash, sizeof hash);
    image_put(&out, data, made);
    free(data);
    return out;
}

/* Which processor's code comes out; 0 if none does. */
static int processor_of(enum rc rc, struct codeobj_image *found) {
    struct codeobj_list *list = NULL;
    struct err e = { 0 };
    if (rc)
        return 0;
    assert_int_equal(codeobj_list_open(&list, found->bytes, found->size, &e), RC_OK);
    int processor = (int)list->processor;
    assert_non_null(codeobj_list_kernel(list, "vadd"));
    codeobj_list_close(&list);
    free(found->bytes);
    return processor;
}

static int take(const struct image *i, const char *target) {
    struct codeobj_image found = { 0 };
    return processor_of(codeobj_from_bytes(i->bytes, i->size, target, &found, NULL), &found);
}

static void a_bundle_gives_the_code_of_the_target(void **state) {
    (void)state;
    struct image b = build_bundle();
    assert_int_equal(take(&b, MI210), GFX90A);
    assert_int_equal(take(&b, MI300), GFX942);
    assert_int_equal(take(&b, "gfx942:sramecc+:xnack+"), 0);
    assert_int_equal(take(&b, "gfx1100"), 0);
    assert_int_equal(take(&b, NULL), GFX90A); /* any */
    free(b.bytes);
}

static void targets_are_rated(void **state) {
    (void)state;
    static const char id[] = "hipv4-amdgcn-amd-amdhsa--";
    char full[100];
    const struct {
        const char *code, *device;
        int rating;
    } rows[] = {
        { "gfx90a", MI210, 100 },
        { "gfx90a:xnack-", MI210, 101 },
        { "gfx90a:sramecc+:xnack-", MI210, 102 },
        { "gfx90a:xnack+", MI210, 0 },
        { "gfx90a:sramecc-", MI210, 0 },
        { "gfx90", MI210, 0 },
        { "gfx90ab", MI210, 0 },
        { "gfx9-4-generic", MI300, 1 },
        { "gfx9-4-generic:xnack-", MI300, 2 },
        { "gfx9-generic", MI210, 0 },
        { "gfx11-generic", "gfx1100", 1 },
        { "gfx90a:xnack-", "gfx90a", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(full, sizeof full, "%s%s", id, rows[i].code);
        assert_int_equal(codeobj_rate_target(full, rows[i].device), rows[i].rating);
    }
    assert_int_equal(codeobj_rate_target("hip-amdgcn-amd-amdhsa-gfx90a", MI210), 100);
    assert_int_equal(codeobj_rate_target("host-x86_64-unknown-linux", NULL), 0);
    assert_int_equal(codeobj_rate_target("host-x86_64-unknown-linux", MI210), 0);
}

static void compressed_bundles_of_all_versions_are_read(void **state) {
    (void)state;
    struct image b = build_bundle();
    for (int version = 1; version <= 3; version++)
        for (int zstd = 0; zstd < 2; zstd++) {
            struct image c = compress_bundle(&b, version, zstd);
            assert_int_equal(take(&c, MI300), GFX942);
            assert_int_equal(take(&c, "gfx1100"), 0);
            free(c.bytes);
        }
    free(b.bytes);
}

/* The last byte of the image is the last of a page; the next page cannot be read. */
static void images_of_unknown_size_are_read_up_to_the_end_of_memory(void **state) {
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct image b = build_bundle(), elf = elf_build(GFX90A);
    struct image all[4] = { b, compress_bundle(&b, 1, false), compress_bundle(&b, 1, true), elf };
    for (int i = 0; i < 4; i++) {
        size_t room = (all[i].size + page - 1) / page * page;
        unsigned char *m =
            mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(m != MAP_FAILED);
        assert_int_equal(mprotect(m + room, page, PROT_NONE), 0);
        unsigned char *image = m + room - all[i].size;
        memcpy(image, all[i].bytes, all[i].size);
        struct codeobj_image found = { 0 };
        assert_int_equal(processor_of(codeobj_from_memory(image, MI210, &found, NULL), &found),
                         GFX90A);
        /* A page is missing in the middle. */
        if (room > page) {
            assert_int_equal(mprotect(m, page, PROT_NONE), 0);
            struct err e = { 0 };
            assert_int_equal(codeobj_from_memory(image, MI210, &found, &e), RC_FORMAT);
            assert_true(e.msg[0] != 0);
        }
        munmap(m, room + page);
        free(all[i].bytes);
    }
}

static enum rc read_bytes(const struct image *i) {
    struct codeobj_image found = { 0 };
    struct err e = { 0 };
    enum rc rc = codeobj_from_bytes(i->bytes, i->size, MI210, &found, &e);
    assert_true(rc == RC_OK || e.msg[0]);
    free(found.bytes);
    return rc;
}

static void compressed_bundles_that_lie_are_refused(void **state) {
    (void)state;
    struct image b = build_bundle();
    for (int zstd = 0; zstd < 2; zstd++) {
        struct image c = compress_bundle(&b, 2, zstd);
        unsigned char *plain_bytes = c.bytes + 12;
        plain_bytes[0] ^= 1; /* one byte more or less than it holds */
        assert_int_equal(read_bytes(&c), RC_FORMAT);
        plain_bytes[0] ^= 1;
        memset(plain_bytes, 0xff, 4); /* 4 GiB */
        assert_int_equal(read_bytes(&c), RC_FORMAT);
        free(c.bytes);
        c = compress_bundle(&b, 2, zstd);
        c.bytes[4] = 4; /* a version from the future */
        assert_int_equal(read_bytes(&c), RC_UNSUPPORTED);
        c.bytes[4] = 2;
        c.bytes[6] = 7; /* a method from the future */
        assert_int_equal(read_bytes(&c), RC_UNSUPPORTED);
        free(c.bytes);
        c = compress_bundle(&b, 3, zstd);
        for (size_t size = 0; size < c.size; size += 1 + size / 16) {
            struct image cut = { c.bytes, size };
            assert_int_equal(read_bytes(&cut), RC_FORMAT);
        }
        free(c.bytes);
    }
    free(b.bytes);
}

static void a_bundle_inside_a_compressed_one_is_not_compressed_again(void **state) {
    (void)state;
    struct image b = build_bundle();
    struct image once = compress_bundle(&b, 2, true), twice = compress_bundle(&once, 2, true);
    assert_int_equal(read_bytes(&twice), RC_FORMAT);
    free(b.bytes);
    free(once.bytes);
    free(twice.bytes);
}

static void files_are_read(void **state) {
    (void)state;
    char path[] = "bundle-XXXXXX";
    struct image b = build_bundle();
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, b.bytes, b.size), (ssize_t)b.size);
    close(fd);
    struct codeobj_image found = { 0 };
    struct err e = { 0 };
    assert_int_equal(processor_of(codeobj_from_file(path, MI300, &found, &e), &found), GFX942);
    unlink(path);
    assert_int_equal(codeobj_from_file(path, MI300, &found, &e), RC_IO);
    assert_int_equal(codeobj_from_file("/", MI300, &found, &e), RC_FORMAT);
    free(b.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bundle_gives_the_code_of_the_target),
        cmocka_unit_test(targets_are_rated),
        cmocka_unit_test(compressed_bundles_of_all_versions_are_read),
        cmocka_unit_test(images_of_unknown_size_are_read_up_to_the_end_of_memory),
        cmocka_unit_test(compressed_bundles_that_lie_are_refused),
        cmocka_unit_test(a_bundle_inside_a_compressed_one_is_not_compressed_again),
        cmocka_unit_test(files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_codeobj_image.c - code objects of real compilers, loaded: segments, relocations, symbols,
 * descriptors (against llvm-objdump), and what a dispatch puts into memory. */
#include "test_codeobj_compile.h"

#include <elf.h>

#include "codeobj/descriptor.h"
#include "codeobj/image.h"
#include "codeobj/kernarg.h"

#define BASE UINT64_C(0x7f0012340000)

struct loaded {
    struct codeobj_image image;
    struct codeobj_list *list;
    struct codeobj_extent extent;
    unsigned char *memory;
};

static bool load(struct loaded *l, enum compile_target target, const char *flags) {
    struct err e = { 0 };
    *l = (struct loaded){ 0 };
    if (!compile(target, "image.hip", flags, &l->image))
        return false;
    if (codeobj_list_open(&l->list, l->image.bytes, l->image.size, &e) ||
        codeobj_measure(&l->extent, l->image.bytes, l->image.size, &e))
        fail_msg("%s", e.msg);
    l->memory = malloc(l->extent.bytes);
    memset(l->memory, 0xa5, l->extent.bytes);
    if (codeobj_load(l->memory, BASE, &l->extent, l->image.bytes, l->image.size, &e))
        fail_msg("%s", e.msg);
    return true;
}

static void unload(struct loaded *l) {
    codeobj_list_close(&l->list);
    free(l->memory);
    free(l->image.bytes);
}

/* The bytes of a variable in the loaded image. */
static const void *at(const struct loaded *l, uint64_t address) {
    assert_true(address >= l->extent.first && address - l->extent.first < l->extent.bytes);
    return l->memory + (address - l->extent.first);
}

static const struct codeobj_variable *variable(const struct loaded *l, const char *name) {
    const struct codeobj_variable *v = codeobj_list_variable(l->list, name);
    if (!v)
        fail_msg("no variable %s", name);
    return v;
}

/* Runs a check for both processors; skipped if there is a compiler for neither. */
static void for_each_target(const char *flags, void (*check)(struct loaded *)) {
    bool any = false;
    for (int t = 0; t < COMPILE_TARGETS; t++) {
        struct loaded l;
        if (!load(&l, (enum compile_target)t, flags))
            continue;
        any = true;
        check(&l);
        unload(&l);
    }
    if (!any)
        skip();
}

/* ---- images -------------------------------------------------------------------------------- */

static void check_image(struct loaded *l) {
    static const int zero[100];
    static const float factors[] = { 1, 2, 3, 4 };
    static const int hidden[] = { 10, 20, 30, 40, 50, 60, 70, 80 };
    assert_int_equal(*(const int *)at(l, variable(l, "counter")->address), 42);
    assert_memory_equal(at(l, variable(l, "factors")->address), factors, sizeof factors);
    assert_memory_equal(at(l, variable(l, "zeros")->address), zero, sizeof zero);

    uint64_t pointer, expected = BASE + variable(l, "zeros")->address - l->extent.first + 12;
    memcpy(&pointer, at(l, variable(l, "pointer")->address), sizeof pointer);
    assert_int_equal(pointer, expected); /* relocated */

    /* A static variable has a name and a place, but others do not find it by the name. */
    const struct codeobj_variable *own = NULL;
    for (size_t i = 0; i < l->list->variable_count; i++)
        if (!strcmp(l->list->variables[i].name, "_ZL6hidden"))
            own = &l->list->variables[i];
    assert_non_null(own);
    assert_true(own->local);
    assert_null(codeobj_list_variable(l->list, "_ZL6hidden"));
    assert_memory_equal(at(l, own->address), hidden, sizeof hidden);
    assert_ptr_equal(codeobj_list_variable_at(l->list, own->address + 31), own);
    assert_ptr_not_equal(codeobj_list_variable_at(l->list, own->address + 32), own);

    /* Code lies at the same distance from data as in the file. */
    const struct codeobj_kernel *k = codeobj_list_kernel(l->list, "simple");
    assert_non_null(k);
    const struct codeobj_function *f = codeobj_list_function_at(l->list, k->entry + 8);
    assert_non_null(f);
    assert_string_equal(f->name, "simple");
    f = NULL;
    for (size_t i = 0; i < l->list->function_count; i++)
        if (!strcmp(l->list->functions[i].name, "twice"))
            f = &l->list->functions[i];
    assert_non_null(f); /* called, not inlined */
    assert_null(codeobj_list_function_at(l->list, f->address + f->size + 100000));
    uint32_t word;
    memcpy(&word, at(l, k->entry), sizeof word);
    assert_int_not_equal(word, 0);
}

static void images_are_one_range(void **state) {
    (void)state;
    for_each_target("-O2", check_image);
}

static void check_damage(struct loaded *l) {
    struct err e = { 0 };
    struct codeobj_extent x;
    Elf64_Ehdr h;
    memcpy(&h, l->image.bytes, sizeof h);
    for (unsigned i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr good, *p = (Elf64_Phdr *)(void *)(l->image.bytes + h.e_phoff) + i;
        if (p->p_type != PT_LOAD)
            continue;
        good = *p;
        p->p_filesz = l->image.size;
        p->p_memsz = l->image.size;
        p->p_offset = 1;
        assert_int_equal(codeobj_measure(&x, l->image.bytes, l->image.size, &e), RC_FORMAT);
        *p = good;
        p->p_memsz = UINT64_C(1) << 60;
        assert_int_equal(codeobj_measure(&x, l->image.bytes, l->image.size, &e), RC_FORMAT);
        *p = good;
        p->p_vaddr = UINT64_MAX - 10;
        assert_int_equal(codeobj_measure(&x, l->image.bytes, l->image.size, &e), RC_FORMAT);
        *p = good;
        if (p->p_filesz) {
            p->p_memsz = p->p_filesz - 1;
            assert_int_equal(codeobj_measure(&x, l->image.bytes, l->image.size, &e), RC_FORMAT);
        }
        *p = good;
    }
    /* Relocations that go wrong. */
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, l->image.bytes + h.e_shoff + i * sizeof s, sizeof s);
        if (s.sh_type != SHT_RELA || !(s.sh_flags & SHF_ALLOC) || !s.sh_size)
            continue;
        Elf64_Rela *a = (Elf64_Rela *)(void *)(l->image.bytes + s.sh_offset), good = *a;
        a->r_offset = l->extent.first + l->extent.bytes - 7;
        assert_int_equal(
            codeobj_load(l->memory, BASE, &l->extent, l->image.bytes, l->image.size, &e),
            RC_FORMAT);
        *a = good;
        a->r_info = ELF64_R_INFO(UINT64_C(0x7fffffff), 3);
        assert_int_equal(
            codeobj_load(l->memory, BASE, &l->extent, l->image.bytes, l->image.size, &e),
            RC_FORMAT);
        a->r_info = ELF64_R_INFO(UINT64_C(0), 99);
        assert_int_equal(
            codeobj_load(l->memory, BASE, &l->extent, l->image.bytes, l->image.size, &e),
            RC_UNSUPPORTED);
        *a = good;
    }
    assert_int_equal(codeobj_load(l->memory, BASE, &l->extent, l->image.bytes, l->image.size, &e),
                     RC_OK);
}

static void images_that_lie_are_refused(void **state) {
    (void)state;
    for_each_target("-O2", check_damage);
}

/* ---- descriptors --------------------------------------------------------------------------- */

struct expected {
    const char *directive;
    long value;
};

/* What llvm-objdump calls a field, and what we read. */
static void list_fields(const struct codeobj_descriptor *d, struct expected *out, size_t *count) {
    const struct expected all[] = {
        { "group_segment_fixed_size", d->group_bytes },
        { "private_segment_fixed_size", d->private_bytes },
        { "kernarg_size", d->kernarg_bytes },
        { "accum_offset", d->accum_offset },
        { "tg_split", d->tg_split },
        { "next_free_vgpr", d->vgprs },
        { "float_round_mode_32", d->mode & 3 },
        { "float_round_mode_16_64", d->mode >> 2 & 3 },
        { "float_denorm_mode_32", d->mode >> 4 & 3 },
        { "float_denorm_mode_16_64", d->mode >> 6 & 3 },
        { "dx10_clamp", d->mode >> 8 & 1 },
        { "ieee_mode", d->mode >> 9 & 1 },
        { "fp16_overflow", d->mode >> 23 & 1 },
        { "enable_private_segment", d->has_private },
        { "system_sgpr_private_segment_wavefront_offset", d->has_private },
        { "system_sgpr_workgroup_id_x", d->group_id[0] },
        { "system_sgpr_workgroup_id_y", d->group_id[1] },
        { "system_sgpr_workgroup_id_z", d->group_id[2] },
        { "system_sgpr_workgroup_info", d->group_info },
        { "system_vgpr_workitem_id", d->work_item_ids },
        { "exception_int_div_zero", d->exceptions >> 6 & 1 },
        { "user_sgpr_private_segment_buffer", d->private_buffer },
        { "user_sgpr_dispatch_ptr", d->dispatch_ptr },
        { "user_sgpr_queue_ptr", d->queue_ptr },
        { "user_sgpr_kernarg_segment_ptr", d->kernarg_ptr },
        { "user_sgpr_dispatch_id", d->dispatch_id },
        { "user_sgpr_flat_scratch_init", d->flat_scratch_init },
        { "user_sgpr_private_segment_size", d->private_size },
        { "user_sgpr_kernarg_preload_length", d->preload_count },
        { "user_sgpr_kernarg_preload_offset", d->preload_offset },
        { "uses_dynamic_stack", d->dynamic_stack },
    };
    memcpy(out, all, sizeof all);
    *count = sizeof all / sizeof *all;
}

static struct codeobj_descriptor descriptor(const struct loaded *l, const char *kernel) {
    const struct codeobj_kernel *k = codeobj_list_kernel(l->list, kernel);
    struct codeobj_descriptor d;
    if (!k)
        fail_msg("no kernel %s", kernel);
    codeobj_descriptor_read(&d, at(l, k->descriptor));
    assert_int_equal(k->descriptor + (uint64_t)d.entry, k->entry);
    return d;
}

static void compare_with_objdump(struct loaded *l) {
    char path[] = "/tmp/greta-test-XXXXXX", command[200], line[200], kernel[100] = "";
    int fd = mkstemp(path), compared = 0;
    assert_int_equal(write(fd, l->image.bytes, l->image.size), (ssize_t)l->image.size);
    close(fd);
    snprintf(command, sizeof command, "llvm-objdump-19 -D -j .rodata %s 2>&1", path);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    struct expected fields[64];
    size_t count = 0;
    while (fgets(line, sizeof line, f)) {
        char name[100];
        long value;
        if (sscanf(line, ".amdhsa_kernel %99s", kernel) == 1) {
            struct codeobj_descriptor d = descriptor(l, kernel);
            list_fields(&d, fields, &count);
        }
        if (!*kernel || sscanf(line, " .amdhsa_%99s %ld", name, &value) != 2)
            continue;
        for (size_t i = 0; i < count; i++)
            if (!strcmp(fields[i].directive, name)) {
                if (fields[i].value != value)
                    fail_msg("%s: %s is %ld, read as %ld", kernel, name, value, fields[i].value);
                compared++;
            }
    }
    pclose(f);
    unlink(path);
    assert_true(compared > 4 * 25);
}

static void descriptors_agree_with_llvm(void **state) {
    (void)state;
    if (!compile_has("llvm-objdump-19"))
        skip();
    for_each_target("-O2", compare_with_objdump);
    for_each_target("-O0", compare_with_objdump);
}

static void check_spills(struct loaded *l) {
    const struct codeobj_kernel *k = codeobj_list_kernel(l->list, "crowded");
    assert_non_null(k);
    assert_int_not_equal(k->vgpr_spills, 0);
    assert_int_not_equal(k->sgpr_spills, 0);
    k = codeobj_list_kernel(l->list, "lds");
    assert_non_null(k);
    assert_int_equal(k->vgpr_spills, 0);
    assert_int_equal(k->sgpr_spills, 0);
}

static void spilled_registers_are_known(void **state) {
    (void)state;
    for_each_target("-O2", check_spills);
}

static void check_start(struct loaded *l) {
    struct err e = { 0 };
    struct codeobj_start s;
    bool old = l->list->processor == CODEOBJ_GFX90A;
    struct codeobj_descriptor d = descriptor(l, "scratch");
    assert_true(d.has_private && d.private_bytes >= 128);
    assert_int_equal(codeobj_descriptor_start(&s, &d, l->list->processor, &e), RC_OK);
    /* gfx90a: V#, kernarg, flat scratch, then the group's id and the wave's offset; gfx942 has
     * registers of its own for scratch. */
    assert_int_equal(s.private_buffer, old ? 0 : -1);
    assert_int_equal(s.kernarg_ptr, old ? 4 : 0);
    assert_int_equal(s.flat_scratch_init, old ? 6 : -1);
    assert_int_equal(s.group_id[0], d.user_sgprs);
    assert_int_equal(s.scratch_offset, old ? d.user_sgprs + 1 : -1);
    assert_int_equal(s.entry_skip, 0);
    d.user_sgprs = 1;
    assert_int_equal(codeobj_descriptor_start(&s, &d, l->list->processor, &e), RC_FORMAT);

    d = descriptor(l, "lds");
    assert_int_equal(d.group_bytes, 1024);
    assert_int_equal(d.work_item_ids, 1);
    assert_true(d.group_id[1]);
    d = descriptor(l, "sizes");
    assert_true(d.dispatch_ptr && d.group_id[2]);
}

static void registers_start_where_the_abi_says(void **state) {
    (void)state;
    for_each_target("-O2", check_start);
}

static void kernarg_may_be_preloaded(void **state) {
    (void)state;
    struct loaded l;
    if (!load(&l, COMPILE_GFX942, "-O2 -mllvm -amdgpu-kernarg-preload-count=8"))
        skip();
    struct codeobj_descriptor d = descriptor(&l, "simple");
    struct codeobj_start s;
    struct err e = { 0 };
    assert_true(d.preload_count > 0);
    assert_int_equal(codeobj_descriptor_start(&s, &d, l.list->processor, &e), RC_OK);
    assert_int_equal(s.preload, s.kernarg_ptr + 2);
    assert_int_equal(s.entry_skip, 256);
    unload(&l);
}

/* ---- dispatch ------------------------------------------------------------------------------ */

static uint64_t hidden(const struct codeobj_kernel *k, const unsigned char *segment,
                       enum codeobj_value_kind kind) {
    for (uint32_t i = 0; i < k->argument_count; i++)
        if (k->arguments[i].kind == kind) {
            uint64_t v = 0;
            memcpy(&v, segment + k->arguments[i].offset, k->arguments[i].size);
            return v;
        }
    fail_msg("%s has no hidden argument %d", k->name, (int)kind);
    return 0;
}

static void check_kernarg(struct loaded *l) {
    struct err e = { 0 };
    const struct codeobj_kernel *k = codeobj_list_kernel(l->list, "simple");
    uint64_t out = 0x123456789a;
    int n = 77;
    void *params[] = { &out, &n };
    unsigned char segment[1024] = { 0 };
    assert_int_equal(codeobj_explicit_count(k), 2);
    assert_int_equal(codeobj_explicit_bytes(k), 12);
    assert_int_equal(codeobj_kernarg_pack(k, params, segment, &e), RC_OK);
    assert_memory_equal(segment, &out, 8);
    assert_memory_equal(segment + 8, &n, 4);
    params[1] = NULL;
    assert_int_equal(codeobj_kernarg_pack(k, params, segment, &e), RC_USAGE);

    k = codeobj_list_kernel(l->list, "sizes");
    assert_true(codeobj_kernarg_bytes(k) <= sizeof segment);
    assert_true(k->argument_count > 1); /* hidden ones */
    struct codeobj_dispatch d = {
        .grid = { 640, 30, 7 },
        .block = { 64, 8, 2 },
        .dims = 3,
        .dynamic_lds = 512,
        .hostcall_buffer = 0x1111,
        .multigrid_sync = 0x2222,
        .heap = 0x3333,
        .queue = 0x4444,
        .private_base = UINT64_C(0x5555) << 32,
        .shared_base = UINT64_C(0x6666) << 32,
    };
    memset(segment, 0, sizeof segment);
    assert_int_equal(codeobj_kernarg_hide(k, &d, segment, &e), RC_OK);
    if (l->list->version == 5) {
        assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_BLOCK_COUNT_X), 10);
        assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_BLOCK_COUNT_Y), 3);
        assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_GROUP_SIZE_X), 64);
        assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_REMAINDER_Y), 6);
        assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_REMAINDER_Z), 1);
        assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_GRID_DIMS), 3);
    } else {
        assert_int_equal(l->list->version, 4);
        assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_GLOBAL_OFFSET_X), 0);
    }
    assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_HOSTCALL_BUFFER), 0x1111);
    assert_int_equal(hidden(k, segment, CODEOBJ_HIDDEN_MULTIGRID_SYNC), 0x2222);

    struct codeobj_packet p;
    codeobj_packet_fill(&p, &d, 0xaaaa, 0xbbbb, 16, 512);
    assert_int_equal(p.workgroup_size[1], 8);
    assert_int_equal(p.grid_size[0], 640);
    assert_int_equal(p.kernarg_address, 0xbbbb);
    assert_int_equal(p.setup, 3);
    struct codeobj_queue q;
    codeobj_queue_fill(&q, &d);
    assert_int_equal(q.group_aperture_hi, 0x6666);
    assert_int_equal(q.private_aperture_hi, 0x5555);
}

static void kernarg_has_all_hidden_arguments(void **state) {
    (void)state;
    for_each_target("-O2", check_kernarg);
}

static void unknown_hidden_arguments_are_refused(void **state) {
    (void)state;
    struct codeobj_argument a = { .size = 8, .is_hidden = true, .kind = CODEOBJ_UNKNOWN };
    struct codeobj_kernel k = { .name = "k", .arguments = &a, .argument_count = 1 };
    struct codeobj_dispatch d = { 0 };
    struct err e = { 0 };
    unsigned char segment[16] = { 0 };
    assert_int_equal(codeobj_kernarg_hide(&k, &d, segment, &e), RC_UNSUPPORTED);
    a.kind = CODEOBJ_HIDDEN_NONE;
    assert_int_equal(codeobj_kernarg_hide(&k, &d, segment, &e), RC_OK);
    a.size = 100;
    assert_int_equal(codeobj_kernarg_hide(&k, &d, segment, &e), RC_FORMAT);
    a.offset = UINT32_MAX;
    assert_int_equal(codeobj_kernarg_bytes(&k), UINT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_one_range),
        cmocka_unit_test(images_that_lie_are_refused),
        cmocka_unit_test(descriptors_agree_with_llvm),
        cmocka_unit_test(spilled_registers_are_known),
        cmocka_unit_test(registers_start_where_the_abi_says),
        cmocka_unit_test(kernarg_may_be_preloaded),
        cmocka_unit_test(kernarg_has_all_hidden_arguments),
        cmocka_unit_test(unknown_hidden_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

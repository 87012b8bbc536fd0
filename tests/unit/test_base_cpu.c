/* Processors and their cores, read from folders as the kernel shows them. */
#include "unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cpu.h"
#include "unit/folder.h"

/* ---- a machine made of files ----------------------------------------------------------------- */

static void add_file(int cpu, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/cpu%d", folder, cpu);
    mkdir(path, 0700);
    strcat(path, "/topology");
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/cpu%d/topology/%s", folder, cpu, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Four cores of two: 0 and 4, 1 and 5, … */
static void add_siblings(const char *name) {
    for (int cpu = 0; cpu < 8; cpu++) {
        char list[16];
        snprintf(list, sizeof list, "%d,%d\n", cpu % 4, cpu % 4 + 4);
        add_file(cpu, name, list);
    }
}

/* Sets are written as bits: processor 0 is the lowest. */
static cpu_set_t set_of(unsigned bits) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < 32; i++)
        if (bits >> i & 1)
            CPU_SET(i, &set);
    return set;
}

static struct cpu_map read_map(unsigned allowed) {
    struct cpu_map m;
    cpu_set_t set = set_of(allowed);
    cpu_map_read(&m, folder, &set);
    assert_true(CPU_EQUAL(&m.allowed, &set));
    assert_int_equal(m.cpus, CPU_COUNT(&set));
    return m;
}

static void assert_place(const struct cpu_map *m, unsigned place, unsigned expected) {
    cpu_set_t found = cpu_map_core(m, place), wanted = set_of(expected);
    if (!CPU_EQUAL(&found, &wanted))
        fail_msg("place %u: not the set %#x", place, expected);
}

static void assert_places(const struct cpu_map *m, unsigned cores, const unsigned *expected) {
    assert_int_equal(m->cores, cores);
    for (unsigned i = 0; i < m->cpus; i++)
        assert_place(m, i, expected[i]);
}
#define PLACES(...) ((const unsigned[]){ __VA_ARGS__ })

/* ---- tests ----------------------------------------------------------------------------------- */

static void siblings_are_one_core(void **state) {
    (void)state;
    add_siblings("core_cpus_list");
    struct cpu_map m = read_map(0xff);
    assert_places(&m, 4, PLACES(0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x44, 0x88));
}

static void old_kernels_call_the_list_by_another_name(void **state) {
    (void)state;
    add_siblings("thread_siblings_list");
    struct cpu_map m = read_map(0xff);
    assert_int_equal(m.cores, 4);
    add_file(1, "core_cpus_list", "1\n"); /* the newer name counts */
    add_file(5, "core_cpus_list", "5\n");
    m = read_map(0xff);
    assert_places(&m, 5, PLACES(0x11, 0x02, 0x44, 0x88, 0x20, 0x11, 0x44, 0x88));
}

static void neighbours_can_be_siblings(void **state) {
    (void)state;
    for (int cpu = 0; cpu < 4; cpu++)
        add_file(cpu, "core_cpus_list", cpu < 2 ? "0-1\n" : "2-3\n");
    add_file(4, "core_cpus_list", "4"); /* a core without siblings beside them */
    struct cpu_map m = read_map(0x1f);
    assert_places(&m, 3, PLACES(0x03, 0x0c, 0x10, 0x03, 0x0c));
}

static void without_siblings_every_processor_is_a_core(void **state) {
    (void)state;
    for (int cpu = 0; cpu < 4; cpu++) {
        char list[16];
        snprintf(list, sizeof list, "%d\n", cpu);
        add_file(cpu, "core_cpus_list", list);
    }
    struct cpu_map m = read_map(0xf);
    assert_places(&m, 4, PLACES(1, 2, 4, 8));
}

static void only_allowed_processors_count(void **state) {
    (void)state;
    add_siblings("core_cpus_list");
    struct cpu_map m = read_map(0x2c); /* both of no core */
    assert_places(&m, 3, PLACES(0x04, 0x08, 0x20));
    m = read_map(0x66); /* both of two */
    assert_places(&m, 2, PLACES(0x22, 0x44, 0x22, 0x44));
    m = read_map(0x70); /* the second of three */
    assert_places(&m, 3, PLACES(0x10, 0x20, 0x40));
    m = read_map(0x90); /* … which need not be neighbours */
    assert_places(&m, 2, PLACES(0x10, 0x80));
    m = read_map(0);
    assert_int_equal(m.cores, 0);
}

static void without_files_every_processor_is_a_core(void **state) {
    (void)state;
    struct cpu_map m = read_map(0x15);
    assert_places(&m, 3, PLACES(0x01, 0x04, 0x10));
    add_file(4, "core_cpus_list", "0,4\n"); /* one of two is enough */
    m = read_map(0x15);
    assert_places(&m, 2, PLACES(0x11, 0x04, 0x11));
}

static void what_makes_no_sense_is_not_believed(void **state) {
    (void)state;
    /* The last three are right in themselves, but of processor 1. */
    static const char *const nonsense[] = {
        "",      "\n",   "x",   "0,",  ",0",   "0-",   "-1", "1-0", "0 1",
        "0-1-2", "0,1x", "0;1", "0x1", "+0,1", "0,,1", "0",  "2-3", "18446744073709551615"
    };
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        add_file(1, "core_cpus_list", nonsense[i]);
        struct cpu_map m = read_map(0x3);
        if (m.cores != 2)
            fail_msg("'%s': %u cores", nonsense[i], m.cores);
    }
}

static void files_that_disagree_leave_everybody_a_place(void **state) {
    (void)state;
    add_file(0, "core_cpus_list", "0\n");
    add_file(1, "core_cpus_list", "0-1\n");
    add_file(2, "core_cpus_list", "1-2\n");
    struct cpu_map m = read_map(0x7);
    for (unsigned i = 0; i < m.cpus; i++) {
        cpu_set_t place = cpu_map_core(&m, i);
        assert_true(CPU_ISSET(m.order[i], &place));
    }
}

static void this_machine_has_at_most_a_core_for_every_processor(void **state) {
    (void)state;
    struct cpu_map m;
    cpu_map_own(&m);
    assert_int_equal(m.cpus, cpu_count());
    assert_in_range(m.cores, 1, m.cpus);
    cpu_set_t all;
    CPU_ZERO(&all);
    int together = 0;
    for (unsigned i = 0; i < m.cores; i++) {
        cpu_set_t core = cpu_map_core(&m, i);
        together += CPU_COUNT(&core);
        CPU_OR(&all, &all, &core);
    }
    assert_true(CPU_EQUAL(&all, &m.allowed));
    assert_int_equal(together, m.cpus);
}

int main(void) {
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(siblings_are_one_core),
        IN_A_FOLDER(old_kernels_call_the_list_by_another_name),
        IN_A_FOLDER(neighbours_can_be_siblings),
        IN_A_FOLDER(without_siblings_every_processor_is_a_core),
        IN_A_FOLDER(only_allowed_processors_count),
        IN_A_FOLDER(without_files_every_processor_is_a_core),
        IN_A_FOLDER(what_makes_no_sense_is_not_believed),
        IN_A_FOLDER(files_that_disagree_leave_everybody_a_place),
        cmocka_unit_test(this_machine_has_at_most_a_core_for_every_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

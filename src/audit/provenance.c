#include "audit/provenance.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "greta_build.h"

extern char **environ;

/* ---- the binary ------------------------------------------------------------------------------ */

/* The GNU build id among the notes of a loaded object; "" if it has none. */
static void build_id(const struct dl_phdr_info *object, char *out, size_t size) {
    out[0] = '\0';
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(object->dlpi_addr + segment->p_vaddr);
        const char *end = at + segment->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) note;
            memcpy(&note, at, sizeof note);
            const char *name = at + sizeof note;
            const unsigned char *bytes =
                (const unsigned char *)name + (((size_t)note.n_namesz + 3) & ~(size_t)3);
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                memcmp(name, "GNU", 4) == 0) {
                for (size_t k = 0; k < note.n_descsz && 2 * k + 2 < size; k++)
                    snprintf(out + 2 * k, 3, "%02x", bytes[k]);
                return;
            }
            at = (const char *)bytes + (((size_t)note.n_descsz + 3) & ~(size_t)3);
        }
    }
}

/* The main program is the first object; ours is the one that contains this function. */
struct ids {
    char program[64], library[64];
    bool first;
};

static int visit_object(struct dl_phdr_info *object, size_t size, void *user) {
    (void)size;
    struct ids *ids = user;
    if (ids->first)
        build_id(object, ids->program, sizeof ids->program);
    ids->first = false;
    uintptr_t here = (uintptr_t)visit_object;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            here - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz) {
            build_id(object, ids->library, sizeof ids->library);
            return 1;
        }
    }
    return 0;
}

/* A program that exports `const char gcore_program_commit[]` says what it was built from. */
static void write_program_commit(writer *w) {
    enum { DIGITS = 64 };
    const char *commit = dlsym(RTLD_DEFAULT, "gcore_program_commit");
    char text[DIGITS + 1] = "";
    size_t n = commit ? strnlen(commit, DIGITS) : 0;
    if (n == 0)
        return;
    memcpy(text, commit, n);
    record_provenance(w, "program.commit", text);
}

static void write_binary(writer *w) {
    struct ids ids = { .first = true };
    dl_iterate_phdr(visit_object, &ids);
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    record_provenance(w, "greta.version", GRETA_VERSION);
    record_provenance(w, "greta.commit", GRETA_BUILD_COMMIT);
    record_provenance(w, "greta.dirty", GRETA_BUILD_DIRTY ? "1" : "0");
    record_provenance(w, "greta.compiler", GRETA_BUILD_COMPILER);
    record_provenance(w, "greta.flags", GRETA_BUILD_FLAGS);
    record_provenance(w, "greta.build_type", GRETA_BUILD_TYPE);
    record_provenance(w, "greta.build_id", ids.library);
    record_provenance(w, "program.path", path);
    record_provenance(w, "program.build_id", ids.program);
    write_program_commit(w);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* A word of the command line as a shell would need it. Returns the new length, at most size - 1. */
static size_t append_word(char *out, size_t used, size_t size, const char *word) {
    bool plain = *word != '\0' && !strpbrk(word, " \t\n'\"\\$`;&|<>()*?[]#~");
    int n = snprintf(out + used, size - used, "%s%s%s%s", used ? " " : "", plain ? "" : "'", word,
                     plain ? "" : "'");
    used += n > 0 ? (size_t)n : 0;
    return used < size ? used : size - 1;
}

static void write_command(writer *w) {
    char words[8192], line[8192] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, words, sizeof words - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return;
    words[n] = '\0';
    size_t used = 0;
    for (const char *word = words; word < words + n; word += strlen(word) + 1)
        used = append_word(line, used, sizeof line, word);
    record_provenance(w, "run.command", line);
}

static void write_environment(writer *w) {
    static const char *const prefixes[] = { "GRETA_", "GCORE_", "HIP_", "HSA_", "AMD_" };
    for (char **entry = environ; entry && *entry; entry++) {
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            const char *equals = strchr(*entry, '=');
            if (!equals || strncmp(*entry, prefixes[i], strlen(prefixes[i])) != 0)
                continue;
            char key[256];
            snprintf(key, sizeof key, "env.%.*s", (int)(equals - *entry), *entry);
            record_provenance(w, key, equals + 1);
        }
    }
}

static void write_system(writer *w) {
    struct utsname system;
    char text[sizeof system.sysname + sizeof system.release + sizeof system.version + 3];
    if (uname(&system) != 0)
        return;
    snprintf(text, sizeof text, "%s %s %s", system.sysname, system.release, system.version);
    record_provenance(w, "system.kernel", text);
    record_provenance(w, "system.machine", system.machine);
    record_provenance(w, "system.host", system.nodename);
}

/* ---- the device ------------------------------------------------------------------------------ */

static void write_number(writer *w, const char *key, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    record_provenance(w, key, text);
}

void provenance_write_devices(writer *w, const struct hip_api *api) {
    int saved = errno, number = 0, count = 0;
    if (api->hipRuntimeGetVersion(&number) == hipSuccess)
        write_number(w, "runtime.version", number);
    if (api->hipDriverGetVersion(&number) == hipSuccess)
        write_number(w, "driver.version", number);
    if (api->hipGetDeviceCount(&count) != hipSuccess)
        count = 0;
    write_number(w, "device.count", count);
    for (int i = 0; i < count; i++) {
        char name[256] = "", key[32];
        snprintf(key, sizeof key, "device.%d", i);
        if (api->hipDeviceGetName(name, (int)sizeof name, i) == hipSuccess)
            record_provenance(w, key, name);
    }
    errno = saved;
}

void provenance_write(writer *w, const char *runtime_path) {
    int saved = errno;
    write_binary(w);
    write_command(w);
    write_environment(w);
    write_system(w);
    record_provenance(w, "runtime.path", runtime_path);
    errno = saved;
}

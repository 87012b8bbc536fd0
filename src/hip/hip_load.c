#include "hip/hip_load.h"

#include "base/env.h"
#include "hip/hip_missing.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef GRETA_INSTALL_LIBDIR
#define GRETA_INSTALL_LIBDIR "/usr/local/lib"
#endif

enum choice { CHOICE_AUTO, CHOICE_HIP, CHOICE_SOFT };

static const char *const sonames[] = {
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
};
enum { SONAME_COUNT = sizeof(sonames) / sizeof(sonames[0]) };

/* What was tried, and why it failed: "a (why), b (why)". */
struct attempts {
    char text[400];
    size_t used;
};

/* A library that has been chosen. */
struct found {
    void *library;
    enum hip_device_kind kind;
};

/* The software device that hip_load() itself has opened by its path; never unmapped. */
static _Atomic(void *) own_soft;

static void note(struct attempts *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(struct attempts *a, const char *fmt, ...) {
    size_t room = sizeof(a->text) - a->used;
    int n = snprintf(a->text + a->used, room, "%s", a->used ? ", " : "");
    if (n < 0 || (size_t)n >= room)
        return;
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(a->text + a->used + n, room - (size_t)n, fmt, ap);
    va_end(ap);
    if (m < 0)
        return;
    size_t all = (size_t)n + (size_t)m;
    a->used += all < room ? all : room - 1;
}

static bool noted(const struct attempts *a, const char *name) {
    char start[64];
    snprintf(start, sizeof(start), "%s (", name);
    return strstr(a->text, start) != NULL;
}

/* dlerror() without the library's name in front of it, which note() prints anyway. */
static const char *open_problem(const char *name) {
    const char *text = dlerror();
    if (!text)
        return "cannot be opened";
    size_t len = strlen(name);
    if (strncmp(text, name, len) == 0 && strncmp(text + len, ": ", 2) == 0)
        text += len + 2;
    if (strcmp(text, "cannot open shared object file: No such file or directory") == 0)
        return "not found";
    return text;
}

static bool is_soft(void *library) {
    struct hip_soft soft;
    hip_soft_find(&soft, library);
    return soft.version != NULL;
}

static const struct link_map *map_of(void *library) {
    struct link_map *map = NULL;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map : NULL;
}

/* Keeps the library mapped for ever. */
static void pin(void *library) {
    const struct link_map *map = map_of(library);
    void *again = map ? dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
    if (again)
        dlclose(again);
}

/* True if the library finds a device, be it one that has faulted. A library that was asked stays
 * mapped. */
static bool has_device(void *library, const char *name, bool was_there, struct attempts *a) {
    void *symbol = dlsym(library, "hipGetDeviceCount");
    if (!symbol) {
        note(a, "%s (no function hipGetDeviceCount)", name);
        return false;
    }
    hipError_t (*get_device_count)(int *);
    memcpy(&get_device_count, &symbol, sizeof(symbol));
    pin(library);
    int count = 0;
    hipError_t status = get_device_count(&count);
    if ((status == hipSuccess && count > 0) || hip_error_is_sticky(status))
        return true;
    note(a, "%s (no device: %s)", name,
         status == hipSuccess ? "a count of 0" : hip_error_name(status));
    /* Clears the error that the query has left, unless the program uses this library already: then
     * the last error may be its own. */
    symbol = was_there ? NULL : dlsym(library, "hipGetLastError");
    if (status != hipSuccess && symbol) {
        hipError_t (*get_last_error)(void);
        memcpy(&get_last_error, &symbol, sizeof(symbol));
        (void)get_last_error();
    }
    return false;
}

/* What the program has in the process already. */
static bool take_loaded(struct found *f, enum choice choice, struct attempts *a) {
    for (int i = 0; i < SONAME_COUNT; i++) {
        void *library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (!library)
            continue;
        if (is_soft(library)) {
            if (choice != CHOICE_HIP || library != atomic_load(&own_soft)) {
                *f = (struct found){ library, HIP_DEVICE_SOFT };
                return true;
            }
        } else if (choice != CHOICE_SOFT && has_device(library, sonames[i], true, a)) {
            *f = (struct found){ library, HIP_DEVICE_ROCM };
            return true;
        }
        dlclose(library);
    }
    return false;
}

/* What the dynamic linker finds. */
static bool take_installed(struct found *f, enum choice choice, struct attempts *a) {
    for (int i = 0; i < SONAME_COUNT; i++) {
        void *library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        bool was_there = library != NULL;
        if (was_there && !is_soft(library)) {
            if (!noted(a, sonames[i]))
                note(a, "%s (the same library)", sonames[i]);
            dlclose(library); /* tried already, under another name or by take_loaded() */
            continue;
        }
        if (!was_there)
            library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            note(a, "%s (%s)", sonames[i], open_problem(sonames[i]));
            continue;
        }
        if (is_soft(library)) {
            if (choice == CHOICE_AUTO) {
                atomic_store(&own_soft, library);
                *f = (struct found){ library, HIP_DEVICE_SOFT };
                return true;
            }
            note(a, "%s (the software device)", sonames[i]);
        } else if (has_device(library, sonames[i], false, a)) {
            *f = (struct found){ library, HIP_DEVICE_ROCM };
            return true;
        }
        dlclose(library);
    }
    return false;
}

static bool open_soft_file(struct found *f, const char *path, struct attempts *a) {
    char real[PATH_MAX]; /* what reports show, instead of ../lib and links */
    void *library = dlopen(realpath(path, real) ? real : path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        note(a, "%s (%s)", path, open_problem(path));
        return false;
    }
    if (!is_soft(library)) {
        note(a, "%s (not the software device: no symbol greta_soft_version)", path);
        dlclose(library);
        return false;
    }
    atomic_store(&own_soft, library);
    *f = (struct found){ library, HIP_DEVICE_SOFT };
    return true;
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The library in a folder; if there is none, one note per folder. */
static bool open_soft_folder(struct found *f, const char *folder, struct attempts *a) {
    for (int i = 0; i < SONAME_COUNT; i++) {
        char path[PATH_MAX];
        struct stat st;
        int n = snprintf(path, sizeof(path), "%s/%s", folder, sonames[i]);
        if (n < 0 || (size_t)n >= sizeof(path) || stat(path, &st) != 0)
            continue;
        return open_soft_file(f, path, a);
    }
    note(a, "%s (no libamdhip64.so there)", folder);
    return false;
}

/* The folder of the object that contains this function: a library, or the program itself, whose
 * name may be no path because a shell found it in PATH. */
static bool own_folder(char folder[static PATH_MAX]) {
    Dl_info info;
    struct link_map *map = NULL;
    char file[PATH_MAX];
    void *address = NULL;
    bool (*self)(char *) = own_folder;
    memcpy(&address, &self, sizeof(address));
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    if (!realpath(*map->l_name ? map->l_name : "/proc/self/exe", file))
        return false;
    snprintf(folder, PATH_MAX, "%s", dirname(file));
    return true;
}

static enum rc take_soft(struct found *f, struct attempts *a, struct err *e) {
    const char *named = env_text(ENV_GRETA_SOFT_LIBRARY);
    if (named) {
        if (is_folder(named) ? open_soft_folder(f, named, a) : open_soft_file(f, named, a))
            return RC_OK;
        return err_set(e, RC_IO,
                       "GRETA_SOFT_LIBRARY: expected the software device's libamdhip64.so or its "
                       "folder (correct the variable or unset it), found %s",
                       a->text);
    }
    static const char *const beside[] = { "../lib/soft", "soft" };
    char here[PATH_MAX], folder[PATH_MAX + 16];
    if (own_folder(here)) {
        for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
            snprintf(folder, sizeof(folder), "%s/%s", here, beside[i]);
            if (open_soft_folder(f, folder, a))
                return RC_OK;
        }
    }
    if (open_soft_folder(f, GRETA_INSTALL_LIBDIR "/soft", a))
        return RC_OK;
    return err_set(e, RC_REFUSED,
                   "no software device (build or install greta, or set GRETA_SOFT_LIBRARY to its "
                   "libamdhip64.so): tried %s",
                   a->text);
}

static enum rc parse_choice(enum choice *out, const char *word, struct err *e) {
    const char *source = "device";
    if (!word || !*word) {
        source = "GRETA_DEVICE";
        word = env_text(ENV_GRETA_DEVICE);
    }
    if (strcmp(word, "auto") == 0)
        *out = CHOICE_AUTO;
    else if (strcmp(word, "hip") == 0)
        *out = CHOICE_HIP;
    else if (strcmp(word, "soft") == 0)
        *out = CHOICE_SOFT;
    else
        return err_set(e, RC_USAGE, "%s: expected auto, hip or soft, found '%s'", source, word);
    return RC_OK;
}

static enum rc find(struct found *f, enum choice choice, struct err *e) {
    struct attempts rocm = { .text = "" }, soft = { .text = "" };
    if (take_loaded(f, choice, &rocm))
        return RC_OK;
    if (choice != CHOICE_SOFT && take_installed(f, choice, &rocm))
        return RC_OK;
    if (choice != CHOICE_HIP)
        return take_soft(f, &soft, e);
    return err_set(e, RC_REFUSED,
                   "no HIP device (check ROCm, /dev/kfd and HIP_VISIBLE_DEVICES, or choose the "
                   "device soft): tried %s",
                   rocm.text);
}

/* The N of DT_SONAME libamdhip64.so.N, which names the ABI; 0 if there is none. */
static int soname_major(const struct link_map *map) {
    const char *strings = NULL;
    const ElfW(Dyn) *soname = NULL;
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
        else if (d->d_tag == DT_SONAME)
            soname = d;
    }
    int major = 0;
    if (strings && soname)
        (void)sscanf(strings + soname->d_un.d_val, "libamdhip64.so.%d", &major);
    return major;
}

/* Path and ABI. Where the SONAME has no number, the version does: 60342134 is 6.3. */
static void describe(struct hip_runtime *rt) {
    const struct link_map *map = map_of(rt->library);
    if (map) {
        snprintf(rt->path, sizeof(rt->path), "%s", map->l_name);
        rt->major = soname_major(map);
    }
    void *symbol = rt->major ? NULL : dlsym(rt->library, "hipRuntimeGetVersion");
    if (symbol) {
        int version = 0;
        hipError_t (*get_version)(int *);
        memcpy(&get_version, &symbol, sizeof(symbol));
        if (get_version(&version) == hipSuccess)
            rt->major = version / 10000000;
    }
    if (rt->major < 5)
        rt->major = 5;
}

static void *look_up(const struct hip_runtime *rt, enum hip_fn fn) {
    void *symbol = dlsym(rt->library, hip_fn_name(fn));
    if (symbol)
        return symbol;
    if (rt->rtc_library && hip_fn_class(fn) == HIP_CLASS_RTC)
        return dlsym(rt->rtc_library, hip_fn_name(fn));
    switch (fn) {
#define HIP_CXX(name, symbol)                                                                      \
    case HIP_FN_##name:                                                                            \
        return dlsym(rt->library, #symbol);
#include "hip/hip_cxx.def"
#undef HIP_CXX
    default:
        return NULL;
    }
}

static void fill(struct hip_runtime *rt) {
    static const size_t offsets[HIP_FN_COUNT] = {
#define HIP_FN(ret, name, params, args, cls, since)                                                \
    [HIP_FN_##name] = offsetof(struct hip_api, name),
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    [HIP_FN_##name] = offsetof(struct hip_api, name),
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
    };
    for (int i = 0; i < HIP_FN_COUNT; i++) {
        char *slot = (char *)&rt->api + offsets[i];
        void *symbol = look_up(rt, (enum hip_fn)i);
        if (symbol) {
            memcpy(slot, &symbol, sizeof(symbol));
            rt->found++;
        } else {
            hip_any_fn entry = hip_missing_entry((enum hip_fn)i, rt->path);
            memcpy(slot, &entry, sizeof(entry));
        }
    }
}

/* ROCm 7 has the run-time compiler in a separate library, and 6 in both. */
static void *open_rtc(const struct hip_runtime *rt) {
    if (rt->kind != HIP_DEVICE_ROCM || dlsym(rt->library, "hiprtcCompileProgram"))
        return NULL;
    char name[32];
    snprintf(name, sizeof(name), "libhiprtc.so.%d", rt->major);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library ? library : dlopen("libhiprtc.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

enum rc hip_load(struct hip_runtime *out, const char *choice, struct err *e) {
    enum choice wanted = CHOICE_AUTO;
    enum rc rc = parse_choice(&wanted, choice, e);
    if (rc != RC_OK)
        return rc;
    struct found f;
    rc = find(&f, wanted, e);
    if (rc != RC_OK)
        return rc;

    memset(out, 0, sizeof(*out));
    out->library = f.library;
    out->kind = f.kind;
    pin(out->library);
    describe(out);
    out->rtc_library = open_rtc(out);
    fill(out);
    hip_soft_find(&out->soft, out->library);
    return RC_OK;
}

void hip_unload(struct hip_runtime *rt) {
    if (!rt)
        return;
    if (rt->rtc_library)
        dlclose(rt->rtc_library);
    if (rt->library)
        dlclose(rt->library);
    memset(rt, 0, sizeof(*rt));
}

int hip_runtime_major(const struct hip_runtime *rt) {
    return rt->major;
}

const char *hip_device_kind_name(enum hip_device_kind kind) {
    return kind == HIP_DEVICE_ROCM ? "rocm" : "soft";
}

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "soft/runtime/settings.h"

static struct soft_settings settings;

const struct soft_settings *soft_settings(void) {
    return &settings;
}

static enum rc read_schedule(struct err *e) {
    const char *text = env_text(ENV_GRETA_SOFT_SCHEDULE);
    if (!strcmp(text, "fast")) {
        settings.policy = SOFT_FAST;
    } else if (!strcmp(text, "eager")) {
        settings.policy = SOFT_EAGER;
    } else if (!strcmp(text, "lazy")) {
        settings.policy = SOFT_LAZY;
    } else if (!strncmp(text, "random:", 7) && env_parse_u64(text + 7, &settings.seed)) {
        settings.policy = SOFT_RANDOM;
    } else {
        return err_set(e, RC_USAGE,
                       "GRETA_SOFT_SCHEDULE: expected fast, eager, lazy or random:SEED, found '%s'",
                       text);
    }
    return RC_OK;
}

static enum rc read_fault(struct err *e) {
    const char *text = env_text(ENV_GRETA_SOFT_FAULT);
    settings.fault_aborts = !strcmp(text, "abort");
    if (!settings.fault_aborts && strcmp(text, "sticky"))
        return err_set(e, RC_USAGE, "GRETA_SOFT_FAULT: expected sticky or abort, found '%s'", text);
    return RC_OK;
}

static const struct {
    const char *name;
    unsigned set;
} checks[] = {
#define CHECK(name, set) { #name, set },
#include "soft/runtime/check.def"
#undef CHECK
};

static bool add_check(const char *text, size_t length) {
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strlen(checks[i].name) == length && !strncmp(text, checks[i].name, length)) {
            settings.checks |= checks[i].set;
            return true;
        }
    return false;
}

/* A list: what is named adds up. */
static enum rc read_checks(struct err *e) {
    const char *text = env_text(ENV_GRETA_SOFT_CHECK), *at = text;
    settings.checks = 0;
    for (bool more = true; more;) {
        size_t length = strcspn(at, ",");
        more = at[length] == ',';
        if (!add_check(at, length))
            return err_set(
                e, RC_USAGE,
                "GRETA_SOFT_CHECK: expected auto, off, bounds, init, race, all or several of "
                "them separated by commas, found '%s'",
                text);
        at += length + more;
    }
    return RC_OK;
}

static const struct soft_arch_info arches[SOFT_ARCHES] = {
#define ARCH(name, ...) { #name, __VA_ARGS__ },
#include "soft/runtime/arch.def"
#undef ARCH
};

const struct soft_arch_info *soft_arch_info(enum soft_arch arch) {
    return &arches[arch];
}

static enum rc read_arch(struct err *e) {
    const char *text = env_text(ENV_GRETA_SOFT_ARCH);
    settings.arch = SOFT_ARCH_gfx90a;
    settings.takes_other_code = !text;
    if (!text)
        return RC_OK;
    for (int i = 0; i < SOFT_ARCHES; i++)
        if (!strcmp(text, arches[i].name)) {
            settings.arch = (enum soft_arch)i;
            return RC_OK;
        }
    return err_set(e, RC_USAGE, "GRETA_SOFT_ARCH: expected gfx90a or gfx942, found '%s'", text);
}

/* HIP_VISIBLE_DEVICES as ROCm reads it: a list of device numbers in the order the program shall see
 * them; the first entry that is no device, or a device named twice, ends the list. */
static void filter_visible(unsigned physical) {
    const char *text = env_text(ENV_HIP_VISIBLE_DEVICES);
    settings.devices = 0;
    if (!text) {
        while (settings.devices < physical) {
            settings.visible[settings.devices] = settings.devices;
            settings.devices++;
        }
        return;
    }
    for (const char *at = text; *at && settings.devices < physical;) {
        char *end;
        unsigned long n = strtoul(at, &end, 10);
        if (end == at || *at == '-' || n >= physical)
            return;
        for (unsigned i = 0; i < settings.devices; i++)
            if (settings.visible[i] == n)
                return;
        settings.visible[settings.devices++] = (unsigned)n;
        if (*end != ',')
            return;
        at = end + 1;
    }
}

static enum rc read_devices(struct err *e) {
    uint64_t physical;
    if (env_read_number(ENV_GRETA_SOFT_DEVICES, &physical, e))
        return RC_USAGE;
    assert(physical <= SOFT_DEVICES_MAX);
    filter_visible((unsigned)physical);
    return RC_OK;
}

static enum rc read_memory(struct err *e) {
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    settings.memory = ram / 4 * 3;
    return env_read_number(ENV_GRETA_SOFT_MEMORY, &settings.memory, e);
}

/* AMD_SERIALIZE_*: 1 waits before queueing, 2 after, 3 both. HIP_LAUNCH_BLOCKING=1 is "after". */
static enum rc read_serialize(struct err *e) {
    uint64_t kernel, copy;
    bool blocking;
    if (env_read_number(ENV_AMD_SERIALIZE_KERNEL, &kernel, e) ||
        env_read_number(ENV_AMD_SERIALIZE_COPY, &copy, e) ||
        env_read_flag(ENV_HIP_LAUNCH_BLOCKING, &blocking, e))
        return RC_USAGE;
    settings.serialize_kernel = (unsigned)(kernel & 3) | (blocking ? SOFT_SERIALIZE_AFTER : 0);
    settings.serialize_copy = (unsigned)(copy & 3);
    return RC_OK;
}

enum rc soft_settings_read(struct err *e) {
    uint64_t threads, watchdog;
    if (env_refuse_unknown("GRETA_SOFT_", e) || read_schedule(e) || read_fault(e) || read_arch(e) ||
        read_checks(e) || read_devices(e) || read_memory(e) || read_serialize(e) ||
        env_read_number(ENV_GRETA_SOFT_THREADS, &threads, e) ||
        env_read_number(ENV_GRETA_SOFT_WATCHDOG, &watchdog, e) ||
        env_read_flag(ENV_GRETA_SOFT_PIN, &settings.pin, e) ||
        env_read_flag(ENV_GCORE_WATCH_HOST, &settings.watch_host, e))
        return RC_USAGE;
    settings.threads = (unsigned)threads;
    settings.watchdog_s = (unsigned)watchdog;
    return RC_OK;
}

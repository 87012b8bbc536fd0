#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "soft/runtime/soft.h"

static struct soft_settings settings;

const struct soft_settings *soft_settings(void) {
    return &settings;
}

static enum rc read_schedule(struct err *e) {
    const char *text = env_get_str("GRETA_SOFT_SCHEDULE", "fast");
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
    const char *text = env_get_str("GRETA_SOFT_FAULT", "sticky");
    settings.fault_aborts = !strcmp(text, "abort");
    if (!settings.fault_aborts && strcmp(text, "sticky"))
        return err_set(e, RC_USAGE, "GRETA_SOFT_FAULT: expected sticky or abort, found '%s'", text);
    return RC_OK;
}

static const struct {
    const char *name, *target;
} arches[SOFT_ARCHES] = {
#define ARCH(name, target) { #name, target },
#include "soft/runtime/arch.def"
#undef ARCH
};

const char *soft_arch_target(enum soft_arch arch) {
    return arches[arch].target;
}

static enum rc read_arch(struct err *e) {
    const char *text = env_get_str("GRETA_SOFT_ARCH", arches[0].name);
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
    const char *text = env_get_str("HIP_VISIBLE_DEVICES", NULL);
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
    if (env_read_u64("GRETA_SOFT_DEVICES", 1, &physical, e))
        return RC_USAGE;
    if (physical < 1 || physical > SOFT_DEVICES_MAX)
        return err_set(e, RC_USAGE, "GRETA_SOFT_DEVICES: expected 1 to %d, found '%s'",
                       SOFT_DEVICES_MAX, env_get_str("GRETA_SOFT_DEVICES", ""));
    filter_visible((unsigned)physical);
    return RC_OK;
}

static enum rc read_memory(struct err *e) {
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (env_read_u64("GRETA_SOFT_MEMORY", ram / 4 * 3, &settings.memory, e))
        return RC_USAGE;
    if (settings.memory < 1 << 20 || settings.memory > (uint64_t)1 << 42)
        return err_set(e, RC_USAGE, "GRETA_SOFT_MEMORY: expected 1M to 4T, found '%s'",
                       env_get_str("GRETA_SOFT_MEMORY", ""));
    return RC_OK;
}

/* AMD_SERIALIZE_*: 1 waits before queueing, 2 after, 3 both. HIP_LAUNCH_BLOCKING=1 is "after". */
static enum rc read_serialize(struct err *e) {
    uint64_t kernel, copy;
    bool blocking;
    if (env_read_u64("AMD_SERIALIZE_KERNEL", 0, &kernel, e) ||
        env_read_u64("AMD_SERIALIZE_COPY", 0, &copy, e) ||
        env_read_bool("HIP_LAUNCH_BLOCKING", false, &blocking, e))
        return RC_USAGE;
    settings.serialize_kernel = (unsigned)(kernel & 3) | (blocking ? SOFT_SERIALIZE_AFTER : 0);
    settings.serialize_copy = (unsigned)(copy & 3);
    return RC_OK;
}

enum rc soft_settings_read(struct err *e) {
    uint64_t threads;
    if (read_schedule(e) || read_fault(e) || read_arch(e) || read_devices(e) || read_memory(e) ||
        read_serialize(e) || env_read_u64("GRETA_SOFT_THREADS", 0, &threads, e) ||
        env_read_bool("GRETA_SOFT_PIN", true, &settings.pin, e) ||
        env_read_bool("GRETA_SOFT_CHECKED", true, &settings.checked, e) ||
        env_read_bool("GCORE_WATCH_HOST", false, &settings.watch_host, e))
        return RC_USAGE;
    settings.threads = threads > 1024 ? 1024 : (unsigned)threads;
    return RC_OK;
}

#include "hip/hip_api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HIP_VERSION_4_2 "hip_4.2"
#define HIP_VERSION_4_3 "hip_4.3"
#define HIP_VERSION_4_4 "hip_4.4"
#define HIP_VERSION_4_5 "hip_4.5"
#define HIP_VERSION_5_0 "hip_5.0"
#define HIP_VERSION_5_1 "hip_5.1"
#define HIP_VERSION_5_2 "hip_5.2"
#define HIP_VERSION_5_3 "hip_5.3"
#define HIP_VERSION_5_5 "hip_5.5"
#define HIP_VERSION_5_6 "hip_5.6"
#define HIP_VERSION_6_0 "hip_6.0"
#define HIP_VERSION_6_1 "hip_6.1"
#define HIP_VERSION_6_2 "hip_6.2"
#define HIP_VERSION_6_3 "hip_6.3"
#define HIP_VERSION_6_4 "hip_6.4"
#define HIP_VERSION_6_5 "hip_6.5"
#define HIP_VERSION_7_1 "hip_7.1"
#define HIP_VERSION_7_2 "hip_7.2"

static const struct {
    const char *name;
    const char *version;
    enum hip_class cls;
} functions[HIP_FN_COUNT] = {
#define HIP_FN(ret, name, params, args, cls, since)                                                \
    [HIP_FN_##name] = { #name, HIP_VERSION_##since, HIP_CLASS_##cls },
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    [HIP_FN_##name] = { #name, HIP_VERSION_##since, HIP_CLASS_##cls },
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
};

static const uint8_t traits[HIP_FN_COUNT] = {
#define HIP_FN(ret, name, params, args, cls, since)
#define HIP_VOID_FN(name, params, args, cls, since)
#define HIP_TRAIT(name, trait) [HIP_FN_##name] = HIP_TRAIT_##trait,
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
#undef HIP_TRAIT
};

static const char *const class_names[HIP_CLASS_COUNT] = {
    [HIP_CLASS_DEVICE] = "DEVICE", [HIP_CLASS_ERROR] = "ERROR",   [HIP_CLASS_ALLOC] = "ALLOC",
    [HIP_CLASS_FREE] = "FREE",     [HIP_CLASS_COPY] = "COPY",     [HIP_CLASS_SET] = "SET",
    [HIP_CLASS_LAUNCH] = "LAUNCH", [HIP_CLASS_SYNC] = "SYNC",     [HIP_CLASS_STREAM] = "STREAM",
    [HIP_CLASS_EVENT] = "EVENT",   [HIP_CLASS_MODULE] = "MODULE", [HIP_CLASS_GRAPH] = "GRAPH",
    [HIP_CLASS_QUERY] = "QUERY",   [HIP_CLASS_RTC] = "RTC",       [HIP_CLASS_REGISTER] = "REGISTER",
};

/* Function numbers in the order of their names, made once on the first look-up. */
static enum hip_fn by_name[HIP_FN_COUNT];
static pthread_once_t by_name_once = PTHREAD_ONCE_INIT;

const char *hip_fn_name(enum hip_fn fn) {
    return (unsigned)fn < HIP_FN_COUNT ? functions[fn].name : "?";
}

enum hip_class hip_fn_class(enum hip_fn fn) {
    return (unsigned)fn < HIP_FN_COUNT ? functions[fn].cls : HIP_CLASS_COUNT;
}

enum hip_trait hip_fn_trait(enum hip_fn fn) {
    return (unsigned)fn < HIP_FN_COUNT ? (enum hip_trait)traits[fn] : HIP_TRAIT_NONE;
}

const char *hip_fn_version(enum hip_fn fn) {
    return (unsigned)fn < HIP_FN_COUNT ? functions[fn].version : "?";
}

const char *hip_class_name(enum hip_class cls) {
    return (unsigned)cls < HIP_CLASS_COUNT ? class_names[cls] : "?";
}

static int compare_functions(const void *a, const void *b) {
    return strcmp(functions[*(const enum hip_fn *)a].name, functions[*(const enum hip_fn *)b].name);
}

static void sort_functions(void) {
    for (int i = 0; i < HIP_FN_COUNT; i++)
        by_name[i] = (enum hip_fn)i;
    qsort(by_name, HIP_FN_COUNT, sizeof(by_name[0]), compare_functions);
}

enum hip_fn hip_fn_find(const char *name) {
    pthread_once(&by_name_once, sort_functions);
    size_t low = 0, high = HIP_FN_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, functions[by_name[middle]].name);
        if (order == 0)
            return by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return HIP_FN_COUNT;
}

const char *hip_error_name(hipError_t error) {
    switch (error) {
#define HIP_ERR(name, value, kind, message)                                                        \
    case name:                                                                                     \
        return #name;
#define HIP_ERR6(name, value, kind, message) HIP_ERR(name, value, kind, message)
#define HIP_ERR_ALIAS(name, value, primary)
#include "hip/hip_error.def"
#undef HIP_ERR
    }
    return "hipErrorUnknown";
}

const char *hip_error_string(hipError_t error) {
    switch (error) {
#define HIP_ERR(name, value, kind, message)                                                        \
    case name:                                                                                     \
        return message;
#include "hip/hip_error.def"
#undef HIP_ERR
#undef HIP_ERR6
#undef HIP_ERR_ALIAS
    }
    return "unknown error";
}

enum hip_error_kind hip_error_kind(hipError_t error) {
    switch (error) {
#define HIP_ERR(name, value, kind, message)                                                        \
    case name:                                                                                     \
        return HIP_ERROR_##kind;
#define HIP_ERR6(name, value, kind, message) HIP_ERR(name, value, kind, message)
#define HIP_ERR_ALIAS(name, value, primary)
#include "hip/hip_error.def"
#undef HIP_ERR
#undef HIP_ERR6
#undef HIP_ERR_ALIAS
    }
    return HIP_ERROR_PLAIN;
}

bool hip_error_is_sticky(hipError_t error) {
    return hip_error_kind(error) == HIP_ERROR_STICKY;
}

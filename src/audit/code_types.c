/* code_types.c - the types of a kernel's parameters, from its mangled name.
 *
 * Metadata says which arguments are pointers, but of what is pointed at it knows only the
 * `const __restrict__` ones. C++ has the types in the name. It is demangled by the program's own
 * C++ library: whoever has C++ kernels has one; the HIP runtime of ROCm is written in C++ itself.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "audit/code.h"

/* ---- one type ------------------------------------------------------------------------------ */

struct text {
    const char *at;
    size_t length;
};

static struct text trim(struct text t) {
    while (t.length && isspace((unsigned char)t.at[t.length - 1]))
        t.length--;
    while (t.length && isspace((unsigned char)*t.at)) {
        t.at++;
        t.length--;
    }
    return t;
}

static bool ends_with(struct text t, const char *end) {
    size_t n = strlen(end);
    return t.length >= n && !memcmp(t.at + t.length - n, end, n);
}

static bool starts_with(struct text t, const char *start) {
    size_t n = strlen(start);
    return t.length >= n && !memcmp(t.at, start, n);
}

static bool is(struct text t, const char *word) {
    return t.length == strlen(word) && !memcmp(t.at, word, t.length);
}

/* Takes " const", " volatile" and " restrict" off the end; true if const was among them. */
static bool strip_qualifiers(struct text *t) {
    bool is_const = false, more = true;
    while (more) {
        *t = trim(*t);
        more = false;
        if (ends_with(*t, " const")) {
            t->length -= strlen(" const");
            is_const = more = true;
        } else if (ends_with(*t, " volatile")) {
            t->length -= strlen(" volatile");
            more = true;
        } else if (ends_with(*t, " __restrict")) {
            t->length -= strlen(" __restrict");
            more = true;
        } else if (ends_with(*t, " restrict")) {
            t->length -= strlen(" restrict");
            more = true;
        }
    }
    return is_const;
}

/* True for numbers and HIP's vectors of numbers, whose values hold no pointers. */
static bool is_number(struct text t) {
    static const char *const words[] = {
        "bool",
        "char",
        "signed char",
        "unsigned char",
        "short",
        "unsigned short",
        "int",
        "unsigned int",
        "long",
        "unsigned long",
        "long long",
        "unsigned long long",
        "__int128",
        "unsigned __int128",
        "float",
        "double",
        "long double",
        "_Float16",
        "half",
        "__fp16",
        "wchar_t",
        "char8_t",
        "char16_t",
        "char32_t",
        "__half",
        "__half2",
        "__bf16",
        "std::bfloat16_t",
        "hip_bfloat16",
        "__hip_bfloat16",
        "__hip_bfloat162",
        "dim3",
        "std::complex<float>",
        "std::complex<double>",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(t, words[i]))
            return true;
    return starts_with(t, "HIP_vector_type<") || ends_with(t, "__vector");
}

static void refine(struct text type, struct kernel_param *p) {
    strip_qualifiers(&type);
    if (!p->access) {
        p->opaque = p->opaque && !is_number(type);
        return;
    }
    if (!ends_with(type, "*"))
        return; /* not what metadata calls a pointer: believe neither */
    type.length--;
    if (strip_qualifiers(&type))
        p->access = EVENT_ARG_READ;
    p->leads_on = !is_number(type);
}

/* ---- the list of parameters ------------------------------------------------------------------ */

/* What stands in the last pair of parentheses. */
static bool find_parameters(const char *name, struct text *out) {
    size_t end = strlen(name), depth = 0;
    if (!end || name[end - 1] != ')')
        return false;
    for (size_t i = end; i-- > 0;) {
        depth += name[i] == ')';
        if (name[i] == '(' && --depth == 0) {
            *out = (struct text){ name + i + 1, end - i - 2 };
            return true;
        }
    }
    return false;
}

/* Splits at the commas that are in no brackets; how many parts there are, of which `room` are
 * stored. */
static unsigned split(struct text list, struct text *out, unsigned room) {
    unsigned count = 0;
    int depth = 0;
    size_t start = 0;
    if (!trim(list).length)
        return 0;
    for (size_t i = 0; i <= list.length; i++) {
        char c = i < list.length ? list.at[i] : ',';
        depth += (c == '(' || c == '<' || c == '[' || c == '{');
        depth -= (c == ')' || c == '>' || c == ']' || c == '}');
        if (c != ',' || (depth && i < list.length))
            continue;
        if (count < room)
            out[count] = (struct text){ list.at + start, i - start };
        count++;
        start = i + 1;
    }
    return depth ? 0 : count;
}

bool code_add_signature(const char *demangled, struct kernel_layout *layout) {
    struct text list, parts[KERNEL_PARAMS_MAX];
    if (!find_parameters(demangled, &list) ||
        split(list, parts, KERNEL_PARAMS_MAX) != layout->count)
        return false;
    for (unsigned i = 0; i < layout->count; i++)
        refine(trim(parts[i]), &layout->param[i]);
    return true;
}

/* ---- demangling ---------------------------------------------------------------------------- */

typedef char *demangler(const char *name, char *buffer, size_t *length, int *status);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static demangler *demangle;

static void find_demangler(void) {
    void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    memcpy(&demangle, &symbol, sizeof symbol);
}

void code_add_types(const char *kernel, struct kernel_layout *layout) {
    if (strncmp(kernel, "_Z", 2) != 0)
        return;
    pthread_once(&once, find_demangler);
    int status = 0;
    char *text = demangle ? demangle(kernel, NULL, NULL, &status) : NULL;
    if (text)
        (void)code_add_signature(text, layout);
    free(text);
}

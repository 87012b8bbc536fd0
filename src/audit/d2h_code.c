/* The results of checked copies by name. */
#include <gcore/d2h.h>

static const struct {
    const char *name, *text;
} codes[GCORE_D2H_CODE_COUNT] = {
#define GCORE_D2H_CODE(name, text) [GCORE_D2H_##name] = { #name, text },
#include <gcore/d2h_codes.def>
#undef GCORE_D2H_CODE
};

const char *gcore_d2h_code_name(enum gcore_d2h_code code) {
    return (unsigned)code < GCORE_D2H_CODE_COUNT ? codes[code].name : "?";
}

const char *gcore_d2h_code_text(enum gcore_d2h_code code) {
    return (unsigned)code < GCORE_D2H_CODE_COUNT ? codes[code].text : "?";
}

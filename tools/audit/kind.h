/* kind.h - kinds of option values of greta_audit, beside those that all programs share. */
#ifndef AUDIT_KIND_H
#define AUDIT_KIND_H

#include "report/lang.h"
#include "tools/common/option.h"

/* clang-format off */
#define AUDIT_KINDS(KIND)                                                                          \
    KIND(lang,        enum lang)                                                                   \
    KIND(word,        const char *) /* not empty */                                                \
    KIND(folder,      const char *)                                                                \
    KIND(name,        const char *) /* of a file, without folders */                               \
    KIND(commit,      const char *) /* or build: 7 hexadecimal digits or more */                   \
    KIND(model_hash,  const char *) /* hexadecimal digits */
/* clang-format on */
AUDIT_KINDS(OPTION_DECLARE)

#endif

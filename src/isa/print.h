/* print.h - parts of the printer; not for users of the library. */
#ifndef ISA_PRINT_H
#define ISA_PRINT_H

#include "isa/insn.h"

struct isa_text {
    char *out;
    size_t size;
    int length;   /* of the whole text, also if it does not fit */
    int operands; /* so far */
    enum isa_gpu gpu;
};

void isa_text_add(struct isa_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A register, special register or constant of a type. ISA_OFF is "off". */
void isa_operand_print(struct isa_text *t, const struct isa_insn *i, unsigned code,
                       enum isa_type type);

/* The offset of ds_swizzle_b32: " offset:swizzle(...)". */
void isa_swizzle_print(struct isa_text *t, unsigned offset);

/* The format of MTBUF: " format:[...]". */
void isa_format_print(struct isa_text *t, unsigned format);

#endif

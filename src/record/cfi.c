#include "record/cfi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* ---- numbers in tables ----------------------------------------------------------------------- */

struct bytes {
    const unsigned char *at, *end; /* end NULL: bounded by what is being read */
    bool bad;
};

static uint64_t take(struct bytes *b, size_t count) {
    uint64_t out = 0;
    if (!b->at || (b->end && (size_t)(b->end - b->at) < count)) {
        b->bad = true;
        b->at = b->end;
        return 0;
    }
    memcpy(&out, b->at, count);
    b->at += count;
    return out;
}

static uint64_t take_unsigned(struct bytes *b) {
    uint64_t out = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint64_t byte = take(b, 1);
        if (shift < 64)
            out |= (byte & 0x7f) << shift;
        if (!(byte & 0x80) || b->bad)
            return out;
    }
}

static int64_t take_signed(struct bytes *b) {
    uint64_t out = 0;
    for (unsigned shift = 0;;) {
        uint64_t byte = take(b, 1);
        if (shift < 64)
            out |= (byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80 && !b->bad)
            continue;
        if (shift < 64 && byte & 0x40)
            out |= ~UINT64_C(0) << shift;
        return (int64_t)out;
    }
}

/* DW_EH_PE_*: how an address is written. */
enum { ENCODE_ABSOLUTE = 0x00, ENCODE_RELATIVE = 0x10, ENCODE_OMIT = 0xff };

static uint64_t take_encoded(struct bytes *b, unsigned encoding) {
    uint64_t place = (uint64_t)(uintptr_t)b->at, value;
    switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
        value = take(b, 8);
        break;
    case 0x01:
        value = take_unsigned(b);
        break;
    case 0x02:
        value = take(b, 2);
        break;
    case 0x03:
        value = take(b, 4);
        break;
    case 0x09:
        value = (uint64_t)take_signed(b);
        break;
    case 0x0a:
        value = (uint64_t)(int64_t)(int16_t)take(b, 2);
        break;
    case 0x0b:
        value = (uint64_t)(int64_t)(int32_t)take(b, 4);
        break;
    default:
        b->bad = true;
        return 0;
    }
    if ((encoding & 0x70) == ENCODE_RELATIVE)
        value += place;
    else if ((encoding & 0x70) != ENCODE_ABSOLUTE)
        b->bad = true;
    return value;
}

/* ---- finding an entry ------------------------------------------------------------------------ */

/* The sorted table behind .eh_frame_hdr: start of a function and its entry, both relative to the
 * header. */
struct header_row {
    int32_t start, entry;
};

/* The entry of .eh_frame that may cover pc, NULL if there is none. */
static const unsigned char *find_entry(const unsigned char *header, uintptr_t pc) {
    enum { VERSION = 1, SORTED = 0x3b };
    struct bytes b = { .at = header + 4 };
    if (header[0] != VERSION || header[3] != SORTED || header[2] == ENCODE_OMIT)
        return NULL;
    (void)take_encoded(&b, header[1]);
    uint64_t count = take_encoded(&b, header[2]);
    if (b.bad || !count || (uintptr_t)b.at % sizeof(int32_t))
        return NULL;
    const struct header_row *row = (const struct header_row *)(const void *)b.at;
    uint64_t low = 0, high = count;
    while (low < high) { /* the first that starts after pc */
        uint64_t middle = low + (high - low) / 2;
        if ((uintptr_t)header + (uintptr_t)(intptr_t)row[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? header + row[low - 1].entry : NULL;
}

struct entry {
    uint64_t start, size;
    uint64_t code_unit;
    int64_t data_unit;
    unsigned encoding;
    bool signal;
    struct bytes common, own; /* instructions */
};

/* One entry or common part: its length, and what follows it. */
static bool open_part(const unsigned char *at, struct bytes *out) {
    uint32_t length;
    memcpy(&length, at, sizeof length);
    if (length == 0 || length == UINT32_MAX)
        return false;
    *out = (struct bytes){ .at = at + 4, .end = at + 4 + length };
    return true;
}

static bool read_common(const unsigned char *at, struct entry *e, bool *sized) {
    struct bytes b;
    if (!open_part(at, &b) || take(&b, 4) != 0)
        return false;
    uint64_t version = take(&b, 1);
    const char *letters = (const char *)b.at;
    while (!b.bad && take(&b, 1))
        ;
    if (b.bad || (version != 1 && version != 3))
        return false;
    e->code_unit = take_unsigned(&b);
    e->data_unit = take_signed(&b);
    (void)(version == 1 ? take(&b, 1) : take_unsigned(&b)); /* the return address's register */
    *sized = letters[0] == 'z';
    if (*sized) {
        uint64_t bytes = take_unsigned(&b);
        if (b.bad || bytes > (size_t)(b.end - b.at))
            return false;
        struct bytes data = { .at = b.at, .end = b.at + bytes };
        b.at += bytes;
        for (letters++; *letters; letters++) {
            if (*letters == 'R')
                e->encoding = (unsigned)take(&data, 1);
            else if (*letters == 'L')
                (void)take(&data, 1);
            else if (*letters == 'P')
                (void)take_encoded(&data, (unsigned)take(&data, 1) & 0x7fu);
            else if (*letters == 'S')
                e->signal = true;
        }
    } else if (letters[0]) {
        return false;
    }
    e->common = b;
    return !b.bad;
}

static bool read_entry(const unsigned char *at, uintptr_t pc, struct entry *e) {
    struct bytes b;
    bool sized = false;
    *e = (struct entry){ 0 };
    if (!open_part(at, &b))
        return false;
    const unsigned char *place = b.at;
    uint64_t back = take(&b, 4);
    if (!back || !read_common(place - back, e, &sized))
        return false;
    e->start = take_encoded(&b, e->encoding);
    e->size = take_encoded(&b, e->encoding & 0x0f);
    if (sized) {
        uint64_t bytes = take_unsigned(&b);
        if (b.bad || bytes > (size_t)(b.end - b.at))
            return false;
        b.at += bytes;
    }
    e->own = b;
    return !b.bad && pc - e->start < e->size;
}

/* ---- running its instructions ---------------------------------------------------------------- */

enum { REGISTER_FRAME = 6, REGISTER_STACK = 7, REGISTER_RETURN = 16 };
enum { REMEMBERED_MAX = 4 };

struct run {
    struct cfi_row row, first, remembered[REMEMBERED_MAX];
    unsigned depth;
    uint64_t place, pc;
    const struct entry *e;
};

static struct cfi_rule *rule_of(struct cfi_row *row, uint64_t number) {
    return number == REGISTER_FRAME    ? &row->frame
           : number == REGISTER_RETURN ? &row->return_address
                                       : NULL;
}

static void set_rule(struct run *r, uint64_t number, enum cfi_kind kind, int64_t offset,
                     const unsigned char *expression) {
    struct cfi_rule *rule = rule_of(&r->row, number);
    if (rule)
        *rule = (struct cfi_rule){ kind, offset, expression };
}

static void restore_rule(struct run *r, uint64_t number) {
    struct cfi_rule *rule = rule_of(&r->row, number);
    if (rule)
        *rule = *rule_of(&r->first, number);
}

static void set_base(struct run *r, uint64_t number) {
    r->row.base = number == REGISTER_STACK   ? CFI_BASE_STACK
                  : number == REGISTER_FRAME ? CFI_BASE_FRAME
                                             : CFI_BASE_OTHER;
}

static const unsigned char *skip_expression(struct bytes *b) {
    const unsigned char *at = b->at;
    uint64_t bytes = take_unsigned(b);
    if (b->bad || bytes > (size_t)(b->end - b->at))
        b->bad = true;
    else
        b->at += bytes;
    return at;
}

/* Instructions that set the rule of a register: DW_CFA_offset_extended and its relatives. False if
 * code is none of them. */
static bool run_rule(struct run *r, unsigned code, struct bytes *b) {
    int64_t unit = r->e->data_unit;
    uint64_t number;
    const unsigned char *expression;
    switch (code) {
    case 0x05:
        number = take_unsigned(b);
        set_rule(r, number, CFI_AT, (int64_t)take_unsigned(b) * unit, NULL);
        return true;
    case 0x06:
        restore_rule(r, take_unsigned(b));
        return true;
    case 0x07:
        set_rule(r, take_unsigned(b), CFI_UNDEFINED, 0, NULL);
        return true;
    case 0x08:
        set_rule(r, take_unsigned(b), CFI_SAME, 0, NULL);
        return true;
    case 0x09:
    case 0x14:
        set_rule(r, take_unsigned(b), CFI_OTHER, 0, NULL);
        (void)take_unsigned(b);
        return true;
    case 0x10:
        number = take_unsigned(b);
        expression = skip_expression(b);
        set_rule(r, number, CFI_AT_EXPRESSION, 0, expression);
        return true;
    case 0x11:
        number = take_unsigned(b);
        set_rule(r, number, CFI_AT, take_signed(b) * unit, NULL);
        return true;
    case 0x15:
        set_rule(r, take_unsigned(b), CFI_OTHER, 0, NULL);
        (void)take_signed(b);
        return true;
    case 0x16:
        set_rule(r, take_unsigned(b), CFI_OTHER, 0, NULL);
        (void)skip_expression(b);
        return true;
    case 0x2f:
        number = take_unsigned(b);
        set_rule(r, number, CFI_AT, -(int64_t)take_unsigned(b) * unit, NULL);
        return true;
    default:
        return false;
    }
}

/* Instructions that define the canonical frame address, or remember and restore whole rows. False
 * if code is unknown. */
static bool run_base(struct run *r, unsigned code, struct bytes *b) {
    switch (code) {
    case 0x0a:
        if (r->depth == REMEMBERED_MAX)
            return false;
        r->remembered[r->depth++] = r->row;
        return true;
    case 0x0b:
        if (!r->depth)
            return false;
        r->row = r->remembered[--r->depth];
        return true;
    case 0x0c:
        set_base(r, take_unsigned(b));
        r->row.offset = (int64_t)take_unsigned(b);
        return true;
    case 0x0d:
        set_base(r, take_unsigned(b));
        return true;
    case 0x0e:
        r->row.offset = (int64_t)take_unsigned(b);
        return true;
    case 0x0f:
        r->row.base = CFI_BASE_EXPRESSION;
        r->row.expression = skip_expression(b);
        return true;
    case 0x12:
        set_base(r, take_unsigned(b));
        r->row.offset = take_signed(b) * r->e->data_unit;
        return true;
    case 0x13:
        r->row.offset = take_signed(b) * r->e->data_unit;
        return true;
    case 0x2e:
        (void)take_unsigned(b);
        return true; /* size of the arguments */
    default:
        return code == 0;
    }
}

/* Bytes of the operand of DW_CFA_advance_loc1, _loc2 and _loc4; 0: code is none of them. */
static unsigned advance_bytes(unsigned code) {
    return code == 0x02 ? 1 : code == 0x03 ? 2 : code == 0x04 ? 4 : 0;
}

/* Runs instructions up to the row that covers pc. False if one of them is unknown. */
static bool run(struct run *r, struct bytes b) {
    while (b.at < b.end && r->place <= r->pc && !b.bad) {
        unsigned code = (unsigned)take(&b, 1);
        uint64_t low = code & 0x3f, distance = 0;
        if (code >> 6 == 1) {
            distance = low;
        } else if (code >> 6 == 2) {
            set_rule(r, low, CFI_AT, (int64_t)take_unsigned(&b) * r->e->data_unit, NULL);
        } else if (code >> 6 == 3) {
            restore_rule(r, low);
        } else if (advance_bytes(code)) {
            distance = take(&b, advance_bytes(code));
        } else if (code == 0x01) {
            r->place = take_encoded(&b, r->e->encoding);
        } else if (!run_rule(r, code, &b) && !run_base(r, code, &b)) {
            return false;
        }
        /* Once place is past pc, the row is complete: what follows describes later code. */
        r->place += distance * r->e->code_unit;
    }
    return !b.bad;
}

bool cfi_find(uintptr_t pc, struct cfi_row *out) {
#if defined(__x86_64__)
    struct dl_find_object object;
    struct entry e;
    if (_dl_find_object((void *)pc, &object) != 0 || !object.dlfo_eh_frame)
        return false;
    const unsigned char *entry = find_entry(object.dlfo_eh_frame, pc);
    if (!entry || !read_entry(entry, pc, &e))
        return false;
    struct run r = { .place = e.start, .pc = pc, .e = &e };
    r.row = (struct cfi_row){ .base = CFI_BASE_OTHER, .signal = e.signal };
    r.row.return_address.kind = CFI_UNDEFINED;
    if (!run(&r, e.common))
        return false;
    r.first = r.row;
    if (!run(&r, e.own))
        return false;
    *out = r.row;
    return true;
#else
    (void)pc;
    (void)out;
    (void)read_entry;
    (void)find_entry;
    (void)run;
    return false;
#endif
}

/* ---- expressions ----------------------------------------------------------------------------- */

enum { VALUES_MAX = 16 };

struct values {
    uint64_t of[VALUES_MAX];
    unsigned count;
    bool bad;
};

static void push(struct values *v, uint64_t value) {
    if (v->count == VALUES_MAX)
        v->bad = true;
    else
        v->of[v->count++] = value;
}

static uint64_t pop(struct values *v) {
    if (!v->count) {
        v->bad = true;
        return 0;
    }
    return v->of[--v->count];
}

/* Operations on two values. False if code is none of them. */
static bool evaluate_pair(struct values *v, unsigned code) {
    if (code != 0x1a && code != 0x1c && code != 0x22 && code != 0x24 &&
        (code < 0x29 || code > 0x2e))
        return false;
    uint64_t right = pop(v), left = pop(v);
    switch (code) {
    case 0x1a:
        push(v, left & right);
        break;
    case 0x1c:
        push(v, left - right);
        break;
    case 0x22:
        push(v, left + right);
        break;
    case 0x24:
        push(v, right < 64 ? left << right : 0);
        break;
    case 0x29:
        push(v, left == right);
        break;
    case 0x2a:
        push(v, (int64_t)left >= (int64_t)right);
        break;
    case 0x2b:
        push(v, (int64_t)left > (int64_t)right);
        break;
    case 0x2c:
        push(v, (int64_t)left <= (int64_t)right);
        break;
    case 0x2d:
        push(v, (int64_t)left < (int64_t)right);
        break;
    default:
        push(v, left != right);
        break;
    }
    return true;
}

static bool evaluate_register(struct values *v, unsigned number, struct bytes *b,
                              const struct cfi_machine *m) {
    uint64_t value = number == REGISTER_FRAME    ? m->frame
                     : number == REGISTER_STACK  ? m->stack
                     : number == REGISTER_RETURN ? m->pc
                                                 : 0;
    push(v, value + (uint64_t)take_signed(b));
    return number == REGISTER_FRAME || number == REGISTER_STACK || number == REGISTER_RETURN;
}

static bool evaluate_one(struct values *v, unsigned code, struct bytes *b,
                         const struct cfi_machine *m) {
    uint64_t value = 0;
    if (code >= 0x30 && code <= 0x4f) { /* DW_OP_lit0 to 31 */
        push(v, code - 0x30);
    } else if (code >= 0x70 && code <= 0x8f) { /* DW_OP_breg0 to 31 */
        return evaluate_register(v, code - 0x70, b, m);
    } else if (code == 0x06) {
        if (!m->load(m->user, pop(v), &value))
            return false;
        push(v, value);
    } else if (code == 0x08 || code == 0x0a || code == 0x0c || code == 0x0e) {
        push(v, take(b, (size_t)1 << (code - 0x08) / 2));
    } else if (code == 0x09) {
        push(v, (uint64_t)(int64_t)(int8_t)take(b, 1));
    } else if (code == 0x10) {
        push(v, take_unsigned(b));
    } else if (code == 0x11) {
        push(v, (uint64_t)take_signed(b));
    } else if (code == 0x12) {
        value = pop(v);
        push(v, value);
        push(v, value);
    } else if (code == 0x23) {
        value = pop(v);
        push(v, value + take_unsigned(b));
    } else {
        return evaluate_pair(v, code);
    }
    return true;
}

bool cfi_evaluate(const unsigned char *expression, uint64_t first, const struct cfi_machine *m,
                  uint64_t *out) {
    if (!expression)
        return false;
    struct bytes b = { .at = expression };
    uint64_t bytes = take_unsigned(&b);
    b.end = b.at + bytes;
    struct values v = { .of = { first }, .count = 1 };
    while (b.at < b.end && !b.bad && !v.bad)
        if (!evaluate_one(&v, (unsigned)take(&b, 1), &b, m))
            return false;
    *out = pop(&v);
    return !v.bad && !b.bad;
}

/* place.c - where in the program a call site is, in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hip/hip_api.h"
#include "record/reader.h"
#include "record/symbols.h"

unsigned reader_frame_lines(const reader *r, const struct site_frame *f, struct reader_line *out,
                            unsigned room) {
    const struct reader_source *s = reader_source(r);
    unsigned count = s->lines ? s->lines(s->user, f, out, room) : 0;
    if (count || !room)
        return count;
    uint64_t inside;
    out[0] = (struct reader_line){ .function = symbols_of_frame(r, f, &inside) };
    return 1;
}

bool reader_site_where(const reader *r, uint32_t id, struct reader_place *out) {
    const struct reader_source *s = reader_source(r);
    unsigned count;
    if (s->where && s->where(s->user, id, out))
        return true;
    const struct site_frame *f = reader_site(r, id, &count, NULL);
    if (!count)
        return false;
    out->frame = out->depth = 0;
    return reader_frame_lines(r, f, &out->line, 1) > 0;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The wrapper that the place was called through, if it has a line and is no template of HIP's. */
static bool find_wrapper(const reader *r, uint32_t id, const struct reader_place *p,
                         struct reader_line *out) {
    struct reader_line line[READER_LINES_MAX];
    char name[128];
    unsigned frames, count = p->depth;
    const struct site_frame *f = reader_site(r, id, &frames, NULL);
    if (count)
        reader_frame_lines(r, &f[p->frame], line, READER_LINES_MAX);
    else if (p->frame)
        count = reader_frame_lines(r, &f[p->frame - 1], line, READER_LINES_MAX);
    if (!count || !line[count - 1].function || !line[count - 1].line)
        return false;
    *out = line[count - 1];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(out->function, "<("), out->function);
    return hip_fn_find(name) == HIP_FN_COUNT;
}

static void line_text(const reader *r, uint32_t id, const struct reader_place *p, char *out,
                      size_t room) {
    struct reader_line through;
    int n = snprintf(out, room, "%s (%s:%" PRIu32 ")", p->line.function, base_name(p->line.file),
                     p->line.line);
    if (n > 0 && (size_t)n < room && find_wrapper(r, id, p, &through))
        snprintf(out + n, room - (size_t)n, " -> %s (%s:%" PRIu32 ")", through.function,
                 base_name(through.file), through.line);
}

void reader_site_text(const reader *r, uint32_t id, char *out, size_t room) {
    struct reader_place p;
    unsigned count;
    if (!reader_site_where(r, id, &p)) {
        snprintf(out, room, "-");
        return;
    }
    const struct site_frame *f = reader_site(r, id, &count, NULL) + p.frame;
    const char *module = base_name(reader_string(r, f->module));
    uint64_t inside;
    const char *symbol = symbols_of_frame(r, f, &inside);
    if (p.line.function && p.line.line)
        line_text(r, id, &p, out, room);
    else if (p.line.function && (!symbol || p.line.inlined))
        snprintf(out, room, "%s (%s)", p.line.function, module);
    else if (symbol)
        snprintf(out, room, "%s+0x%" PRIx64 " (%s)", p.line.function ? p.line.function : symbol,
                 inside, module);
    else if (f->module)
        snprintf(out, room, "%s+0x%" PRIx64, module, f->offset);
    else
        snprintf(out, room, "0x%" PRIx64, f->address);
}

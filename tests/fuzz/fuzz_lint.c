/* Any bytes are a source: lint reads them to the end, and what it finds lies inside them. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "lint/lint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lint *l = NULL;
    if (lint_open(&l, NULL) != RC_OK || lint_add_text(l, "x.c", (const char *)data, size, NULL))
        return 0;
    size_t lines = 1, hits = 0;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    for (const struct lint_hit *h = lint_files(l)->hits; h; h = h->next, hits++)
        assert(h->line >= 1 && h->line <= lines && h->column >= 1 && h->column <= size);
    assert(hits == lint_totals(l).found && lint_totals(l).allowed <= hits);
    lint_close(&l);
    return 0;
}

/* Any bytes as a GGUF file: open it, read everything it hands out, and ask for a configuration and
 * a verdict. The same bytes also go to the reader of demanded shapes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/guard_rail.h"
#include "model/quant/quant.h"
#include "model/quant/quant_scan.h"

/* Takes sums over everything that was read, so that the reads are made. */
uint64_t fuzz_gguf_sink;

static uint64_t read_array(const struct gguf_array *a) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        if (a->type == GGUF_STRING)
            sum += a->strings[i].len ? (uint8_t)a->strings[i].data[a->strings[i].len - 1] : 0;
        else if (a->type == GGUF_ARRAY)
            sum += read_array(&a->arrays[i]);
        else
            sum += gguf_array_u64(a, i) + (gguf_array_f64(a, i) > 0);
    }
    return sum;
}

static uint64_t read_keys(const gguf *g) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < gguf_key_count(g); i++) {
        const struct gguf_key *k = gguf_key_at(g, i);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(k->name.len < 63 ? k->name.len : 63),
                 k->name.data);
        sum += gguf_find_key(g, name) == k;
        if (k->value.type == GGUF_STRING && k->value.string.len)
            sum += (uint8_t)k->value.string.data[k->value.string.len - 1];
        if (k->value.type == GGUF_ARRAY)
            sum += read_array(&k->value.array);
    }
    return sum;
}

/* Decodes the first and the last block of every tensor. */
static uint64_t read_tensors(const gguf *g) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const struct tensor_type_info *type = tensor_type_find(t->type);
        float numbers[256];
        if (gguf_find_tensor(g, t->name) != t)
            abort();
        const uint8_t *last = (const uint8_t *)t->data + t->bytes - type->block_bytes;
        sum += *(const uint8_t *)t->data + *last;
        if (!quant_decode_row(t->type, t->data, numbers, type->block_elements, NULL))
            sum += numbers[0] > 0;
        if (!quant_decode_row(t->type, last, numbers, type->block_elements, NULL))
            sum += numbers[type->block_elements - 1] > 0;
    }
    return sum;
}

static void judge(const gguf *g) {
    struct config c;
    struct err e = { 0 };
    struct guard_rail_report r = { 0 };
    if (config_read(g, &c, &e))
        return;
    if (c.layers <= 64) /* more of them only repeat what was seen, slowly */
        guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
    struct guard_rail_memory need = guard_rail_memory_need(g, 1u << 20, 1u << 20);
    guard_rail_check_memory(&need, 1u << 30, &r);
    if (guard_rail_verdict(&r, g, &e) && e.msg[0] == 0)
        abort();
    guard_rail_clear(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e = { 0 };
    struct guard_rail_expectation x;
    gguf *g = NULL;
    if (guard_rail_parse_expectation((const char *)data, size, "fuzz.json", &x, &e) && !e.msg[0])
        abort();
    e.msg[0] = 0;
    if (gguf_open_memory(&g, data, size, "fuzz.gguf", &e)) {
        if (g || strncmp(e.msg, "fuzz.gguf: ", 11) != 0)
            abort();
        return 0;
    }
    fuzz_gguf_sink += read_keys(g) + read_tensors(g);
    judge(g);
    struct quant_scan_result *results = calloc(gguf_tensor_count(g) + 1, sizeof *results);
    struct quant_scan how = { .threads = 1 };
    if (results && quant_scan_model(g, &how, results, &e))
        abort();
    free(results);
    gguf_close(&g);
    return 0;
}

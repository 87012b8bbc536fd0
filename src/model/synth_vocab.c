/* A built-in vocabulary: text becomes few tokens and comes back unchanged.
 *
 * SentencePiece merges neighbours into the piece with the best score. Every piece here that is
 * longer than a character is an older piece plus one character, so that each can be reached, and
 * scores fall with age. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "model/synth.h"

/* U+2581, which stands for a space. */
#define SPACE "\xe2\x96\x81"

static const char words[] =
    "the of and to in is was he for it with as his on be at by had not are but from or have an "
    "they "
    "which one you were her all she there would their we him been has when who will more no if out "
    "so said what up its about into than them can only other new some could time these two may "
    "then "
    "do first any my now such like our over man me even most made after also did many before must "
    "through back years where much your way well down should because each just those people how "
    "too "
    "little state good very make world still own see men work long get here between both life "
    "being "
    "under never day same another know while last might us great old year off come since against "
    "go "
    "came right used take three model memory device copy kernel stream token layer value weight";

enum token_type { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6 };

struct vocab {
    struct arena arena;
    struct gguf_string *tokens;
    float *scores;
    int32_t *types;
    uint32_t count, size;
    uint32_t *slots; /* open addressing: 1 + index of a token, 0: free */
    uint32_t slot_mask;
    bool failed; /* memory ran out */
};

static bool is_known(struct vocab *v, const char *text, size_t len, uint32_t *slot) {
    uint32_t i = (uint32_t)hash_bytes(text, len, 0) & v->slot_mask;
    for (; v->slots[i]; i = (i + 1) & v->slot_mask) {
        const struct gguf_string *t = &v->tokens[v->slots[i] - 1];
        if (t->len == len && memcmp(t->data, text, len) == 0)
            return true;
    }
    *slot = i;
    return false;
}

/* Adds a token unless it is there already or the vocabulary is full. */
static void add(struct vocab *v, const char *text, size_t len, enum token_type type, float score) {
    uint32_t slot;
    if (v->count >= v->size || v->failed || is_known(v, text, len, &slot))
        return;
    char *copy = arena_copy_text(&v->arena, text, len);
    if (!copy) {
        v->failed = true;
        return;
    }
    v->tokens[v->count] = (struct gguf_string){ copy, len };
    v->scores[v->count] = score;
    v->types[v->count] = (int32_t)type;
    v->slots[slot] = ++v->count;
}

static void add_piece(struct vocab *v, const char *text, size_t len) {
    add(v, text, len, TOKEN_NORMAL, -(float)v->count);
}

static void add_fixed(struct vocab *v) {
    add(v, "<unk>", 5, TOKEN_UNKNOWN, 0);
    add(v, "<s>", 3, TOKEN_CONTROL, 0);
    add(v, "</s>", 4, TOKEN_CONTROL, 0);
    for (int b = 0; b < 256; b++) {
        static const char digits[] = "0123456789ABCDEF";
        char text[6] = { '<', '0', 'x', digits[b >> 4], digits[b & 15], '>' };
        add(v, text, sizeof text, TOKEN_BYTE, 0);
    }
    add_piece(v, SPACE, 3);
    for (int c = 'a'; c <= 'z'; c++)
        add_piece(v, &(char){ (char)c }, 1);
    for (int c = '!'; c <= '~'; c++)
        add_piece(v, &(char){ (char)c }, 1);
}

/* " t", " th", " the": every prefix of every word, shortest first, so that all can be merged. */
static void add_words(struct vocab *v) {
    for (size_t len = 1; len <= 8; len++)
        for (const char *w = words; *w; w += strcspn(w, " "), w += *w == ' ') {
            char text[16] = SPACE;
            if (strcspn(w, " ") < len)
                continue;
            memcpy(text + 3, w, len);
            add_piece(v, text, 3 + len);
        }
}

/* All combinations of `len` letters, with a space before them and without. */
static void add_combinations(struct vocab *v, size_t len) {
    char text[3 + 8] = SPACE;
    memset(text + 3, 'a', len);
    while (v->count < v->size && !v->failed) {
        add_piece(v, text + 3, len);
        add_piece(v, text, 3 + len);
        size_t i = len;
        while (i > 0 && text[3 + i - 1] == 'z')
            text[3 + --i] = 'a';
        if (i == 0)
            return;
        text[3 + i - 1]++;
    }
}

static bool allocate(struct vocab *v, uint32_t size) {
    uint32_t slots = 1024;
    while (slots < 2 * size) /* size is below 2^24 */
        slots *= 2;
    v->size = size;
    v->slot_mask = slots - 1;
    v->tokens = calloc(size, sizeof *v->tokens);
    v->scores = calloc(size, sizeof *v->scores);
    v->types = calloc(size, sizeof *v->types);
    v->slots = calloc(slots, sizeof *v->slots);
    return v->tokens && v->scores && v->types && v->slots;
}

static void release(struct vocab *v) {
    arena_clear(&v->arena);
    free(v->tokens);
    free(v->scores);
    free(v->types);
    free(v->slots);
}

enum rc synth_add_vocab(gguf_writer *w, uint32_t size, struct err *e) {
    struct vocab v = { 0 };
    if (size < SYNTH_VOCAB_MIN)
        return err_set(e, RC_RANGE, "a vocabulary of %u tokens, the built-in one has at least %d",
                       size, SYNTH_VOCAB_MIN);
    if (!allocate(&v, size)) {
        release(&v);
        return err_set(e, RC_MEMORY, "a vocabulary of %u tokens: out of memory", size);
    }
    add_fixed(&v);
    add_words(&v);
    for (size_t len = 1; len <= 6; len++)
        add_combinations(&v, len);
    enum rc rc = v.failed || v.count < size
                     ? err_set(e, RC_MEMORY, "a vocabulary of %u tokens: out of memory", size)
                     : RC_OK;
    if (!rc) {
        gguf_writer_add_string(w, "tokenizer.ggml.model", "llama");
        gguf_writer_add_string(w, "tokenizer.ggml.pre", "default");
        gguf_writer_add_strings(w, "tokenizer.ggml.tokens", v.tokens, size);
        gguf_writer_add_array(w, "tokenizer.ggml.scores", GGUF_F32, v.scores, size);
        gguf_writer_add_array(w, "tokenizer.ggml.token_type", GGUF_I32, v.types, size);
        gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 1);
        gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 2);
        gguf_writer_add_u32(w, "tokenizer.ggml.unknown_token_id", 0);
        gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", true);
        gguf_writer_add_bool(w, "tokenizer.ggml.add_eos_token", false);
        gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", true);
    }
    release(&v);
    return rc;
}

/* Vocabularies and texts out of random bytes. Beyond not crashing: ids are tokens, what is decoded
 * is UTF-8, untrusted text makes no control token, and where the vocabulary can spell every byte,
 * the pieces put together are the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/chat_template.h"
#include "model/tokenizer/tokenizer.h"

enum { MAX_TOKENS = 400, MAX_MERGES = 64 };

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t take(struct input *in) {
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

static struct gguf_string take_string(struct input *in, size_t len) {
    struct gguf_string s = { (const char *)in->at, len < in->left ? len : in->left };
    in->at += s.len;
    in->left -= s.len;
    return s;
}

struct vocabulary {
    struct vocab_source source;
    struct gguf_string tokens[MAX_TOKENS], merges[MAX_MERGES];
    float scores[MAX_TOKENS];
    uint8_t types[MAX_TOKENS];
    char bytes[256][8], joined[MAX_MERGES][64];
};

static void add_token(struct vocabulary *v, struct gguf_string text, uint8_t type, float score) {
    size_t i = v->source.token_count++;
    v->tokens[i] = text;
    v->types[i] = type;
    v->scores[i] = score;
}

/* A token for every byte, in the spelling of the model. */
static void add_bytes(struct vocabulary *v, bool spm) {
    unsigned others = 0;
    for (unsigned b = 0; b < 256; b++) {
        bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b != 0xAD);
        size_t n = spm ? (size_t)snprintf(v->bytes[b], sizeof v->bytes[b], "<0x%02X>", b)
                       : utf8_encode(printable ? b : 0x100 + others++, v->bytes[b]);
        add_token(v, (struct gguf_string){ v->bytes[b], n }, spm ? VOCAB_BYTE : VOCAB_NORMAL, 0);
    }
}

/* A merge of two tokens that are there. */
static void add_merge(struct vocabulary *v, unsigned left, unsigned right) {
    const struct gguf_string *a = &v->tokens[left % v->source.token_count];
    const struct gguf_string *b = &v->tokens[right % v->source.token_count];
    size_t i = v->source.merge_count++;
    int n = snprintf(v->joined[i], sizeof v->joined[i], "%.*s %.*s", (int)a->len, a->data,
                     (int)b->len, b->data);
    v->merges[i] =
        (struct gguf_string){ v->joined[i], (size_t)n < 64 ? (size_t)n : sizeof v->joined[i] - 1 };
}

static void read_vocabulary(struct vocabulary *v, struct input *in, uint8_t mode) {
    static const char *const pres[] = { "llama-bpe", "qwen2",   "gpt-2", "smollm",
                                        "tekken",    "default", "dbrx",  "nonsense" };
    bool spm = mode & 1;
    memset(v, 0, sizeof *v);
    vocab_source_init(&v->source, "fuzz");
    v->source.tokens = v->tokens;
    v->source.scores = v->scores;
    v->source.types = mode & 16 ? NULL : v->types;
    v->source.merges = v->merges;
    v->source.model = spm ? (struct gguf_string){ "llama", 5 } : (struct gguf_string){ "gpt2", 4 };
    const char *pre = pres[mode >> 5];
    v->source.pre = (struct gguf_string){ pre, strlen(pre) };
    if (!(mode & 2))
        add_bytes(v, spm);
    for (unsigned n = take(in) % 64; n > 0; n--) {
        uint8_t kind = take(in);
        add_token(v, take_string(in, kind >> 4), kind & 7, (float)(int8_t)take(in));
    }
    for (unsigned n = v->source.token_count ? take(in) % MAX_MERGES : 0; n > 0; n--) {
        unsigned left = take(in), right = take(in) + (left & 1) * 200u;
        add_merge(v, left + (right & 1) * 200u, right);
    }
    if (mode & 4) {
        v->source.bos = take(in);
        v->source.eos = take(in);
        v->source.add_space_prefix = take(in) & 1;
    }
    if (mode & 8)
        v->source.chat_template = take_string(in, take(in) % 32);
}

static void must(bool condition) {
    if (!condition)
        abort();
}

static bool is_utf8(const char *s, size_t len) {
    uint32_t cp;
    for (size_t n; len > 0; s += n, len -= n)
        if ((n = utf8_decode(s, len, &cp)) == 0)
            return false;
    return true;
}

static void check_decoding(const tokenizer *t, const struct token_list *list, bool whole,
                           bool show) {
    struct tokenizer_decoder d;
    struct token_text text = { 0 };
    tokenizer_decoder_init(&d, t, whole, show);
    for (size_t i = 0; i < list->count; i++) {
        must(tokenizer_decoder_push(&d, list->ids[i], &text, NULL) == RC_OK);
        must(is_utf8(text.data, text.len));
    }
    must(tokenizer_decoder_flush(&d, &text, NULL) == RC_OK);
    must(is_utf8(text.data, text.len));
    token_text_close(&text);
}

/* Bytes are never lost where every one has a token and no token hides its text. */
static void check_pieces(const tokenizer *t, const struct token_list *list, const char *text,
                         size_t len) {
    size_t at = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct gguf_string piece = tokenizer_piece(t, list->ids[i]);
        must(piece.len <= len - at && memcmp(text + at, piece.data, piece.len) == 0);
        at += piece.len;
    }
    must(at == len);
}

static void check_text(const tokenizer *t, const char *text, size_t len, bool spells_all) {
    for (unsigned flags = 0; flags < 16; flags++) {
        struct token_list list = { 0 };
        must(tokenizer_encode(t, text, len, flags, &list, NULL) == RC_OK);
        for (size_t i = 0; i < list.count; i++) {
            must(list.ids[i] >= 0 && (uint32_t)list.ids[i] < tokenizer_count(t));
            if (flags & TOKENIZER_UNTRUSTED && !(flags & TOKENIZER_ADD_SPECIAL))
                must(!tokenizer_is_control(t, list.ids[i]) || list.ids[i] == tokenizer_unk(t));
        }
        if (spells_all && flags == TOKENIZER_CONTINUES)
            check_pieces(t, &list, text, len);
        check_decoding(t, &list, flags & 1, flags & 2);
        token_list_close(&list);
    }
}

static void check_chat(const tokenizer *t, const char *text, size_t len) {
    enum chat_template which = CHAT_CHATML;
    if (chat_template_detect(&which, t, NULL) != RC_OK)
        which = (enum chat_template)(len % CHAT_TEMPLATE_COUNT);
    const struct chat_turn turns[] = {
        { CHAT_SYSTEM, text, len / 2 },
        { CHAT_USER, text + len / 2, len - len / 2 },
        { CHAT_ASSISTANT, text, len },
        { CHAT_USER, text, len / 3 },
    };
    for (size_t done = 0; done <= 3; done += 3) {
        struct token_list list = { 0 };
        must(chat_template_encode(which, t, turns, 4, done, true, &list, NULL) == RC_OK);
        token_list_close(&list);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct vocabulary v; /* large; filled anew each time */
    struct input in = { data, size };
    tokenizer *t = NULL;
    uint8_t mode = take(&in);
    read_vocabulary(&v, &in, mode);
    if (tokenizer_open(&t, &v.source, NULL) != RC_OK)
        return 0;
    const char *text = (const char *)in.at;
    /* With the bytes alone nothing can stand between a text and its pieces, but for BPE's
     * correction of what is not UTF-8, and SentencePiece's spaces, which are spelt as another
     * character. */
    bool spells_all = !(mode & (2 | 16)) && v.source.token_count == 256;
    bool unchanged = mode & 1 ? !in.left || !memchr(text, ' ', in.left) : is_utf8(text, in.left);
    check_text(t, text, in.left, spells_all && unchanged);
    check_chat(t, text, in.left);
    tokenizer_close(&t);
    return 0;
}

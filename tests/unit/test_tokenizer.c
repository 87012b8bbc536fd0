/* Opening a tokenizer: from hand-made sources, from GGUF metadata, from bad ones; several threads.
 */
#include "unit/test_tokenizer_tiny.h"

#include <pthread.h>

static struct tiny tiny;

static void assert_refused(enum rc rc, const char *message) {
    struct err e = { 0 };
    tokenizer *t = NULL;
    assert_int_equal(tokenizer_open(&t, &tiny.source, &e), rc);
    assert_null(t);
    if (!strstr(e.msg, message))
        fail_msg("'%s' is not in '%s'", message, e.msg);
}

static void errors_name_the_key(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tiny.source.model = tiny_string("bert");
    assert_refused(RC_UNSUPPORTED, "tiny: tokenizer.ggml.model is 'bert'");
    tiny_spm(&tiny);
    tiny.source.token_count = 0;
    assert_refused(RC_FORMAT, "tokenizer.ggml.tokens is missing or empty");
    tiny_spm(&tiny);
    tiny.source.eos = 275;
    assert_refused(RC_FORMAT,
                   "tokenizer.ggml.eos_token_id is 275, but the vocabulary has 275 tokens");
    tiny_bpe(&tiny, "gpt-2");
    tiny.source.merges = NULL;
    assert_refused(RC_FORMAT, "needs tokenizer.ggml.merges");
    tiny_bpe(&tiny, "gpt-3");
    assert_refused(RC_UNSUPPORTED, "tiny: tokenizer.ggml.pre is 'gpt-3'");
    tiny_bpe(&tiny, "gpt-2");
    tiny.source.add_bos = 1;
    assert_refused(RC_FORMAT, "tokenizer.ggml.add_bos_token is true, but there is no "
                              "tokenizer.ggml.bos_token_id");
}

static void llama_has_its_usual_ids_by_default(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tokenizer *t = tiny_open(&tiny);
    assert_int_equal(tokenizer_kind_of(t), TOKENIZER_SPM);
    assert_int_equal(tokenizer_count(t), 275);
    assert_int_equal(tokenizer_bos(t), 1);
    assert_int_equal(tokenizer_eos(t), 2);
    assert_int_equal(tokenizer_unk(t), 0);
    assert_int_equal(tokenizer_eot(t), TOKENIZER_NO_TOKEN);
    assert_true(tokenizer_adds_bos(t));
    assert_false(tokenizer_adds_eos(t));
    assert_true(tokenizer_is_eog(t, 2));
    assert_false(tokenizer_is_eog(t, 1));
    assert_true(tokenizer_is_control(t, 1));
    assert_false(tokenizer_is_control(t, TINY_WORDS));
    assert_false(tokenizer_is_eog(t, -1));
    assert_false(tokenizer_is_control(t, 275));
    tokenizer_close(&t);
}

static void bpe_has_no_ids_by_default(void **state) {
    (void)state;
    tiny_bpe(&tiny, "llama-bpe");
    tokenizer *t = tiny_open(&tiny);
    assert_int_equal(tokenizer_bos(t), TOKENIZER_NO_TOKEN);
    assert_int_equal(tokenizer_eos(t), TOKENIZER_NO_TOKEN);
    assert_false(tokenizer_adds_bos(t)); /* llama-bpe would, but there is none to add */
    tokenizer_close(&t);
}

static void tokens_end_generation_by_their_text(void **state) {
    (void)state;
    tiny_bpe(&tiny, "qwen2");
    int32_t end = tiny_add(&tiny, "<|im_end|>", VOCAB_NORMAL, 0);
    int32_t text = tiny_add(&tiny, "<|endoftext|>", VOCAB_CONTROL, 0);
    int32_t fim = tiny_add(&tiny, "<|fim_prefix|>", VOCAB_USER_DEFINED, 0);
    int32_t other = tiny_add(&tiny, "<|other|>", VOCAB_CONTROL, 0);
    tokenizer *t = tiny_open(&tiny);
    assert_int_equal(tokenizer_eot(t), end);
    assert_true(tokenizer_is_eog(t, end));
    assert_true(tokenizer_is_eog(t, text));
    assert_false(tokenizer_is_eog(t, fim));
    assert_false(tokenizer_is_eog(t, other));
    assert_true(tokenizer_is_control(t, end));
    assert_true(tokenizer_is_control(t, fim));
    tokenizer_close(&t);
    tiny.source.eot = other;
    t = tiny_open(&tiny);
    assert_int_equal(tokenizer_eot(t), other);
    assert_true(tokenizer_is_eog(t, other));
    tokenizer_close(&t);
}

static void odd_tokens_do_no_harm(void **state) {
    (void)state;
    tiny_spm(&tiny);
    int32_t empty = tiny_add(&tiny, "", VOCAB_NORMAL, 0);
    int32_t twice = tiny_add(&tiny, "hello", VOCAB_NORMAL, 0);
    int32_t unused = tiny_add(&tiny, "unused", VOCAB_UNUSED, 0);
    tiny.source.types = NULL; /* all are normal then */
    tokenizer *t = tiny_open(&tiny);
    assert_int_equal(tokenizer_text(t, empty).len, strlen("[EMPTY_275]"));
    assert_memory_equal(tokenizer_text(t, empty).data, "[EMPTY_275]", 11);
    assert_int_equal(tokenizer_find(t, "hello", 5), twice);
    assert_int_equal(tokenizer_piece(t, unused).len, 6);
    tokenizer_close(&t);
    tiny.source.types = tiny.types;
    t = tiny_open(&tiny);
    assert_int_equal(tokenizer_piece(t, unused).len, 0);
    assert_int_equal(tokenizer_find(t, "hello!", 6), TOKENIZER_NO_TOKEN);
    assert_int_equal(tokenizer_find(t, "", 0), TOKENIZER_NO_TOKEN);
    tokenizer_close(&t);
}

static void a_source_can_be_closed_before_its_tokenizer(void **state) {
    (void)state;
    struct tiny *v = malloc(sizeof *v);
    assert_non_null(v);
    tiny_spm(v);
    v->source.chat_template = tiny_string("{{ bos_token }}");
    tokenizer *t = tiny_open(v);
    memset(v, 0xA5, sizeof *v);
    free(v);
    assert_ids(t, "hello", TOKENIZER_ADD_SPECIAL, "1 271");
    assert_int_equal(tokenizer_chat_template(t).len, 15);
    assert_memory_equal(tokenizer_chat_template(t).data, "{{ bos_token }}", 15);
    tokenizer_close(&t);
    tokenizer_close(&t);
}

static void a_list_grows_by_what_is_encoded(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tokenizer *t = tiny_open(&tiny);
    struct token_list list = { 0 };
    struct err e = { 0 };
    assert_int_equal(tokenizer_encode(t, "hello", 5, 0, &list, &e), RC_OK);
    assert_int_equal(tokenizer_encode(t, "w", 1, 0, &list, &e), RC_OK);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.ids[2], 273);
    assert_int_equal(tokenizer_encode(t, "", (size_t)1 << 30, 0, &list, &e), RC_RANGE);
    assert_int_equal(list.count, 3);
    token_list_close(&list);
    tokenizer_close(&t);
}

/* A GGUF file with metadata only, written by hand. */
struct image {
    unsigned char bytes[16384];
    size_t len;
    uint64_t keys;
};

static void put(struct image *m, const void *data, size_t len) {
    assert_true(len <= sizeof m->bytes - m->len);
    memcpy(m->bytes + m->len, data, len);
    m->len += len;
}

static void put_u32(struct image *m, uint32_t v) {
    put(m, &v, sizeof v);
}

static void put_string(struct image *m, const char *s) {
    uint64_t len = strlen(s);
    put(m, &len, sizeof len);
    put(m, s, len);
}

static void put_key(struct image *m, const char *name, enum gguf_type type) {
    m->keys++;
    put_string(m, name);
    put_u32(m, type);
}

static void put_array(struct image *m, const char *name, enum gguf_type type, uint64_t count) {
    put_key(m, name, GGUF_ARRAY);
    put_u32(m, type);
    put(m, &count, sizeof count);
}

static void image_start(struct image *m) {
    const uint64_t none = 0;
    memset(m, 0, sizeof *m);
    put(m, "GGUF", 4);
    put_u32(m, 3);
    put(m, &none, sizeof none); /* tensors */
    put(m, &none, sizeof none); /* keys, known at the end */
    put_key(m, "tokenizer.ggml.model", GGUF_STRING);
    put_string(m, "llama");
    put_array(m, "tokenizer.ggml.tokens", GGUF_STRING, 5);
    put_string(m, "<unk>");
    put_string(m, "<s>");
    put_string(m, "</s>");
    put_string(m, "a");
    put_string(m, "aa");
}

static enum rc image_open(struct image *m, tokenizer **t, struct err *e) {
    gguf *g = NULL;
    memcpy(m->bytes + 16, &m->keys, sizeof m->keys);
    enum rc rc = gguf_open_memory(&g, m->bytes, m->len, "image", e);
    if (rc == RC_OK)
        rc = tokenizer_open_gguf(t, g, e);
    gguf_close(&g);
    return rc;
}

static void metadata_becomes_a_tokenizer(void **state) {
    (void)state;
    static struct image m;
    static const float scores[] = { 0, 0, 0, -1, -2 };
    static const int32_t types[] = { 2, 3, 3, 1, 99 };
    const uint8_t no = 0;
    struct err e = { 0 };
    tokenizer *t = NULL;
    image_start(&m);
    put_array(&m, "tokenizer.ggml.scores", GGUF_F32, 5);
    put(&m, scores, sizeof scores);
    put_array(&m, "tokenizer.ggml.token_type", GGUF_I32, 5);
    put(&m, types, sizeof types);
    put_key(&m, "tokenizer.ggml.eos_token_id", GGUF_U32);
    put_u32(&m, 3);
    put_key(&m, "tokenizer.ggml.unknown_token_id", GGUF_U32);
    put_u32(&m, UINT32_MAX); /* how some files say: none */
    put_key(&m, "tokenizer.ggml.add_bos_token", GGUF_BOOL);
    put(&m, &no, 1);
    put_key(&m, "tokenizer.ggml.add_space_prefix", GGUF_BOOL);
    put(&m, &no, 1);
    put_key(&m, "tokenizer.chat_template", GGUF_STRING);
    put_string(&m, "[INST]");
    if (image_open(&m, &t, &e) != RC_OK)
        fail_msg("%s", e.msg);
    assert_ids(t, "aaa", TOKENIZER_ADD_SPECIAL, "4 3");
    assert_int_equal(tokenizer_eos(t), 3);
    assert_int_equal(tokenizer_unk(t), 0);
    assert_int_equal(tokenizer_piece(t, 4).len, 0); /* a type that does not exist */
    assert_int_equal(tokenizer_chat_template(t).len, 6);
    tokenizer_close(&t);
}

static void bad_metadata_is_named(void **state) {
    (void)state;
    static struct image m;
    struct err e = { 0 };
    tokenizer *t = NULL;
    const float score = 0;
    image_start(&m);
    put_array(&m, "tokenizer.ggml.scores", GGUF_F32, 1);
    put(&m, &score, sizeof score);
    assert_int_equal(image_open(&m, &t, &e), RC_FORMAT);
    assert_string_equal(e.msg, "image: tokenizer.ggml.scores has 1 entries for 5 tokens");

    image_start(&m);
    put_key(&m, "tokenizer.ggml.token_type", GGUF_U32);
    put_u32(&m, 1);
    assert_int_equal(image_open(&m, &t, &e), RC_FORMAT);
    assert_non_null(strstr(e.msg, "tokenizer.ggml.token_type"));

    image_start(&m);
    put_key(&m, "tokenizer.ggml.bos_token_id", GGUF_STRING);
    put_string(&m, "<s>");
    assert_int_equal(image_open(&m, &t, &e), RC_FORMAT);
    assert_non_null(strstr(e.msg, "tokenizer.ggml.bos_token_id"));
    assert_null(t);
}

struct work {
    const tokenizer *t;
    bool good;
};

static void *encode_much(void *argument) {
    struct work *w = argument;
    w->good = true;
    for (int i = 0; i < 300 && w->good; i++) {
        struct token_list list = { 0 };
        if (tokenizer_encode(w->t, " hello\xFF</s> hello", 17, TOKENIZER_PARSE_SPECIAL, &list,
                             NULL) != RC_OK)
            w->good = false;
        w->good = w->good && list.count == 6 && list.ids[0] == 260 && list.ids[4] == 261 &&
                  list.ids[5] == 260;
        token_list_close(&list);
    }
    return NULL;
}

static void threads_share_a_tokenizer(void **state) {
    (void)state;
    enum { THREADS = 4 };
    tiny_bpe(&tiny, "llama-bpe");
    tiny_add(&tiny, "</s>", VOCAB_CONTROL, 0);
    tokenizer *t = tiny_open(&tiny);
    pthread_t threads[THREADS];
    struct work work[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){ .t = t };
        assert_int_equal(pthread_create(&threads[i], NULL, encode_much, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(work[i].good);
    }
    tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_name_the_key),
        cmocka_unit_test(llama_has_its_usual_ids_by_default),
        cmocka_unit_test(bpe_has_no_ids_by_default),
        cmocka_unit_test(tokens_end_generation_by_their_text),
        cmocka_unit_test(odd_tokens_do_no_harm),
        cmocka_unit_test(a_source_can_be_closed_before_its_tokenizer),
        cmocka_unit_test(a_list_grows_by_what_is_encoded),
        cmocka_unit_test(metadata_becomes_a_tokenizer),
        cmocka_unit_test(bad_metadata_is_named),
        cmocka_unit_test(threads_share_a_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

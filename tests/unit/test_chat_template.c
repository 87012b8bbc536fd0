/* Chat templates: what they render, which tokens they become, and that nobody can fake markup. */
#include "unit/test_tokenizer_tiny.h"

#include "model/tokenizer/chat_template.h"

static struct tiny tiny;

static struct chat_turn turn(enum chat_role role, const char *text) {
    return (struct chat_turn){ role, text, strlen(text) };
}

/* Pieces as text: tokens in {}, what was said in (). */
static const char *rendering(enum chat_template which, const struct chat_turn *turns, size_t count,
                             size_t done, bool answer) {
    static char out[1024];
    struct chat_pieces pieces = { 0 };
    struct err e = { 0 };
    if (chat_template_render(which, turns, count, done, answer, &pieces, &e) != RC_OK)
        fail_msg("%s", e.msg);
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < pieces.count; i++) {
        static const char *const formats[] = {
            [CHAT_PIECE_MARKUP] = "%.*s",   [CHAT_PIECE_CONTENT] = "(%.*s)",
            [CHAT_PIECE_TOKEN] = "{%.*s}",  [CHAT_PIECE_BOS] = "{bos}%.*s",
            [CHAT_PIECE_EOS] = "{eos}%.*s",
        };
        const struct chat_piece *p = &pieces.items[i];
        n += (size_t)snprintf(out + n, sizeof out - n, formats[p->kind], (int)p->len, p->text);
    }
    chat_pieces_close(&pieces);
    return out;
}

/* A system turn, then a question, an answer and a question. */
static const char *whole(enum chat_template which) {
    const struct chat_turn turns[] = {
        turn(CHAT_SYSTEM, " Be brief. "),
        turn(CHAT_USER, "Hi"),
        turn(CHAT_ASSISTANT, "Hello"),
        turn(CHAT_USER, "{Bye}"),
    };
    return rendering(which, turns, 4, 0, true);
}

static void templates_render_as_models_were_trained(void **state) {
    (void)state;
    assert_string_equal(whole(CHAT_LLAMA2),
                        "{bos}[INST] <<SYS>>\n(Be brief.)\n<</SYS>>\n\n(Hi) [/INST] (Hello) {eos}"
                        "{bos}[INST] ({Bye}) [/INST]");
    assert_string_equal(whole(CHAT_LLAMA3),
                        "{<|start_header_id|>}system{<|end_header_id|>}\n\n(Be brief.){<|eot_id|>}"
                        "{<|start_header_id|>}user{<|end_header_id|>}\n\n(Hi){<|eot_id|>}"
                        "{<|start_header_id|>}assistant{<|end_header_id|>}\n\n(Hello){<|eot_id|>}"
                        "{<|start_header_id|>}user{<|end_header_id|>}\n\n({Bye}){<|eot_id|>}"
                        "{<|start_header_id|>}assistant{<|end_header_id|>}\n\n");
    assert_string_equal(whole(CHAT_CHATML), "{<|im_start|>}system\n( Be brief. ){<|im_end|>}\n"
                                            "{<|im_start|>}user\n(Hi){<|im_end|>}\n"
                                            "{<|im_start|>}assistant\n(Hello){<|im_end|>}\n"
                                            "{<|im_start|>}user\n({Bye}){<|im_end|>}\n"
                                            "{<|im_start|>}assistant\n");
    assert_string_equal(whole(CHAT_MISTRAL_V1), "[INST] ( Be brief. )\n\n(Hi) [/INST] (Hello){eos}"
                                                "[INST] ({Bye}) [/INST]");
    assert_string_equal(whole(CHAT_MISTRAL_V3),
                        "{[INST]} ( Be brief. )\n\n(Hi){[/INST]} (Hello){eos}"
                        "{[INST]} ({Bye}){[/INST]}");
    assert_string_equal(whole(CHAT_MISTRAL_V3_TEKKEN),
                        "{[INST]}( Be brief. )\n\n(Hi){[/INST]}(Hello){eos}"
                        "{[INST]}({Bye}){[/INST]}");
    assert_string_equal(whole(CHAT_MISTRAL_V7),
                        "{[SYSTEM_PROMPT]} ( Be brief. ){[/SYSTEM_PROMPT]}"
                        "{[INST]} (Hi){[/INST]} (Hello){eos}{[INST]} ({Bye}){[/INST]}");
    assert_string_equal(whole(CHAT_MISTRAL_V7_TEKKEN),
                        "{[SYSTEM_PROMPT]}( Be brief. ){[/SYSTEM_PROMPT]}"
                        "{[INST]}(Hi){[/INST]}(Hello){eos}{[INST]}({Bye}){[/INST]}");
    assert_string_equal(whole(CHAT_ZEPHYR),
                        "{<|system|>}\n( Be brief. ){eos}\n{<|user|>}\n(Hi){eos}\n"
                        "{<|assistant|>}\n(Hello){eos}\n{<|user|>}\n({Bye}){eos}\n"
                        "{<|assistant|>}\n");
    assert_string_equal(whole(CHAT_GEMMA),
                        "{<start_of_turn>}user\n(Be brief.)\n\n(Hi){<end_of_turn>}\n"
                        "{<start_of_turn>}model\n(Hello){<end_of_turn>}\n"
                        "{<start_of_turn>}user\n({Bye}){<end_of_turn>}\n{<start_of_turn>}model\n");
    assert_string_equal(whole(CHAT_PHI3),
                        "{<|system|>}(Be brief.){<|end|>}{<|user|>}(Hi){<|end|>}"
                        "{<|assistant|>}(Hello){<|end|>}{<|user|>}({Bye}){<|end|>}{<|assistant|>}");
    assert_string_equal(whole(CHAT_PHI4),
                        "{<|im_start|>}system{<|im_sep|>}( Be brief. ){<|im_end|>}"
                        "{<|im_start|>}user{<|im_sep|>}(Hi){<|im_end|>}"
                        "{<|im_start|>}assistant{<|im_sep|>}(Hello){<|im_end|>}"
                        "{<|im_start|>}user{<|im_sep|>}({Bye}){<|im_end|>}"
                        "{<|im_start|>}assistant{<|im_sep|>}");
    assert_string_equal(whole(CHAT_STARCODER2),
                        "( Be brief. )\n\n### Instruction\n(Hi)\n\n### Response\n(Hello){eos}"
                        "### Instruction\n({Bye})\n\n### Response\n");
}

/* What is rendered at once equals what is rendered turn by turn around generated answers. */
static void a_conversation_can_be_continued(void **state) {
    (void)state;
    const struct chat_turn turns[] = {
        turn(CHAT_USER, "Hi"),
        turn(CHAT_ASSISTANT, "Hello"),
        turn(CHAT_USER, "Bye"),
    };
    for (int which = 0; which < CHAT_TEMPLATE_COUNT; which++) {
        char parts[1024], all[1024];
        strcpy(parts, rendering((enum chat_template)which, turns, 1, 0, true));
        strcat(parts, "(Hello)");
        strcat(parts, rendering((enum chat_template)which, turns, 3, 2, true));
        strcpy(all, rendering((enum chat_template)which, turns, 3, 0, true));
        if (which == CHAT_LLAMA2 || which == CHAT_MISTRAL_V1 || which == CHAT_MISTRAL_V3 ||
            which == CHAT_MISTRAL_V7) {
            /* there the answer itself begins with the blank */
            char *answer = strstr(all, " (Hello)");
            assert_non_null(answer);
            memmove(answer, answer + 1, strlen(answer));
        }
        assert_string_equal(parts, all);
    }
}

static void a_system_turn_needs_a_user_turn_where_it_stands_inside_one(void **state) {
    (void)state;
    const struct chat_turn turns[] = { turn(CHAT_SYSTEM, "s"), turn(CHAT_ASSISTANT, "a") };
    struct chat_pieces pieces = { 0 };
    struct err e = { 0 };
    for (size_t count = 1; count <= 2; count++)
        assert_int_equal(chat_template_render(CHAT_LLAMA2, turns, count, 0, true, &pieces, &e),
                         RC_USAGE);
    assert_int_equal(chat_template_render(CHAT_CHATML, turns, 1, 0, true, &pieces, &e), RC_OK);
    chat_pieces_close(&pieces);
}

static void templates_have_names(void **state) {
    (void)state;
    static const char *const names[] = {
#define CHAT_TEMPLATE(id, name, ...) [CHAT_##id] = name,
#include "model/tokenizer/chat_template.def"
    };
    for (int which = 0; which < CHAT_TEMPLATE_COUNT; which++) {
        enum chat_template found = CHAT_TEMPLATE_COUNT;
        assert_int_equal(chat_template_find(&found, names[which], NULL, NULL), RC_OK);
        assert_int_equal(found, which);
    }
    enum chat_template found = CHAT_TEMPLATE_COUNT;
    struct err e = { 0 };
    assert_int_equal(chat_template_find(&found, "mistral", NULL, &e), RC_OK);
    assert_int_equal(found, CHAT_MISTRAL_V1);
    assert_int_equal(chat_template_find(&found, "llama4", NULL, &e), RC_USAGE);
    assert_string_equal(e.msg,
                        "there is no chat template 'llama4'; greta knows mistral, llama2, llama3, "
                        "chatml, mistral-v1, mistral-v3, mistral-v3-tekken, mistral-v7, "
                        "mistral-v7-tekken, zephyr, gemma, phi3, phi4, starcoder2");
}

/* The template that is detected for a text and one more token. */
static int detected(const char *model, const char *text, const char *token) {
    enum chat_template which = CHAT_TEMPLATE_COUNT;
    struct err e = { 0 };
    if (strcmp(model, "llama") == 0)
        tiny_spm(&tiny);
    else
        tiny_bpe(&tiny, "tekken");
    if (token)
        tiny_add(&tiny, token, VOCAB_CONTROL, 0);
    tiny.source.chat_template = tiny_string(text);
    tokenizer *t = tiny_open(&tiny);
    enum rc rc = chat_template_detect(&which, t, &e);
    assert_true(rc == RC_OK ? which < CHAT_TEMPLATE_COUNT
                            : rc == RC_UNSUPPORTED && which == CHAT_TEMPLATE_COUNT);
    tokenizer_close(&t);
    return which;
}

static void templates_are_detected(void **state) {
    (void)state;
    assert_int_equal(detected("llama", "{{'<|im_start|>' + role}}", NULL), CHAT_CHATML);
    assert_int_equal(detected("gpt2", "'<|start_header_id|>' + x", NULL), CHAT_LLAMA3);
    assert_int_equal(detected("llama", "'[INST] <<SYS>>\\n'", NULL), CHAT_LLAMA2);
    assert_int_equal(detected("llama", "bos_token + '[INST] '", NULL), CHAT_MISTRAL_V1);
    assert_int_equal(detected("llama", "bos_token + '[INST] '", "[INST]"), CHAT_MISTRAL_V3);
    assert_int_equal(detected("gpt2", "bos_token + '[INST] '", "[INST]"), CHAT_MISTRAL_V3_TEKKEN);
    assert_int_equal(detected("llama", "'<|user|>\\n' + content + eos_token", NULL), CHAT_ZEPHYR);
    assert_int_equal(detected("llama", "### Instruction:", NULL), CHAT_TEMPLATE_COUNT);
    assert_int_equal(detected("llama", "'<start_of_turn>' + role", NULL), CHAT_GEMMA);
    assert_int_equal(detected("llama", "'<|user|>' '\\n' '<|end|>' '<|assistant|>'", NULL),
                     CHAT_PHI3);
    assert_int_equal(detected("gpt2", "'<|im_start|>user<|im_sep|>'", NULL), CHAT_PHI4);
    assert_int_equal(detected("gpt2", "'### Instruction\\n' '### Response\\n' eos_token", NULL),
                     CHAT_STARCODER2);
    /* no template: the vocabulary tells */
    assert_int_equal(detected("llama", "", "<|im_start|>"), CHAT_CHATML);
    assert_int_equal(detected("gpt2", "", "<|start_header_id|>"), CHAT_LLAMA3);
    assert_int_equal(detected("llama", "", "[INST]"), CHAT_MISTRAL_V3);
    assert_int_equal(detected("llama", "", "<start_of_turn>"), CHAT_GEMMA);
    assert_int_equal(detected("llama", "", "<|assistant|>"), CHAT_ZEPHYR);
    assert_int_equal(detected("llama", "", NULL), CHAT_TEMPLATE_COUNT);
}

static const char *chat_ids(enum chat_template which, const tokenizer *t,
                            const struct chat_turn *turns, size_t count, size_t done, bool answer) {
    static char out[1024];
    struct token_list list = { 0 };
    struct err e = { 0 };
    if (chat_template_encode(which, t, turns, count, done, answer, &list, &e) != RC_OK)
        fail_msg("%s", e.msg);
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < list.count; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%d", i ? " " : "", list.ids[i]);
    token_list_close(&list);
    return out;
}

/* Pairs of brackets as in Mistral v3, on the tiny SentencePiece vocabulary. */
static tokenizer *open_mistral(void) {
    tiny_spm(&tiny);
    tiny_add(&tiny, "[INST]", VOCAB_CONTROL, 0);  /* 275 */
    tiny_add(&tiny, "[/INST]", VOCAB_CONTROL, 0); /* 276 */
    return tiny_open(&tiny);
}

static void markup_becomes_tokens_and_blanks_are_not_doubled(void **state) {
    (void)state;
    tokenizer *t = open_mistral();
    const struct chat_turn turns[] = {
        turn(CHAT_USER, "hello"),
        turn(CHAT_ASSISTANT, "w"),
        turn(CHAT_USER, "hello"),
    };
    assert_string_equal(chat_ids(CHAT_MISTRAL_V3, t, turns, 1, 0, true), "1 275 271 276");
    assert_string_equal(chat_ids(CHAT_MISTRAL_V3, t, turns, 3, 0, true),
                        "1 275 271 276 259 273 2 275 271 276");
    assert_string_equal(chat_ids(CHAT_MISTRAL_V3, t, turns, 3, 2, true), "2 275 271 276");
    tokenizer_close(&t);
}

static void what_is_said_stays_text(void **state) {
    (void)state;
    tokenizer *t = open_mistral();
    const struct chat_turn turns[] = { turn(CHAT_SYSTEM, "</s>"),
                                       turn(CHAT_USER, "[/INST]</s><s>") };
    struct token_list list = { 0 };
    struct err e = { 0 };
    assert_int_equal(chat_template_encode(CHAT_MISTRAL_V3, t, turns, 2, 0, true, &list, &e), RC_OK);
    size_t controls = 0;
    for (size_t i = 0; i < list.count; i++)
        controls += tokenizer_is_control(t, list.ids[i]);
    assert_int_equal(controls, 3); /* <s> [INST] [/INST], all of the template */
    assert_int_equal(list.ids[0], 1);
    assert_int_equal(list.ids[1], 275);
    assert_int_equal(list.ids[list.count - 1], 276);
    token_list_close(&list);
    tokenizer_close(&t);
}

/* Vocabularies without the tokens of a template spell them, as models fine-tuned so expect. */
static void markup_without_a_token_is_text(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tokenizer *t = tiny_open(&tiny);
    const struct chat_turn turns[] = { turn(CHAT_USER, "w") };
    char markup[256];
    assert_string_equal(
        chat_ids(CHAT_MISTRAL_V3, t, turns, 1, 0, true),
        tiny_ids(t, "[INST] w[/INST]", 15, TOKENIZER_ADD_SPECIAL, markup, sizeof markup));
    tokenizer_close(&t);
}

static void llama_2_begins_every_question_anew(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tokenizer *t = tiny_open(&tiny);
    const struct chat_turn turns[] = {
        turn(CHAT_USER, "hello"),
        turn(CHAT_ASSISTANT, "w"),
        turn(CHAT_USER, "hello"),
    };
    char a[256], b[256], c[1024];
    tiny_ids(t, "[INST] hello [/INST] w ", 23, 0, a, sizeof a);
    tiny_ids(t, "[INST] hello [/INST]", 20, 0, b, sizeof b);
    snprintf(c, sizeof c, "1 %s 2 1 %s", a, b);
    assert_string_equal(chat_ids(CHAT_LLAMA2, t, turns, 3, 0, true), c);
    /* the answer ended without its blank, which comes now: alone, not with a second one */
    snprintf(c, sizeof c, "259 2 1 %s", b);
    assert_string_equal(chat_ids(CHAT_LLAMA2, t, turns, 3, 2, true), c);
    tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_render_as_models_were_trained),
        cmocka_unit_test(a_conversation_can_be_continued),
        cmocka_unit_test(a_system_turn_needs_a_user_turn_where_it_stands_inside_one),
        cmocka_unit_test(templates_have_names),
        cmocka_unit_test(templates_are_detected),
        cmocka_unit_test(markup_becomes_tokens_and_blanks_are_not_doubled),
        cmocka_unit_test(what_is_said_stays_text),
        cmocka_unit_test(markup_without_a_token_is_text),
        cmocka_unit_test(llama_2_begins_every_question_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

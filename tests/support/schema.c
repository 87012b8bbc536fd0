#include "support/schema.h"

#include <stdio.h>
#include <string.h>

static const struct json_node *root;
static char why[512];

static const char *check(const struct json_node *v, const struct json_node *schema);

static bool has_type(const struct json_node *v, const char *type) {
    static const char *const names[] = { "null", "boolean", "number", "string", "array", "object" };
    if (!strcmp(type, "integer"))
        return v->type == JSON_NUMBER && strspn(v->text, "-0123456789") == strlen(v->text);
    return !strcmp(type, names[v->type]);
}

static const char *check_type(const struct json_node *v, const struct json_node *word) {
    bool good = word->type == JSON_STRING && has_type(v, word->text);
    for (const struct json_node *t = word->first; t; t = t->next)
        good |= has_type(v, t->text);
    return good ? NULL : "wrong type";
}

static const char *check_enum(const struct json_node *v, const struct json_node *word) {
    for (const struct json_node *t = word->first; t; t = t->next)
        if (json_tree_equal(t, v))
            return NULL;
    return "not one of the values";
}

static const char *check_any(const struct json_node *v, const struct json_node *word) {
    const char *wrong = "none of the alternatives";
    for (const struct json_node *t = word->first; t && wrong; t = t->next)
        wrong = check(v, t);
    return wrong;
}

static const char *inside(const char *key, const char *wrong) {
    char inner[400];
    snprintf(inner, sizeof inner, "%s", wrong);
    snprintf(why, sizeof why, "%.100s: %s", key, inner);
    return why;
}

static const char *check_object(const struct json_node *v, const struct json_node *schema) {
    const struct json_node *properties = json_tree_get(schema, "properties");
    const struct json_node *required = json_tree_get(schema, "required");
    for (const struct json_node *r = required ? required->first : NULL; r; r = r->next)
        if (!json_tree_get(v, r->text))
            return inside(r->text, "missing");
    for (const struct json_node *m = v->first; m; m = m->next) {
        const struct json_node *p = json_tree_get(properties, m->key);
        const char *wrong = p ? check(m, p) : "not in the schema";
        if (wrong)
            return inside(m->key, wrong);
    }
    return NULL;
}

static const char *check_items(const struct json_node *v, const struct json_node *schema) {
    for (const struct json_node *m = v->first; m; m = m->next) {
        const char *wrong = check(m, schema);
        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *check_length(const struct json_node *v, const struct json_node *word) {
    double n = 0;
    for (const struct json_node *m = v->first; m; m = m->next)
        n++;
    bool least = !strcmp(word->key, "minItems");
    return (least ? n >= word->number : n <= word->number) ? NULL : "wrong length";
}

/* The patterns there are. */
static const char *check_pattern(const struct json_node *v, const struct json_node *word) {
    bool address = !strcmp(word->text, "^0x[0-9a-f]+$");
    if (!address && strcmp(word->text, "^[0-9a-f]{16}$") != 0)
        return "a pattern that the checker does not know";
    if (address && strncmp(v->text, "0x", 2) != 0)
        return "does not match";
    const char *digits = address ? v->text + 2 : v->text;
    size_t n = strspn(digits, "0123456789abcdef");
    return !digits[n] && (address ? n > 0 : n == 16) ? NULL : "does not match";
}

static const char *check_word(const struct json_node *v, const struct json_node *schema,
                              const struct json_node *word) {
    static const char *const silent[] = { "additionalProperties", "required", "description",
                                          "definitions",          "$schema",  "title" };
    const char *key = word->key;
    if (!strcmp(key, "type"))
        return check_type(v, word);
    if (!strcmp(key, "enum"))
        return check_enum(v, word);
    if (!strcmp(key, "anyOf"))
        return check_any(v, word);
    if (!strcmp(key, "minimum"))
        return v->type != JSON_NUMBER || v->number >= word->number ? NULL : "too small";
    if (!strcmp(key, "pattern"))
        return check_pattern(v, word);
    if (!strcmp(key, "items"))
        return check_items(v, word);
    if (!strcmp(key, "minItems") || !strcmp(key, "maxItems"))
        return check_length(v, word);
    if (!strcmp(key, "$ref"))
        return check(
            v, json_tree_get(json_tree_get(root, "definitions"), strrchr(word->text, '/') + 1));
    if (!strcmp(key, "properties"))
        return check_object(v, schema);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (!strcmp(key, silent[i]))
            return NULL;
    return "a word of the schema that the checker does not know";
}

static const char *check(const struct json_node *v, const struct json_node *schema) {
    if (!schema)
        return "a definition that the schema does not have";
    for (const struct json_node *word = schema->first; word; word = word->next) {
        const char *wrong = check_word(v, schema, word);
        if (wrong)
            return wrong;
    }
    return NULL;
}

const char *schema_check(const struct json_node *document, const struct json_node *schema) {
    root = schema;
    return check(document, schema);
}

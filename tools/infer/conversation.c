#include "tools/infer/conversation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/json_tree.h"

static const char *const roles[] = {
    [CHAT_SYSTEM] = "system", [CHAT_USER] = "user", [CHAT_ASSISTANT] = "assistant"
};

/* ---- turns ----------------------------------------------------------------------------------- */

static void remove_turns(struct conversation *c, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        free((char *)(uintptr_t)c->turns[i].text);
    memmove(c->turns + from, c->turns + to, (c->count - to) * sizeof *c->turns);
    c->count -= to - from;
    c->done = 0;
}

void conversation_close(struct conversation *c) {
    if (c->count)
        remove_turns(c, 0, c->count);
    free(c->turns);
    *c = (struct conversation){ 0 };
}

static enum rc insert(struct conversation *c, size_t at, enum chat_role role, const char *text,
                      size_t len, struct err *e) {
    struct chat_turn *turns = grow_array(c->turns, &c->room, c->count, sizeof *turns);
    if (!turns)
        return err_set(e, RC_MEMORY, "out of memory");
    c->turns = turns;
    char *copy = malloc(len + 1);
    if (!copy)
        return err_set(e, RC_MEMORY, "out of memory");
    if (len)
        memcpy(copy, text, len);
    memmove(c->turns + at + 1, c->turns + at, (c->count - at) * sizeof *c->turns);
    c->turns[at] = (struct chat_turn){ role, copy, len };
    c->count++;
    return RC_OK;
}

enum rc conversation_add(struct conversation *c, enum chat_role role, const char *text, size_t len,
                         struct err *e) {
    return insert(c, c->count, role, text, len, e);
}

const struct chat_turn *conversation_system(const struct conversation *c) {
    return c->count && c->turns[0].role == CHAT_SYSTEM ? &c->turns[0] : NULL;
}

enum rc conversation_set_system(struct conversation *c, const char *text, size_t len,
                                struct err *e) {
    bool there = conversation_system(c) != NULL;
    enum rc rc = len ? insert(c, 0, CHAT_SYSTEM, text, len, e) : RC_OK;
    if (!rc && there)
        remove_turns(c, len > 0, (len > 0) + 1);
    if (!rc)
        c->done = 0;
    return rc;
}

bool conversation_drop_last(struct conversation *c, enum chat_role role) {
    if (!c->count || c->turns[c->count - 1].role != role)
        return false;
    remove_turns(c, c->count - 1, c->count);
    return true;
}

size_t conversation_drop_oldest(struct conversation *c) {
    size_t from = conversation_system(c) != NULL, to = from + 1;
    while (to < c->count && c->turns[to].role != CHAT_USER)
        to++;
    if (to >= c->count)
        return 0;
    remove_turns(c, from, to);
    return to - from;
}

/* ---- files ----------------------------------------------------------------------------------- */

enum rc conversation_save(const struct conversation *c, const char *path, struct err *e) {
    FILE *out = folder_make_parents(path) ? fopen(path, "we") : NULL;
    if (!out)
        return err_set(e, RC_IO, "%s: cannot be written: %s", path, strerror(errno));
    struct json j = json_begin(out, 2);
    json_object_open(&j, NULL);
    json_array_open(&j, "messages");
    for (size_t i = 0; i < c->count; i++) {
        json_object_open(&j, NULL);
        json_string(&j, "role", roles[c->turns[i].role]);
        json_text(&j, "content", c->turns[i].text, c->turns[i].len);
        json_object_close(&j);
    }
    json_array_close(&j);
    json_object_close(&j);
    enum rc rc = json_end(&j, NULL);
    if (fclose(out) || rc)
        return err_set(e, RC_IO, "%s: cannot be written: %s", path, strerror(errno));
    return RC_OK;
}

static enum rc add_message(struct conversation *c, const struct json_node *message,
                           const char *path, struct err *e) {
    const struct json_node *role = json_tree_get(message, "role");
    const struct json_node *content = json_tree_get(message, "content");
    size_t which = 0;
    if (!role || role->type != JSON_STRING || !content || content->type != JSON_STRING)
        return err_set(e, RC_FORMAT,
                       "%s: message %zu: expected an object with strings \"role\" and \"content\"",
                       path, c->count + 1);
    while (which < sizeof roles / sizeof *roles && strcmp(role->text, roles[which]) != 0)
        which++;
    if (which == sizeof roles / sizeof *roles)
        return err_set(e, RC_FORMAT,
                       "%s: message %zu: expected the role system, user or assistant, found '%s'",
                       path, c->count + 1, role->text);
    if (which == CHAT_SYSTEM && c->count)
        return err_set(e, RC_FORMAT, "%s: message %zu: a system message must come first", path,
                       c->count + 1);
    return conversation_add(c, (enum chat_role)which, content->text, content->len, e);
}

enum rc conversation_load(struct conversation *c, const char *path, struct err *e) {
    struct conversation fresh = { 0 };
    json_tree *tree = NULL;
    enum rc rc = json_tree_open_file(&tree, path, e);
    if (rc)
        return rc;
    const struct json_node *root = json_tree_root(tree);
    const struct json_node *list =
        root->type == JSON_ARRAY ? root : json_tree_get(root, "messages");
    if (!list || list->type != JSON_ARRAY)
        rc = err_set(e, RC_FORMAT, "%s: expected {\"messages\": […]}", path);
    for (const struct json_node *m = rc ? NULL : list->first; !rc && m; m = m->next)
        rc = add_message(&fresh, m, path, e);
    json_tree_close(&tree);
    if (rc) {
        conversation_close(&fresh);
        return rc;
    }
    conversation_close(c);
    *c = fresh;
    return RC_OK;
}

/* Any bytes are a document or a refusal with a message; what was accepted equals itself. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_tree *t = NULL;
    struct err e = { 0 };
    if (json_tree_open(&t, (const char *)data, size, "x", &e) != RC_OK) {
        assert(!t && e.msg[0]);
        return 0;
    }
    const struct json_node *root = json_tree_root(t);
    (void)json_tree_get(root, "a");
    /* Keys that are there twice are found once, so that such an object need not equal itself. */
    if (root->type != JSON_OBJECT && root->type != JSON_ARRAY)
        assert(json_tree_equal(root, root));
    json_tree_close(&t);
    return 0;
}

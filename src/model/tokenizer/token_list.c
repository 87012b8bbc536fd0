/* token_list.c - a list of tokens that grows. */
#include <stdlib.h>

#include "model/tokenizer/tokenizer_internal.h"

enum rc token_list_reserve(struct token_list *list, size_t count, struct err *e) {
    if (list->room - list->count >= count)
        return RC_OK;
    size_t room = list->count + count > 2 * list->room ? list->count + count : 2 * list->room;
    if (room < 64)
        room = 64;
    int32_t *ids = realloc(list->ids, room * sizeof *ids);
    if (!ids)
        return err_set(e, RC_MEMORY, "no memory for %zu tokens", room);
    list->ids = ids;
    list->room = room;
    return RC_OK;
}

enum rc token_list_add(struct token_list *list, int32_t id, struct err *e) {
    enum rc rc = token_list_reserve(list, 1, e);
    if (rc == RC_OK)
        list->ids[list->count++] = id;
    return rc;
}

void token_list_close(struct token_list *list) {
    free(list->ids);
    *list = (struct token_list){ 0 };
}

/* conversation.h - the turns of a conversation, and the file they are kept in. One thread.
 *
 * The file is JSON: {"messages": [{"role": "user", "content": "…"}, …]}, with the roles system,
 * user and assistant; a list of messages by itself is read, too. */
#ifndef TOOLS_INFER_CONVERSATION_H
#define TOOLS_INFER_CONVERSATION_H

#include "model/tokenizer/chat_template.h"

struct conversation {
    struct chat_turn *turns; /* their texts are the conversation's */
    size_t count, room;
    size_t done; /* turns that the model has read; 0: it must read all */
};               /* {0} is empty */

void conversation_close(struct conversation *c);

NODISCARD enum rc conversation_add(struct conversation *c, enum chat_role role, const char *text,
                                   size_t len, struct err *e);
/* The system message, or NULL. */
const struct chat_turn *conversation_system(const struct conversation *c);
/* An empty text removes the message. The model must read all again. */
NODISCARD enum rc conversation_set_system(struct conversation *c, const char *text, size_t len,
                                          struct err *e);

/* Removes the last turn if it has that role. The model must read all again. */
bool conversation_drop_last(struct conversation *c, enum chat_role role);
/* Removes the oldest turns after the system message, up to the next one of the user's; returns how
 * many. 0 if only the last message is left. The model must read all again. */
size_t conversation_drop_oldest(struct conversation *c);

/* Makes the folders above the file. */
NODISCARD enum rc conversation_save(const struct conversation *c, const char *path, struct err *e);
/* On failure *c is as it was. */
NODISCARD enum rc conversation_load(struct conversation *c, const char *path, struct err *e);

#endif

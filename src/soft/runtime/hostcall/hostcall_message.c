/* hostcall_message.c - printf messages.
 *
 * words[0] is the descriptor: bit 0 begins a message, bit 1 ends it, bits 5 to 7 count the words
 * that follow, the rest is the number of a message that was begun. The first word of a message is
 * its control word: bit 0 sends it to stderr. */
#include "soft/runtime/hostcall/hostcall.h"

#include <stdlib.h>
#include <string.h>

enum { BEGIN = 1, END = 2, COUNT_SHIFT = 5, COUNT_MASK = 7, NUMBER_SHIFT = 8 };
enum { TO_STDERR = 1, ROOM_MIN = 32 };

struct message {
    uint64_t *words;
    size_t count, room;
    bool begun;
};
static struct message *messages;
static size_t message_count;

/* The number of a message that nobody uses; SIZE_MAX without memory. */
static size_t begin(void) {
    size_t n = 0;
    while (n < message_count && messages[n].begun)
        n++;
    if (n == message_count) {
        struct message *grown = realloc(messages, (n + 1) * sizeof *grown);
        if (!grown)
            return SIZE_MAX;
        messages = grown;
        messages[message_count++] = (struct message){ 0 };
    }
    messages[n].begun = true;
    messages[n].count = 0;
    return n;
}

static bool append(struct message *m, const uint64_t *words, size_t count) {
    if (m->room < m->count + count + 1) {
        size_t room = 2 * m->room + ROOM_MIN;
        uint64_t *grown = realloc(m->words, room * sizeof *grown);
        if (!grown)
            return false;
        m->words = grown;
        m->room = room;
    }
    memcpy(m->words + m->count, words, count * sizeof *words);
    m->count += count;
    m->words[m->count] = 0; /* ends every string */
    return true;
}

static int print(const struct message *m) {
    if (!m->count || m->words[0] & ~(uint64_t)TO_STDERR)
        return -1;
    return hostcall_format(m->words[0] & TO_STDERR ? stderr : stdout, m->words + 1, m->count - 1);
}

void hostcall_message(uint64_t words[HOSTCALL_WORDS]) {
    uint64_t descriptor = words[0];
    uint64_t number = descriptor & BEGIN ? begin() : descriptor >> NUMBER_SHIFT;
    bool known = number < message_count && messages[number].begun;
    if (!known || !append(&messages[number], words + 1, descriptor >> COUNT_SHIFT & COUNT_MASK)) {
        words[0] = UINT64_MAX; /* printf returns -1 */
        if (known)
            messages[number].begun = false;
        return;
    }
    words[0] = number << NUMBER_SHIFT | (descriptor & (END | COUNT_MASK << COUNT_SHIFT));
    if (descriptor & END) {
        words[0] = (uint64_t)(int64_t)print(&messages[number]);
        messages[number].begun = false;
    }
}

#include "record/symbol_tables.h"

#include <pthread.h>
#include <stdlib.h>

enum { FILES_MAX = 64 };

struct symbol_tables {
    pthread_mutex_t lock;
    size_t count;
    struct {
        uint32_t file;
        symtab *symtab; /* NULL: cannot be used */
    } at[FILES_MAX];
};

symbol_tables *symbol_tables_open(void) {
    symbol_tables *t = calloc(1, sizeof *t);
    if (t)
        pthread_mutex_init(&t->lock, NULL);
    return t;
}

void symbol_tables_close(symbol_tables **t) {
    if (!*t)
        return;
    for (size_t i = 0; i < (*t)->count; i++)
        symtab_close(&(*t)->at[i].symtab);
    pthread_mutex_destroy(&(*t)->lock);
    free(*t);
    *t = NULL;
}

const symtab *symbol_tables_get(symbol_tables *t, uint32_t file,
                                symtab *(*open)(const void *user, uint32_t file),
                                const void *user) {
    if (!t)
        return NULL;
    pthread_mutex_lock(&t->lock);
    size_t i = 0;
    while (i < t->count && t->at[i].file != file)
        i++;
    if (i == t->count && i < FILES_MAX) {
        t->at[i].file = file;
        t->at[i].symtab = open(user, file);
        t->count++;
    }
    const symtab *found = i < t->count ? t->at[i].symtab : NULL;
    pthread_mutex_unlock(&t->lock);
    return found;
}

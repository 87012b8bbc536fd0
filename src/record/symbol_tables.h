/* symbol_tables.h - the symbol tables of files, each opened when it is first needed.
 * Thread-safe. */
#ifndef RECORD_SYMBOL_TABLES_H
#define RECORD_SYMBOL_TABLES_H

#include "base/symtab.h"

typedef struct symbol_tables symbol_tables;

/* NULL if there is no memory: then there are no tables. */
symbol_tables *symbol_tables_open(void);
void symbol_tables_close(symbol_tables **t);

/* The table of the file with this number; NULL if there is none. When a file is first asked for,
 * open(user, file) opens its table or returns NULL. t may be NULL. */
const symtab *symbol_tables_get(symbol_tables *t, uint32_t file,
                                symtab *(*open)(const void *user, uint32_t file), const void *user);

#endif

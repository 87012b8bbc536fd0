/* document.h - documents of the source tree whose lists are made from `.def` files.
 *
 * A test compares a list with the rows it comes from; called with --write in the source tree, it
 * puts the rows there. Files are named from the top of the tree (SOURCE_DIR, else the working
 * directory). A file that cannot be read or written, or that has no such place, ends the program
 * with a message. */
#ifndef GRETA_TEST_DOCUMENT_H
#define GRETA_TEST_DOCUMENT_H

/* The whole file; free() it. */
char *document_read(const char *file);

void document_write(const char *file, const char *text);

/* A place in a document: what stands between `begin`, the first after `anchor`, and the next `end`.
 */
struct document_place {
    const char *anchor, *begin, *end;
};

/* A new text with `middle` in that place; text is freed. file is for the message if there is none.
 */
char *document_replace(char *text, const char *file, const struct document_place *place,
                       const char *middle);

#endif

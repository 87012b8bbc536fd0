/* schema.h - checks a JSON document against a JSON Schema, as far as those in docs/ go: a word of a
 * schema that the checker does not know is an error. */
#ifndef SUPPORT_SCHEMA_H
#define SUPPORT_SCHEMA_H

#include "base/json_tree.h"

/* NULL if the document obeys the schema, else where and why not; valid until the next call. */
const char *schema_check(const struct json_node *document, const struct json_node *schema);

#endif

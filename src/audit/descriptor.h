/* descriptor.h - launches that repeat take one slot of the recording instead of four or more.
 *
 * What a launch says besides its event - dimensions, buffers, arguments - is a list of extras. The
 * second time the same list is met, it becomes a definition of the recording, and from then on the
 * launch is its event with the definition's number. A list that is met once stays with its event:
 * launches whose arguments never repeat do not fill the recording with definitions.
 *
 * A cache from keys to numbers makes that cheap. A key stands for the content: either for the
 * arguments' values, from which the extras follow, or for the extras themselves. The cache forgets
 * what it has no room for; the definition is found again by its content.
 *
 * Thread-safe, without locks; may be called from signal handlers. */
#ifndef AUDIT_DESCRIPTOR_H
#define AUDIT_DESCRIPTOR_H

#include "audit/hooks.h"
#include "audit/kernel.h"
#include "base/hash.h"

/* The key of a launch by its arguments. Only valid where the extras follow from the arguments
 * alone; false if they do not, or if there are more arguments than a key is made of. */
bool descriptor_key_of_launch(const struct kernel *kernel, const struct hook_launch *q,
                              struct hash_pair *key);
/* The key of the extras themselves. */
struct hash_pair descriptor_key_of_extras(const union event_slot *extras, unsigned count);

/* The number of the definition that has the key's extras; 0: none yet. */
uint32_t descriptor_find(struct hash_pair key);
/* The extras of that key have been met. Returns the number of their definition if there is one from
 * now on, 0 if they have to be written out. */
uint32_t descriptor_meet(struct hash_pair key, const union event_slot *extras, unsigned count);

#endif

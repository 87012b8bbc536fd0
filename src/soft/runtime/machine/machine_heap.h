/* machine_heap.h - malloc() and free() in device code.
 *
 * Compilers leave the two functions of AMD's device libraries that do it as functions of their own:
 * the size or the address is in v[0:1], so is the result, and s[30:31] is where they return to. In
 * a loaded image each is replaced by a message that no compiler sends, and a return. */
#ifndef SOFT_RUNTIME_MACHINE_HEAP_H
#define SOFT_RUNTIME_MACHINE_HEAP_H

#include "codeobj/codeobj.h"
#include "isa/isa.h"

struct machine_launch;

/* Replaces them in `image`, which is the code object from its address `first` on. */
void machine_heap_replace(const struct codeobj_list *list, unsigned char *image, uint64_t first,
                          uint64_t bytes);

/* Does what the message asks for, if it is one of these; else nothing. ISA_FAULT for an address
 * that cannot be freed: w->stop says of which lane. */
enum isa_result machine_heap_message(int device, struct isa_wave *w, uint32_t message,
                                     uint32_t site);
/* Whether it asks for memory: then `site` above is the number of the call (heap.h), or 0. */
bool machine_heap_asks(uint32_t message);

/* The device address of the call that the wave's message stands for. */
uint64_t machine_heap_caller(const struct isa_wave *w);

#endif

/* demo.h - the demo model that is part of the program (models/greta-demo.gguf). */
#ifndef INFER_DEMO_H
#define INFER_DEMO_H

#include <stddef.h>

/* The file's bytes, constant, aligned to 64. */
const void *demo_model(size_t *size);

#endif

/* rows_base.c - row functions for any processor. */
#define ROWS isa_rows_base
#include "isa/rows_any.h"

#include "isa/rows_body.h"

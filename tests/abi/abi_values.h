/* abi_values.h - every constant, size and offset of the HIP ABI, as two headers see them.
 *
 * abi_values.c is compiled twice: with hip_types.h (abi_values_ours) and with the real headers
 * (abi_values_real). Both hand the same rows, in the same order, to a function; only the values
 * can differ. */
#ifndef ABI_VALUES_H
#define ABI_VALUES_H

enum abi_kind {
    ABI_CONSTANT, /* the value of an enumerator or a flag */
    ABI_SIZE,     /* of a structure or a field */
    ABI_OFFSET,   /* of a field; for a bit-field, the bits it sets */
};

typedef void abi_row_fn(void *context, enum abi_kind kind, const char *name, long long value);

void abi_values_ours(abi_row_fn *row, void *context);
void abi_values_real(abi_row_fn *row, void *context);

/* HIP_VERSION_MAJOR of the real headers. */
int abi_real_major(void);

#endif

/* codeobj.h - what an AMDGPU code object contains: its kernels and its variables.
 *
 * A code object is an ELF64 shared object (EM_AMDGPU, OS ABI HSA) for one processor. The list is
 * read from its symbol table, from the 64-byte kernel descriptors that symbols NAME.kd point at,
 * and from the note NT_AMDGPU_METADATA (MessagePack). Nothing is trusted: every offset is checked
 * against the size of the image, and an image that contradicts itself is RC_FORMAT.
 *
 * The list owns copies of all names; variables point into the image, which must stay valid as long
 * as the list. Immutable once open, so that threads may share it. */
#ifndef CODEOBJ_CODEOBJ_H
#define CODEOBJ_CODEOBJ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* ELF header flags: the processors that have names here; code objects for others are read too. */
enum codeobj_processor {
    CODEOBJ_GFX90A = 0x3f,
    CODEOBJ_GFX942 = 0x4c,
};

enum codeobj_value_kind {
    CODEOBJ_UNKNOWN, /* the metadata does not say, or names a kind that is not in the list */
#define VALUE_KIND(kind, text, class) CODEOBJ_##kind,
#include "codeobj/value_kind.def"
};

/* What may be done through a pointer, and what was found to be done. */
enum codeobj_access {
    CODEOBJ_ACCESS_UNKNOWN,
    CODEOBJ_READ_ONLY,
    CODEOBJ_WRITE_ONLY,
    CODEOBJ_READ_WRITE,
};

enum codeobj_address_space {
    CODEOBJ_SPACE_UNKNOWN,
    CODEOBJ_SPACE_PRIVATE,
    CODEOBJ_SPACE_GLOBAL,
    CODEOBJ_SPACE_CONSTANT,
    CODEOBJ_SPACE_LOCAL,
    CODEOBJ_SPACE_GENERIC,
    CODEOBJ_SPACE_REGION,
};

/* One argument as the metadata describes it. */
struct codeobj_argument {
    char *name, *type_name; /* NULL where the compiler left them out */
    uint32_t offset, size;  /* bytes in the kernarg segment */
    uint32_t pointee_align; /* of a pointer to LDS; 0: unknown */
    uint8_t kind;           /* enum codeobj_value_kind */
    uint8_t access;         /* enum codeobj_access: as declared */
    uint8_t actual_access;  /* enum codeobj_access: what the compiler found the kernel to do */
    uint8_t address_space;  /* enum codeobj_address_space */
    bool is_const, is_restrict, is_volatile;
    bool is_pointer;   /* a device pointer */
    bool is_read_only; /* a pointer through which the kernel only reads */
    bool is_hidden;    /* filled in by the runtime, not by the program */
};

struct codeobj_kernel {
    char *name;
    uint64_t descriptor;                                /* address of NAME.kd in the code object */
    uint64_t entry;                                     /* address of the first instruction */
    uint32_t kernarg_bytes, group_bytes, private_bytes; /* fixed part of each segment */
    uint32_t kernarg_align; /* 0 if the metadata does not say, as in those below */
    uint32_t max_threads;   /* per block; 1024 if the metadata does not say */
    uint32_t wavefront;     /* lanes */
    uint32_t vgprs, sgprs, agprs;
    uint32_t vgpr_spills, sgpr_spills; /* to private memory; to lanes of vector registers */
    uint32_t required_block[3];        /* the only block size it runs with */
    bool uses_dynamic_stack; /* recursion, function pointers: private_bytes is a lower bound */
    struct codeobj_argument *arguments;
    uint32_t argument_count;
    bool has_metadata;
};

struct codeobj_variable {
    char *name;
    uint64_t address; /* in the code object */
    uint64_t size;
    const unsigned char *initial; /* size bytes of the image, or NULL: zeros */
    bool constant;                /* in a section that code cannot write */
    bool local;                   /* static: not to be found by its name from outside */
};

/* Machine code with a name: a kernel, or a function that was not inlined. */
struct codeobj_function {
    char *name;
    uint64_t address, size;
};

struct codeobj_list {
    const unsigned char *image;
    size_t size;
    enum codeobj_processor processor;
    unsigned version;     /* of the code object: 2 to 6 */
    uint32_t flags;       /* of the ELF header */
    uint32_t metadata[2]; /* major and minor version of the metadata; 0, 0: there is none */
    struct codeobj_kernel *kernels;
    size_t kernel_count;
    struct codeobj_variable *variables;
    size_t variable_count;
    struct codeobj_function *functions; /* by address */
    size_t function_count;
};

/* Reads the list of the code object at image. RC_FORMAT if it is not a code object or contradicts
 * itself, RC_MEMORY. On failure *out is untouched. */
NODISCARD enum rc codeobj_list_open(struct codeobj_list **out, const void *image, size_t size,
                                    struct err *e);
void codeobj_list_close(struct codeobj_list **list); /* sets *list to NULL; *list may be NULL */

/* After this the image may be freed: kernels and the sizes of variables stay valid, the initial
 * bytes of variables do not. */
void codeobj_list_forget_image(struct codeobj_list *list);

/* By name; NULL if there is none. */
const struct codeobj_kernel *codeobj_list_kernel(const struct codeobj_list *list, const char *name);
const struct codeobj_variable *codeobj_list_variable(const struct codeobj_list *list,
                                                     const char *name);

/* The variable or function, static ones too, that contains an address of the code object; NULL if
 * there is none. */
const struct codeobj_variable *codeobj_list_variable_at(const struct codeobj_list *list,
                                                        uint64_t address);
const struct codeobj_function *codeobj_list_function_at(const struct codeobj_list *list,
                                                        uint64_t address);

/* The size of the ELF file that starts at header (64 bytes or more are readable), from its section
 * headers, which linkers put last; 0 if it is no ELF64 file. */
uint64_t codeobj_elf_size(const void *header);

/* metadata.c: frees the arguments, not the kernel. */
void codeobj_free_arguments(struct codeobj_kernel *k);

/* metadata.c: adds what the MessagePack document says to the kernels of the list.
 * A kernel that only the document knows is ignored. RC_FORMAT if the document is malformed. */
NODISCARD enum rc codeobj_list_read_metadata(struct codeobj_list *list, const unsigned char *data,
                                             size_t size, struct err *e);

#endif

/* err.h - result codes and the message that explains them.
 *
 * A function that can fail returns enum rc and fills the struct err that its caller passes last.
 * A struct err is owned by the caller, needs no clean-up, and may be NULL if the message is not
 * needed. Not shared between threads. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define NODISCARD __attribute__((warn_unused_result))

enum rc {
    RC_OK = 0,
    RC_USAGE,       /* a wrong argument: flag, name, value */
    RC_IO,          /* the operating system failed a call: open, read, map, write */
    RC_FORMAT,      /* a file's content contradicts its format */
    RC_MEMORY,      /* host memory ran out */
    RC_RANGE,       /* a number or an address is outside what it may be */
    RC_UNSUPPORTED, /* valid, but not something this build or device can do */
    RC_REFUSED,     /* a safety check refused it */
    RC_DEVICE,      /* the HIP runtime reported an error */
    RC_BUSY,        /* interrupted, or something needed is in use */
};

struct err {
    enum rc rc;
    char msg[512];
};

/* err_set(e, rc, fmt, ...) stores rc and the formatted message in e (if any) and returns rc. A
 * macro, so that compilers and analysers see which code comes back, and can tell that a
 * caller that checked it never reads an output left unset by `return err_set(e, RC_IO, ...)`. */
#define err_set(e, code, ...)                                                                      \
    __extension__({                                                                                \
        enum rc err_set_rc = (code);                                                               \
        err_fill((e), err_set_rc, __VA_ARGS__);                                                    \
        err_set_rc;                                                                                \
    })
void err_fill(struct err *e, enum rc rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message already in e; returns e's rc. */
enum rc err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The name of a result code, for logs: "RC_FORMAT". */
const char *rc_name(enum rc rc);

#endif

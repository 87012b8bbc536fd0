#include "record/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "record/cfi.h"

struct walk {
    struct unwind *u;
    uint64_t pc, stack;
    uint64_t frame;     /* frame pointer, if frame_at is 0 */
    uint64_t frame_at;  /* it is still in memory, there */
    uint64_t pages[2];  /* known to be readable */
    unsigned next_page; /* of the two, to be replaced */
    bool exact;         /* pc is an instruction, not a return address */
    bool guessed;       /* a frame pointer was followed for want of tables */
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* Passes the address as a signal mask with an invalid `how`: the kernel copies the mask first, so
 * EFAULT means that the eight bytes cannot be read, and the mask never changes. */
static bool is_readable(uint64_t address) {
#if defined(SYS_rt_sigprocmask)
    enum { NO_SUCH_REQUEST = 1 << 20 };
    return syscall(SYS_rt_sigprocmask, NO_SUCH_REQUEST, address, NULL, 8) == 0 || errno != EFAULT;
#else
    return false;
#endif
}

__attribute__((no_sanitize("address", "thread"))) static uint64_t read_word(uint64_t address) {
    return *(const volatile uint64_t *)(uintptr_t)address;
}

/* Reads a word on which the result depends. */
static bool load(void *user, uint64_t address, uint64_t *out) {
    enum { PAGE = 4096 };
    struct walk *w = user;
    uint64_t page = address / PAGE + 1;
    if (address % 8 || w->u->words == UNWIND_WORDS)
        return false;
    if (page != w->pages[0] && page != w->pages[1]) {
        if (!is_readable(address))
            return false;
        w->pages[w->next_page ^= 1] = page;
    }
    *out = read_word(address);
    w->u->word[w->u->words++] = (struct unwind_word){ (uintptr_t)address, *out };
    return true;
}

/* The frame pointer is read from where it was saved when it is needed, and not before: most
 * functions have none. */
static bool know_frame_pointer(struct walk *w) {
    if (w->frame_at && !load(w, w->frame_at, &w->frame))
        return false;
    w->frame_at = 0;
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

enum step { STEP_ON, STEP_END, STEP_LOST };

/* What the kernel has put on the stack for a signal handler: its return finds the context there. */
static enum step step_signal(struct walk *w) {
#if defined(__x86_64__)
    uint64_t registers = w->stack + offsetof(ucontext_t, uc_mcontext.gregs);
    uint64_t pc, stack;
    if (!load(w, registers + REG_RIP * sizeof(greg_t), &pc) ||
        !load(w, registers + REG_RSP * sizeof(greg_t), &stack))
        return STEP_LOST;
    w->pc = pc;
    w->stack = stack;
    w->frame_at = registers + REG_RBP * sizeof(greg_t);
    w->exact = true;
    return pc ? STEP_ON : STEP_END;
#else
    (void)w;
    return STEP_LOST;
#endif
}

/* For code without unwind tables, or with ones that are not understood: tries the frame pointer. */
static enum step step_frame_pointer(struct walk *w) {
    enum { FRAME_MAX = 1 << 20 };
    uint64_t pc;
    if (!know_frame_pointer(w) || w->frame < w->stack || w->frame - w->stack > FRAME_MAX ||
        !load(w, w->frame + 8, &pc))
        return STEP_LOST;
    w->guessed = true;
    w->stack = w->frame + 16;
    w->frame_at = w->frame;
    w->pc = pc;
    w->exact = false;
    return pc ? STEP_ON : STEP_END;
}

static bool frame_base(struct walk *w, const struct cfi_row *row, const struct cfi_machine *m,
                       uint64_t *out) {
    switch (row->base) {
    case CFI_BASE_STACK:
        *out = w->stack + (uint64_t)row->offset;
        return true;
    case CFI_BASE_FRAME:
        *out = m->frame + (uint64_t)row->offset;
        return true;
    case CFI_BASE_EXPRESSION:
        return cfi_evaluate(row->expression, 0, m, out);
    default:
        return false;
    }
}

static enum step step(struct walk *w) {
    struct cfi_row row;
    uint64_t base, pc, at;
    if (!cfi_find((uintptr_t)w->pc - !w->exact, &row))
        return step_frame_pointer(w);
    if (row.signal)
        return step_signal(w);
    if (row.return_address.kind == CFI_UNDEFINED)
        return STEP_END;
    if (row.base != CFI_BASE_STACK && !know_frame_pointer(w))
        return STEP_LOST;
    struct cfi_machine m = { w->stack, w->frame, w->pc, load, w };
    if (!frame_base(w, &row, &m, &base) || row.return_address.kind != CFI_AT)
        return step_frame_pointer(w);
    if (base <= w->stack || !load(w, base + (uint64_t)row.return_address.offset, &pc))
        return STEP_LOST;
    if (row.frame.kind == CFI_AT)
        w->frame_at = base + (uint64_t)row.frame.offset;
    else if (row.frame.kind == CFI_AT_EXPRESSION &&
             cfi_evaluate(row.frame.expression, base, &m, &at))
        w->frame_at = at;
    w->stack = base;
    w->pc = pc;
    w->exact = false;
    return pc ? STEP_ON : STEP_END;
}

/* Drops wrong guesses: outermost frames in no loaded object. The first frame is certain. */
static void drop_unknown(struct unwind *u) {
    struct dl_find_object object;
    while (u->frames > 1 && _dl_find_object((void *)(u->frame[u->frames - 1] - 1), &object) != 0)
        u->frames--;
}

void unwind_from(struct unwind *u, const void *frame_address) {
    uint64_t here = (uint64_t)(uintptr_t)frame_address;
    struct walk w = { .u = u, .stack = here + 16, .frame_at = here };
    enum step s = STEP_LOST;
    u->frames = u->words = 0;
    if (load(&w, here + 8, &w.pc) && w.pc)
        s = STEP_ON;
    while (s == STEP_ON) {
        u->frame[u->frames++] = (uintptr_t)w.pc + w.exact;
        if (u->frames == UNWIND_FRAMES)
            break;
        s = step(&w);
    }
    u->repeatable = s == STEP_END || !w.guessed;
    if (w.guessed)
        drop_unknown(u);
}

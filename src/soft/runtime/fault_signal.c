/* fault_signal.c - a bad access by a kernel or a copy becomes a device fault.
 *
 * The handlers of SIGSEGV and SIGBUS, and of SIGILL and SIGFPE, which also end a kernel, are those
 * of the whole process: a signal outside a guarded call is passed on to the handler that was
 * installed before. Inside one, the handler restores the signal mask itself and jumps back to
 * soft_fault_guard(), so entering a guard costs no system call. SA_ONSTACK is for threads of the
 * program that have an alternate signal stack, which their own handler may need.
 *
 * A pointer argument to memory that is neither the device's nor pinned must fault when the kernel
 * uses it, although the host could reach it. soft_fault_poison() moves such a pointer into a window
 * that is never mapped, and the report moves the address back. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <greta/soft.h>

#include "codeobj/bundle.h"
#include "soft/runtime/error.h"
#include "soft/runtime/fault_signal.h"
#include "soft/runtime/heap.h"
#include "soft/runtime/launch.h"
#include "soft/runtime/machine/machine.h"
#include "soft/runtime/machine/machine_through.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/op.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/stream.h"

struct guard {
    sigjmp_buf back;
    volatile uint64_t address;
    volatile int kind;
};

static _Thread_local struct guard *volatile current __attribute__((tls_model("initial-exec")));
static const int caught[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
enum { CAUGHT = sizeof caught / sizeof *caught };
static struct sigaction previous[CAUGHT];

static _Atomic(greta_soft_fault_observer) observer;
static _Atomic(void *) observer_user;

enum { WINDOW_BITS = 32 };
static uint64_t window; /* 2^32 addresses that are never mapped, and as many before and after */

static int access_kind(int signal, const siginfo_t *info, const void *context) {
    if (signal != SIGSEGV && signal != SIGBUS)
        return GRETA_SOFT_FAULT_TRAP;
#if defined(__x86_64__)
    if (info->si_code == SI_KERNEL) /* a non-canonical address: the CPU reports nothing more */
        return GRETA_SOFT_FAULT_UNKNOWN;
    const ucontext_t *u = context;
    return u->uc_mcontext.gregs[REG_ERR] & 2 ? GRETA_SOFT_FAULT_WRITE : GRETA_SOFT_FAULT_READ;
#else
    (void)info, (void)context;
    return GRETA_SOFT_FAULT_UNKNOWN;
#endif
}

static void pass_on(int signal, siginfo_t *info, void *context) {
    const struct sigaction *before = previous;
    for (int i = 0; i < CAUGHT; i++)
        if (caught[i] == signal)
            before = &previous[i];
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(signal, info, context);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(signal);
    } else {
        sigaction(signal, before, NULL); /* the access repeats and meets the default action */
        if (info->si_code <= 0)
            raise(signal); /* somebody sent it: nothing repeats */
    }
}

static void handle(int signal, siginfo_t *info, void *context) {
    struct guard *g = current;
    if (!g) {
        pass_on(signal, info, context);
        return;
    }
    g->address = (uint64_t)(uintptr_t)info->si_addr;
    g->kind = access_kind(signal, info, context);
    current = NULL;
    const ucontext_t *u = context;
    pthread_sigmask(SIG_SETMASK, &u->uc_sigmask, NULL);
    siglongjmp(g->back, 1);
}

enum rc soft_fault_init(struct err *e) {
    uint64_t size = (uint64_t)1 << WINDOW_BITS;
    void *at = mmap(NULL, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return err_set(e, RC_MEMORY,
                       "cannot reserve the window for bad kernel arguments: raise "
                       "the address space limit (ulimit -v)");
    window = (uint64_t)(uintptr_t)at + size;
    struct sigaction action = { .sa_sigaction = handle,
                                .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, &previous[i]);
    return RC_OK;
}

bool soft_fault_guard(void (*fn)(void *user), void *user, uint64_t *address, int *kind) {
    struct guard g = { .kind = 0 };
    struct guard *outer = current;
    if (sigsetjmp(g.back, 0)) {
        current = outer;
        *address = g.address;
        *kind = g.kind;
        return false;
    }
    current = &g;
    fn(user);
    current = outer;
    return true;
}

uint64_t soft_fault_poison(uint64_t pointer) {
    return window + (pointer & (((uint64_t)1 << WINDOW_BITS) - 1));
}

/* ---- the report ----------------------------------------------------------------------------- */

void greta_soft_observe_faults(greta_soft_fault_observer fn, void *user) {
    atomic_store(&observer_user, user);
    atomic_store(&observer, fn);
}

static bool in_window(uint64_t address) {
    uint64_t size = (uint64_t)1 << WINDOW_BITS;
    return address - (window - size) < 3 * size;
}

enum { JUST = 4096 }; /* a near miss, in bytes: blocks are further apart */

/* Is this where an index just below zero leads if it was computed as an unsigned 32-bit number and
 * then widened? Elements have 1 to 16 bytes. */
static bool is_wrapped(uint64_t address, uint64_t pointer) {
    for (unsigned shift = 32; shift <= 36; shift++)
        if (pointer + ((uint64_t)1 << shift) - address - 1 < JUST)
            return true;
    return false;
}

/* How unlikely it is that an access went through a pointer. Pointers below the address are likelier
 * than those above it, and nearer ones are likelier than others. Likeliest of all is a pointer just
 * above it: an index below zero. */
static uint64_t unlikelihood(uint64_t address, uint64_t pointer) {
    const uint64_t above = (uint64_t)1 << 63;
    if ((pointer > address && pointer - address <= JUST) || is_wrapped(address, pointer))
        return 0;
    return pointer <= address ? (address - pointer) & ~above : above | (pointer - address);
}

/* The kernel argument an access went through. Translates a poisoned address back to the program's
 * on the way. */
static int blame_argument(const struct soft_op *op, uint64_t *address) {
    const struct greta_soft_kernel *k = op->u.launch.function->native;
    int blamed = -1;
    uint64_t best = UINT64_MAX, seen = *address;
    for (uint32_t i = 0, at = 0; k && i < k->param_count; i++) {
        uint64_t pointer;
        uint32_t from = soft_param_offset(at, k->params[i].size);
        at = from + k->params[i].size;
        if (!(k->params[i].flags & GRETA_SOFT_POINTER))
            continue;
        memcpy(&pointer, op->data + from, sizeof pointer);
        uint64_t reached = in_window(seen) ? soft_fault_poison(pointer) : pointer;
        if (blamed < 0 || unlikelihood(seen, reached) < best) {
            best = unlikelihood(seen, reached);
            blamed = (int)i;
            *address = in_window(seen) ? pointer + (seen - reached) : seen;
        }
    }
    return blamed;
}

/* The argument that the instruction's address certainly comes from; -1: that is not known. */
static int follow_argument(const struct soft_op *op, struct greta_soft_fault *f,
                           uint64_t *pointer) {
    const struct soft_machine *m = op->u.launch.function->machine;
    uint64_t word = (f->pc - m->entry) / 4;
    uint32_t index = 0;
    if (word >= m->through_words || !m->through[word])
        return -1;
    const struct codeobj_argument *a =
        machine_through_argument(m->kernel, m->through[word], &index);
    if (!a || a->offset > op->bytes - sizeof *pointer)
        return -1;
    memcpy(pointer, op->data + a->offset, sizeof *pointer);
    f->argument_name = a->name;
    return (int)index;
}

/* The one that points closest to the address. */
static int guess_argument(const struct soft_op *op, struct greta_soft_fault *f, uint64_t *through) {
    const struct codeobj_kernel *k = op->u.launch.function->machine->kernel;
    int blamed = -1, position = 0;
    uint64_t best = UINT64_MAX, pointer;
    for (uint32_t i = 0; i < k->argument_count; i++) {
        const struct codeobj_argument *a = &k->arguments[i];
        if (a->is_hidden)
            continue;
        position++;
        if (!a->is_pointer || a->size != sizeof pointer || a->offset > op->bytes - a->size)
            continue;
        memcpy(&pointer, op->data + a->offset, sizeof pointer);
        if (blamed < 0 || unlikelihood(f->address, pointer) < best) {
            best = unlikelihood(f->address, pointer);
            blamed = position - 1;
            f->argument_name = a->name;
            *through = pointer;
        }
    }
    return blamed;
}

/* The same for machine code, whose arguments the metadata describes. */
static int blame_machine_argument(const struct soft_op *op, struct greta_soft_fault *f) {
    uint64_t through = 0;
    int known = follow_argument(op, f, &through);
    int blamed = known >= 0 ? known : guess_argument(op, f, &through);
    struct soft_block meant; /* not the nearest, of an address that may be far away */
    if (blamed >= 0 && (known >= 0 || is_wrapped(f->address, through)) &&
        soft_memory_find(through, &meant)) {
        f->allocation_base = meant.addr;
        f->allocation_size = meant.size;
        f->allocation_freed = meant.state == SOFT_FREED;
    }
    return blamed;
}

static void abort_as_rocr(const struct greta_soft_fault *f) {
    fprintf(stderr,
            "Memory access fault by GPU node-%d (Agent handle: 0x%llx) on address 0x%llx. Reason: "
            "Page not present or supervisor privilege.\n",
            f->device + 1, (unsigned long long)(soft_layout.base + (unsigned)f->device),
            (unsigned long long)(f->address & ~(uint64_t)4095));
    abort();
}

static void find_allocation(struct greta_soft_fault *f) {
    struct soft_block b;
    if (f->kind == GRETA_SOFT_FAULT_TRAP || !soft_memory_nearest(f->address, &b))
        return;
    f->allocation_base = b.addr;
    f->allocation_size = b.size;
    f->allocation_freed = b.state == SOFT_FREED;
    struct soft_heap_piece piece;
    if (!soft_heap_find(f->address, &piece))
        return;
    f->allocation_base = piece.start;
    f->allocation_size = piece.bytes;
    f->allocation_freed = piece.freed;
    f->space = piece.freed ? GRETA_SOFT_SPACE_HEAP_FREED : GRETA_SOFT_SPACE_HEAP;
}

static void tell(const struct soft_op *op, const struct greta_soft_fault *f) {
    greta_soft_fault_observer observed = atomic_load(&observer);
    if (observed)
        observed(f, atomic_load(&observer_user));
    if (soft_settings()->fault_aborts)
        abort_as_rocr(f);
    soft_error_raise(op->device, f->kind == GRETA_SOFT_FAULT_TRAP ? hipErrorLaunchFailure
                                                                  : hipErrorIllegalAddress);
}

enum { PLACE_BYTES = 1024 };

enum { FIRST_PAGE = 4096 };

/* By how much an access missed the nearest allocation. */
static void print_distance(const struct greta_soft_fault *f, char *out, size_t size) {
    const char *what = f->allocation_freed ? "freed memory" : "an allocation";
    unsigned long long bytes = f->allocation_size, base = f->allocation_base;
    unsigned long long end = base + bytes;
    if (f->address == end)
        snprintf(out, size, "; just past the end of %s of %llu bytes at 0x%llx", what, bytes, base);
    else if (f->address < base)
        snprintf(out, size, "; %llu bytes before %s of %llu bytes at 0x%llx", base - f->address,
                 what, bytes, base);
    else if (f->address < end)
        snprintf(out, size, "; %llu bytes into %s of %llu bytes at 0x%llx", f->address - base, what,
                 bytes, base);
    else
        snprintf(out, size, "; %llu bytes past the end of %s of %llu bytes at 0x%llx",
                 f->address - end, what, bytes, base);
}

/* What is wrong with the address of an access. */
static void print_miss(const struct greta_soft_fault *f, char *out, size_t size) {
    *out = 0;
    if (f->space == GRETA_SOFT_SPACE_HOST)
        snprintf(out, size, "; memory of the host that no HIP call made or registered");
    else if (f->space == GRETA_SOFT_SPACE_MISALIGNED)
        snprintf(out, size, "; an atomic of %llu bytes has to be aligned",
                 (unsigned long long)f->space_bytes);
    else if (!f->space && f->address < FIRST_PAGE)
        snprintf(out, size, "; a null pointer");
    else if (f->allocation_base)
        print_distance(f, out, size);
}

/* A message for users who run a program without a recording. */
static void print_stop(const struct soft_op *op, const struct greta_soft_fault *f, bool access) {
    char miss[160] = "", argument[160] = "";
    if (access)
        print_miss(f, miss, sizeof miss);
    if (f->argument >= 0)
        snprintf(argument, sizeof argument, "; nearest argument: %d%s%s", f->argument + 1,
                 f->argument_name ? ", " : "", f->argument_name ? f->argument_name : "");
    fprintf(stderr, "greta: kernel %s, block %u,%u,%u, thread %u,%u,%u: %s%s%s%s%s\n", op->what,
            f->block[0], f->block[1], f->block[2], f->thread[0], f->thread[1], f->thread[2],
            f->detail, f->place ? ", " : "", f->place ? f->place : "", miss, argument);
}

/* LDS and scratch are addressed by offsets. */
static void set_space(struct greta_soft_fault *f, const struct soft_machine_stop *stop,
                      bool access) {
    if (access && stop->where.space == ISA_SPACE_LDS) {
        f->space = GRETA_SOFT_SPACE_LDS;
        f->space_bytes = stop->lds_bytes;
    } else if (access && stop->where.space == ISA_SPACE_SCRATCH) {
        f->space = GRETA_SOFT_SPACE_SCRATCH;
        f->space_bytes = stop->scratch_bytes;
    }
}

/* What else is known about a refused access to device memory. */
static void set_why(struct greta_soft_fault *f, const struct soft_machine_stop *stop) {
    struct soft_block b;
    char byte;
    if (soft_memory_find(f->address, &b) && b.state == SOFT_LIVE) {
        if (stop->where.kind == ISA_ATOMIC && f->address % stop->where.bytes) {
            f->space = GRETA_SOFT_SPACE_MISALIGNED;
            f->space_bytes = stop->where.bytes;
        }
    } else if (!soft_memory_is_device_address(f->address) &&
               codeobj_peek_memory(&byte, (const void *)(uintptr_t)f->address, 1) == 1) {
        f->space = GRETA_SOFT_SPACE_HOST;
    }
}

void soft_fault_report_stop(const struct soft_op *op, const struct soft_machine_stop *stop) {
    static const int kinds[] = { [ISA_LOAD] = GRETA_SOFT_FAULT_READ,
                                 [ISA_STORE] = GRETA_SOFT_FAULT_WRITE,
                                 [ISA_ATOMIC] = GRETA_SOFT_FAULT_WRITE };
    bool access = stop->result == ISA_FAULT;
    char place[PLACE_BYTES];
    struct greta_soft_fault f = {
        .tag = op->tag,
        .node = op->node,
        .address = access ? stop->where.address : stop->where.pc,
        .operation = op->what,
        .argument = -1,
        .kind = access ? kinds[stop->where.kind] : GRETA_SOFT_FAULT_TRAP,
        .device = op->device,
        .stream = op->stream && !op->stream->is_null ? op->stream : NULL,
        .pc = stop->where.pc,
        .detail = stop->text,
        .instruction = stop->instruction[0] ? stop->instruction : NULL,
    };
    memcpy(f.block, stop->group, sizeof f.block);
    memcpy(f.thread, stop->thread, sizeof f.thread);
    set_space(&f, stop, access);
    if (!f.space)
        find_allocation(&f);
    if (f.space == GRETA_SOFT_SPACE_HEAP_FREED && stop->where.op == ISA_OP_s_sendmsg)
        f.space = GRETA_SOFT_SPACE_HEAP_TWICE;
    if (access && !f.space) {
        f.bytes = stop->where.bytes;
        f.argument = blame_machine_argument(op, &f);
        set_why(&f, stop);
    }
    if (stop->where.pc &&
        soft_module_place(op->u.launch.function, stop->where.pc, place, sizeof place))
        f.place = place;
    if (!access || !atomic_load(&observer))
        print_stop(op, &f, access);
    tell(op, &f);
}

void soft_fault_report(const struct soft_op *op, uint64_t address, int kind) {
    struct greta_soft_fault f = {
        .tag = op->tag,
        .node = op->node,
        .address = soft_program_address(address),
        .operation = op->what,
        .argument = -1,
        .kind = kind,
        .device = op->device,
        .stream = op->stream && !op->stream->is_null ? op->stream : NULL,
    };
    bool trap = kind == GRETA_SOFT_FAULT_TRAP; /* its address is that of the code */
    if (op->kind == SOFT_OP_LAUNCH && !trap) {
        f.argument = blame_argument(op, &f.address);
        if (f.argument >= 0)
            f.argument_name = op->u.launch.function->native->params[f.argument].name;
    }
    find_allocation(&f);
    tell(op, &f);
}

int greta_soft_is_running(void) {
    return current != NULL;
}

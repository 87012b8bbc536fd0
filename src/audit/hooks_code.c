/* Hooks of modules, functions and symbols. */
#include "audit/code.h"
#include "audit/hooks.h"
#include "audit/kernel.h"

static uint64_t bits(const void *handle) {
    return (uint64_t)(uintptr_t)handle;
}

static void record_code(struct call *c, enum event_kind kind, hipError_t r, const void *dst,
                        const void *src, uint64_t len, const char *name) {
    if (!call_is_recorded())
        return;
    struct event ev = call_event(c, kind, 0, NULL);
    ev.dst = bits(dst);
    ev.src = bits(src);
    ev.len = len;
    ev.name = record_string(audit.writer, name);
    ev.status = (uint16_t)r;
    call_begin(c, &ev);
}

void hook_module_loaded(struct call *c, hipError_t r, const void *module, const void *image,
                        const char *file) {
    if (r == hipSuccess && image)
        code_enter_image(module, image);
    else if (r == hipSuccess)
        code_enter_file(module, file);
    record_code(c, EVENT_MODULE_LOAD, r, module, image, 0, file);
}

void hook_fatbin(const void *handle, const void *wrapper) {
    code_enter_fatbin(handle, wrapper);
}

void hook_fatbin_gone(const void *handle) {
    code_leave(handle);
}

void hook_module_unload(struct call *c, const void *module) {
    record_code(c, EVENT_MODULE_UNLOAD, (hipError_t)RECORD_PENDING, module, NULL, 0, NULL);
}

void hook_module_unloaded(struct call *c, hipError_t r, const void *module) {
    hook_free_owner(c, r, module);
}

void hook_function(struct call *c, hipError_t r, const void *function, const void *module,
                   const char *name) {
    if (r == hipSuccess)
        kernel_enter(function, name, module);
    record_code(c, EVENT_FUNCTION, r, function, module, 0, name);
}

void hook_function_of_symbol(struct call *c, hipError_t r, const void *function,
                             const void *symbol) {
    if (r == hipSuccess)
        kernel_alias(function, symbol);
    record_code(c, EVENT_FUNCTION, r, function, NULL, 0, kernel_find(symbol).name);
}

static void enter_global(struct call *c, const void *ptr, size_t bytes, const void *module) {
    struct ledger_entry what = {
        .addr = bits(ptr),
        .size = bytes,
        .family = LEDGER_GLOBAL,
        .device = audit_current_device(),
        .owner = bits(module),
        .made = call_act(c),
    };
    if (ptr && bytes)
        (void)ledger_add_found(audit.ledger, &what, NULL);
}

void hook_global(struct call *c, hipError_t r, const void *ptr, size_t bytes, const void *module,
                 const char *name) {
    record_code(c, EVENT_SYMBOL, r, ptr, module, bytes, name);
    if (r == hipSuccess)
        enter_global(c, ptr, bytes, module);
}

void hook_symbol_address(struct call *c, hipError_t r, const void *ptr, const void *symbol) {
    size_t bytes = 0;
    if (r == hipSuccess && audit.raw.hipGetSymbolSize(&bytes, symbol) != hipSuccess)
        bytes = 0;
    record_code(c, EVENT_SYMBOL, r, ptr, NULL, bytes, NULL);
    if (r == hipSuccess)
        enter_global(c, ptr, bytes, NULL);
}

void hook_symbol_found(const void *ptr, const void *symbol) {
    size_t bytes = 0;
    readlock_token t = ledger_read_begin(audit.ledger);
    bool known = ledger_at(audit.ledger, bits(ptr)) != NULL;
    ledger_read_end(t);
    if (known || audit.raw.hipGetSymbolSize(&bytes, symbol) != hipSuccess || !bytes)
        return;
    struct event ev = {
        .kind = EVENT_SYMBOL,
        .dst = bits(ptr),
        .len = bytes,
        .aux = event_aux(EVENT_NO_FN, 0),
    };
    struct ledger_entry what = {
        .addr = bits(ptr),
        .size = bytes,
        .family = LEDGER_GLOBAL,
        .device = audit_current_device(),
        .made = { .api = hip_fn_name(HIP_FN_hipGetSymbolAddress),
                  .t_ns = clock_now_ns(),
                  .event = record_event(audit.writer, &ev),
                  .thread = audit_thread_id() },
    };
    (void)ledger_add_found(audit.ledger, &what, NULL);
}

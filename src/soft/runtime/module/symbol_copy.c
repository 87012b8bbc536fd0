/* symbol_copy.c - copies to and from device variables, and the other queries by symbol. */
#include <dlfcn.h>
#include <string.h>

#include "soft/runtime/function.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/start.h"

hipError_t soft_hipGetSymbolAddress(void **devPtr, const void *symbol) {
    uint64_t addr, size;
    if (!devPtr)
        return hipErrorInvalidValue;
    hipError_t r = soft_symbol_find(symbol, &addr, &size);
    if (r == hipSuccess)
        *devPtr = (void *)(uintptr_t)addr;
    return r;
}

hipError_t soft_hipGetSymbolSize(size_t *size, const void *symbol) {
    uint64_t addr, bytes;
    if (!size)
        return hipErrorInvalidValue;
    hipError_t r = soft_symbol_find(symbol, &addr, &bytes);
    if (r == hipSuccess)
        *size = bytes;
    return r;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* A copy to a symbol cannot come from the device to the host, one from a symbol not the other way
 * round; without a kind the pointers decide. */
static bool is_direction(hipMemcpyKind kind, hipMemcpyKind from_host) {
    return kind == from_host || kind == hipMemcpyDeviceToDevice ||
           kind == hipMemcpyDeviceToDeviceNoCU || kind == hipMemcpyDefault;
}

static hipError_t to_symbol(const void *symbol, const void *src, size_t bytes, size_t offset,
                            hipMemcpyKind kind, void **dst) {
    uint64_t addr;
    if (!is_direction(kind, hipMemcpyHostToDevice))
        return hipErrorInvalidMemcpyDirection;
    if (!src && bytes)
        return hipErrorInvalidValue;
    hipError_t r = soft_symbol_range(symbol, offset, bytes, &addr);
    if (r == hipSuccess)
        *dst = (void *)(uintptr_t)addr;
    return r;
}

static hipError_t from_symbol(void *dst, const void *symbol, size_t bytes, size_t offset,
                              hipMemcpyKind kind, void **src) {
    uint64_t addr;
    if (!is_direction(kind, hipMemcpyDeviceToHost))
        return hipErrorInvalidMemcpyDirection;
    if (!dst && bytes)
        return hipErrorInvalidValue;
    hipError_t r = soft_symbol_range(symbol, offset, bytes, &addr);
    if (r == hipSuccess)
        *src = (void *)(uintptr_t)addr;
    return r;
}

/* The hipMemcpy family does the rest: who waits, what a capture does. */
hipError_t soft_hipMemcpyToSymbol(const void *symbol, const void *src, size_t sizeBytes,
                                  size_t offset, hipMemcpyKind kind) {
    void *dst;
    hipError_t r = to_symbol(symbol, src, sizeBytes, offset, kind, &dst);
    return r == hipSuccess ? soft_hipMemcpy(dst, src, sizeBytes, kind) : r;
}

hipError_t soft_hipMemcpyToSymbolAsync(const void *symbol, const void *src, size_t sizeBytes,
                                       size_t offset, hipMemcpyKind kind, hipStream_t stream) {
    void *dst;
    hipError_t r = to_symbol(symbol, src, sizeBytes, offset, kind, &dst);
    return r == hipSuccess ? soft_hipMemcpyAsync(dst, src, sizeBytes, kind, stream) : r;
}

hipError_t soft_hipMemcpyFromSymbol(void *dst, const void *symbol, size_t sizeBytes, size_t offset,
                                    hipMemcpyKind kind) {
    void *src;
    hipError_t r = from_symbol(dst, symbol, sizeBytes, offset, kind, &src);
    return r == hipSuccess ? soft_hipMemcpy(dst, src, sizeBytes, kind) : r;
}

hipError_t soft_hipMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t sizeBytes,
                                         size_t offset, hipMemcpyKind kind, hipStream_t stream) {
    void *src;
    hipError_t r = from_symbol(dst, symbol, sizeBytes, offset, kind, &src);
    return r == hipSuccess ? soft_hipMemcpyAsync(dst, src, sizeBytes, kind, stream) : r;
}

/* The _spt twins mean the thread's own stream where the plain ones mean the legacy stream. */
static hipStream_t per_thread(hipStream_t stream) {
    return stream ? stream : hipStreamPerThread;
}

hipError_t soft_hipMemcpyToSymbol_spt(const void *symbol, const void *src, size_t sizeBytes,
                                      size_t offset, hipMemcpyKind kind) {
    void *dst;
    hipError_t r = to_symbol(symbol, src, sizeBytes, offset, kind, &dst);
    return r == hipSuccess ? soft_hipMemcpyWithStream(dst, src, sizeBytes, kind, hipStreamPerThread)
                           : r;
}

hipError_t soft_hipMemcpyFromSymbol_spt(void *dst, const void *symbol, size_t sizeBytes,
                                        size_t offset, hipMemcpyKind kind) {
    void *src;
    hipError_t r = from_symbol(dst, symbol, sizeBytes, offset, kind, &src);
    return r == hipSuccess ? soft_hipMemcpyWithStream(dst, src, sizeBytes, kind, hipStreamPerThread)
                           : r;
}

hipError_t soft_hipMemcpyToSymbolAsync_spt(const void *symbol, const void *src, size_t sizeBytes,
                                           size_t offset, hipMemcpyKind kind, hipStream_t stream) {
    return soft_hipMemcpyToSymbolAsync(symbol, src, sizeBytes, offset, kind, per_thread(stream));
}

hipError_t soft_hipMemcpyFromSymbolAsync_spt(void *dst, const void *symbol, size_t sizeBytes,
                                             size_t offset, hipMemcpyKind kind,
                                             hipStream_t stream) {
    return soft_hipMemcpyFromSymbolAsync(dst, symbol, sizeBytes, offset, kind, per_thread(stream));
}

/* ---- names --------------------------------------------------------------------------------- */

hipError_t soft_hipGetFuncBySymbol(hipFunction_t *functionPtr, const void *symbolPtr) {
    struct soft_function *f;
    if (!functionPtr)
        return hipErrorInvalidValue;
    if (soft_function_for_host(symbolPtr, &f) != hipSuccess)
        return hipErrorInvalidDeviceFunction;
    *functionPtr = (hipFunction_t)f;
    return hipSuccess;
}

hip_cstring soft_hipKernelNameRef(const hipFunction_t f) {
    return soft_handle_valid(soft_functions(), f) ? ((const struct soft_function *)f)->name : NULL;
}

hip_cstring soft_hipKernelNameRefByPtr(const void *hostFunction, hipStream_t stream) {
    (void)stream;
    return soft_symbol_function_name(hostFunction);
}

/* ROCm numbers its functions for profilers; these are greta's numbers. */
hip_cstring soft_hipApiName(uint32_t id) {
    return id < HIP_FN_COUNT ? hip_fn_name((enum hip_fn)id) : "unknown";
}

hipError_t soft_hipGetProcAddress(const char *symbol, void **pfn, int hipVersion, uint64_t flags,
                                  hipDriverProcAddressQueryResult *symbolStatus) {
    Dl_info self;
    if (!symbol || !*symbol || !pfn || hipVersion < 0 || flags > 2)
        return hipErrorInvalidValue;
    *pfn = NULL;
    /* Look in this very library: another libamdhip64 may come first in the global scope. */
    if (hip_fn_find(symbol) != HIP_FN_COUNT && dladdr((void *)(uintptr_t)soft_start, &self)) {
        void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            *pfn = dlsym(library, symbol);
            dlclose(library);
        }
    }
    if (symbolStatus)
        *symbolStatus = *pfn ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *pfn ? hipSuccess : hipErrorInvalidValue;
}

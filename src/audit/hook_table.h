/* hook_table.h - which HIP function gets which hook.
 *
 *   #define HOOK_<function> ~, before the call, after it
 *
 * Both are statements that see the function's parameters by their names in hip_api.def, the call as
 * c, and, after it, the runtime's result as r. What `before` declares, `after` can use. A function
 * without a line here is recorded as a plain call. Included by decorate.c only, once. */
#ifndef AUDIT_HOOK_TABLE_H
#define AUDIT_HOOK_TABLE_H

/* clang-format off */

/* What a successful call stored through one of its pointers, else NULL. */
#define GOT(p)       ((p) && r == hipSuccess ? *(p) : NULL)
#define GOT_SIZE(p)  ((p) && r == hipSuccess ? *(p) : 0)
#define S(handle)    order_stream(handle)
#define SPT(handle)  order_stream_spt(handle)

/* ---- devices and errors ---------------------------------------------------------------------- */

#define HOOK_hipSetDevice ~, hook_set_device(&c, deviceId), hook_device_set(&c, r, deviceId)
#define HOOK_hipDeviceReset ~, int device = hook_reset(&c, audit_current_device()), hook_was_reset(&c, r, device)
#define HOOK_hipDevicePrimaryCtxReset ~, hook_reset(&c, dev), hook_was_reset(&c, r, dev)
#define HOOK_hipCtxCreate ~, PLAIN(ctx, flags, device), CONTEXT
#define HOOK_hipCtxDestroy ~, PLAIN(ctx, 0, 0), CONTEXT
#define HOOK_hipCtxPopCurrent ~, PLAIN(ctx, 0, 0), CONTEXT
#define HOOK_hipCtxPushCurrent ~, PLAIN(ctx, 0, 0), CONTEXT
#define HOOK_hipCtxSetCurrent ~, PLAIN(ctx, 0, 0), CONTEXT
#define PLAIN(a, b, d) if (call_is_recorded()) call_plain(&c, (uint64_t)(uintptr_t)(a), (uint64_t)(b), (uint64_t)(d))
#define CONTEXT        hook_device_unknown(); call_end(&c, (unsigned)r)

#define HOOK_hipGetLastError    ~, , hook_error_read(&c, r, true)
#define HOOK_hipExtGetLastError ~, , hook_error_read(&c, r, true)
#define HOOK_hipPeekAtLastError ~, , hook_error_read(&c, r, false)

/* ---- allocation ------------------------------------------------------------------------------ */

#define HOOK_hipMalloc             ~, , hook_alloc(&c, r, LEDGER_DEVICE, GOT(ptr), size, 0)
#define HOOK_hipExtMallocWithFlags ~, , hook_alloc(&c, r, LEDGER_DEVICE, GOT(ptr), sizeBytes, flags)
#define HOOK_hipMallocHost         ~, , hook_alloc(&c, r, LEDGER_PINNED, GOT(ptr), size, 0)
#define HOOK_hipMemAllocHost       ~, , hook_alloc(&c, r, LEDGER_PINNED, GOT(ptr), size, 0)
#define HOOK_hipHostMalloc         ~, , hook_alloc(&c, r, LEDGER_PINNED, GOT(ptr), size, flags)
#define HOOK_hipHostAlloc          ~, , hook_alloc(&c, r, LEDGER_PINNED, GOT(ptr), size, flags)
#define HOOK_hipExtHostAlloc       ~, , hook_alloc(&c, r, LEDGER_PINNED, GOT(ptr), size, flags)
#define HOOK_hipMallocManaged      ~, , hook_alloc(&c, r, LEDGER_MANAGED, GOT(dev_ptr), size, flags)
#define HOOK_hipHostRegister       ~, , hook_alloc(&c, r, LEDGER_REGISTERED, r == hipSuccess ? hostPtr : NULL, sizeBytes, flags)
#define HOOK_hipMallocPitch        ~, , hook_alloc(&c, r, LEDGER_PITCHED, GOT(ptr), GOT_SIZE(pitch) * height, 0)
#define HOOK_hipMemAllocPitch      ~, , hook_alloc(&c, r, LEDGER_PITCHED, GOT(dptr), GOT_SIZE(pitch) * height, 0)
#define HOOK_hipMalloc3D           ~, , hook_alloc(&c, r, LEDGER_PITCHED, pitchedDevPtr && r == hipSuccess ? pitchedDevPtr->ptr : NULL, (pitchedDevPtr && r == hipSuccess ? pitchedDevPtr->pitch : 0) * extent.height * extent.depth, 0)
#define HOOK_hipMallocAsync        ~, , hook_alloc_async(&c, r, LEDGER_ASYNC, GOT(dev_ptr), size, stream, NULL)
#define HOOK_hipMallocFromPoolAsync ~, , hook_alloc_async(&c, r, LEDGER_POOL, GOT(dev_ptr), size, stream, mem_pool)
#define HOOK_hipMemMap             ~, , hook_alloc(&c, r, LEDGER_VIRTUAL, r == hipSuccess ? ptr : NULL, size, flags)
#define HOOK_hipIpcOpenMemHandle   ~, , hook_import(&c, r, GOT(devPtr), 0, NULL)
#define HOOK_hipMemPoolImportPointer ~, , hook_import(&c, r, GOT(dev_ptr), 0, mem_pool)
#define HOOK_hipExternalMemoryGetMappedBuffer ~, , hook_import(&c, r, GOT(devPtr), bufferDesc ? bufferDesc->size : 0, extMem)
#define HOOK_hipGraphicsResourceGetMappedPointer ~, , hook_import(&c, r, GOT(devPtr), GOT_SIZE(size), resource)
#define HOOK_hipMallocArray        ~, , hook_array(&c, r, GOT(array))
#define HOOK_hipMalloc3DArray      ~, , hook_array(&c, r, GOT(array))
#define HOOK_hipArrayCreate        ~, , hook_array(&c, r, GOT(pHandle))
#define HOOK_hipArray3DCreate      ~, , hook_array(&c, r, GOT(array))
#define HOOK_hipMallocMipmappedArray ~, , hook_array(&c, r, GOT(mipmappedArray))
#define HOOK_hipMipmappedArrayCreate ~, , hook_array(&c, r, GOT(pHandle))

#define FREE(p)  struct hook_free f = hook_free(&c, p)
#define FREED    hook_freed(&c, r, &f)
#define HOOK_hipFree                 ~, FREE(ptr), FREED
#define HOOK_hipFreeHost             ~, FREE(ptr), FREED
#define HOOK_hipHostFree             ~, FREE(ptr), FREED
#define HOOK_hipHostUnregister       ~, FREE(hostPtr), FREED
#define HOOK_hipFreeAsync            ~, struct hook_free f = hook_free_async(&c, dev_ptr, stream), FREED
#define HOOK_hipFreeArray            ~, FREE(array), FREED
#define HOOK_hipArrayDestroy         ~, FREE(array), FREED
#define HOOK_hipFreeMipmappedArray   ~, FREE(mipmappedArray), FREED
#define HOOK_hipMipmappedArrayDestroy ~, FREE(hMipmappedArray), FREED
#define HOOK_hipIpcCloseMemHandle    ~, FREE(devPtr), FREED
#define HOOK_hipMemUnmap             ~, FREE(ptr), FREED
#define HOOK_hipMemPoolCreate        ~, , call_made(&c, r, GOT(mem_pool))
#define HOOK_hipCreateTextureObject  ~, , call_made(&c, r, GOT(pTexObject))
#define HOOK_hipTexObjectCreate      ~, , call_made(&c, r, GOT(pTexObject))
#define HOOK_hipCreateSurfaceObject  ~, , call_made(&c, r, GOT(pSurfObject))
#define HOOK_hipMemPoolDestroy       ~, PLAIN(mem_pool, 0, 0), hook_free_owner(&c, r, mem_pool)
#define HOOK_hipDestroyExternalMemory ~, PLAIN(extMem, 0, 0), hook_free_owner(&c, r, extMem)
#define HOOK_hipGraphicsUnregisterResource ~, PLAIN(resource, 0, 0), hook_free_owner(&c, r, resource)

/* ---- copies ---------------------------------------------------------------------------------- */

#define WORK(call)    struct hook_work w = call
#define WORKED        hook_worked(&c, r, &w)
#define COPY(d, s, n, kind, stream, async) WORK(hook_copy(&c, d, s, n, kind, stream, HOOK_##async)), WORKED
#define ROWS(rows, kind, stream, async)    struct hook_rows q = rows; WORK(hook_copy_rows(&c, &q, kind, stream, HOOK_##async)), WORKED
#define ROWS_2D ((struct hook_rows){ dst, src, dpitch, spitch, width, height, 0, 0, 1 })

#define HOOK_hipMemcpy            ~, COPY(dst, src, sizeBytes, kind, S(NULL), SYNC)
#define HOOK_hipMemcpy_spt        ~, COPY(dst, src, sizeBytes, kind, SPT(NULL), SYNC)
#define HOOK_hipMemcpyWithStream  ~, COPY(dst, src, sizeBytes, kind, S(stream), SYNC)
#define HOOK_hipMemcpyAsync       ~, COPY(dst, src, sizeBytes, kind, S(stream), ASYNC)
#define HOOK_hipMemcpyAsync_spt   ~, COPY(dst, src, sizeBytes, kind, SPT(stream), ASYNC)
#define HOOK_hipMemcpyDtoH        ~, COPY(dst, src, sizeBytes, hipMemcpyDeviceToHost, S(NULL), SYNC)
#define HOOK_hipMemcpyHtoD        ~, COPY(dst, src, sizeBytes, hipMemcpyHostToDevice, S(NULL), SYNC)
#define HOOK_hipMemcpyDtoD        ~, COPY(dst, src, sizeBytes, hipMemcpyDeviceToDevice, S(NULL), SYNC)
#define HOOK_hipMemcpyDtoHAsync   ~, COPY(dst, src, sizeBytes, hipMemcpyDeviceToHost, S(stream), ASYNC)
#define HOOK_hipMemcpyHtoDAsync   ~, COPY(dst, src, sizeBytes, hipMemcpyHostToDevice, S(stream), ASYNC)
#define HOOK_hipMemcpyDtoDAsync   ~, COPY(dst, src, sizeBytes, hipMemcpyDeviceToDevice, S(stream), ASYNC)
#define HOOK_hipMemcpyPeer        ~, COPY(dst, src, sizeBytes, hipMemcpyDeviceToDevice, S(NULL), SYNC)
#define HOOK_hipMemcpyPeerAsync   ~, COPY(dst, src, sizeBytes, hipMemcpyDeviceToDevice, S(stream), ASYNC)

#define HOOK_hipMemcpyToSymbol            ~, COPY(hook_symbol(symbol, offset), src, sizeBytes, kind, S(NULL), SYNC)
#define HOOK_hipMemcpyToSymbol_spt        ~, COPY(hook_symbol(symbol, offset), src, sizeBytes, kind, SPT(NULL), SYNC)
#define HOOK_hipMemcpyToSymbolAsync       ~, COPY(hook_symbol(symbol, offset), src, sizeBytes, kind, S(stream), ASYNC)
#define HOOK_hipMemcpyToSymbolAsync_spt   ~, COPY(hook_symbol(symbol, offset), src, sizeBytes, kind, SPT(stream), ASYNC)
#define HOOK_hipMemcpyFromSymbol          ~, COPY(dst, hook_symbol(symbol, offset), sizeBytes, kind, S(NULL), SYNC)
#define HOOK_hipMemcpyFromSymbol_spt      ~, COPY(dst, hook_symbol(symbol, offset), sizeBytes, kind, SPT(NULL), SYNC)
#define HOOK_hipMemcpyFromSymbolAsync     ~, COPY(dst, hook_symbol(symbol, offset), sizeBytes, kind, S(stream), ASYNC)
#define HOOK_hipMemcpyFromSymbolAsync_spt ~, COPY(dst, hook_symbol(symbol, offset), sizeBytes, kind, SPT(stream), ASYNC)

#define HOOK_hipMemcpy2D          ~, ROWS(ROWS_2D, kind, S(NULL), SYNC)
#define HOOK_hipMemcpy2D_spt      ~, ROWS(ROWS_2D, kind, SPT(NULL), SYNC)
#define HOOK_hipMemcpy2DAsync     ~, ROWS(ROWS_2D, kind, S(stream), ASYNC)
#define HOOK_hipMemcpy2DAsync_spt ~, ROWS(ROWS_2D, kind, SPT(stream), ASYNC)
#define HOOK_hipMemcpy3D          ~, ROWS(hook_rows_3d(p), hook_kind_3d(p), S(NULL), SYNC)
#define HOOK_hipMemcpy3D_spt      ~, ROWS(hook_rows_3d(p), hook_kind_3d(p), SPT(NULL), SYNC)
#define HOOK_hipMemcpy3DAsync     ~, ROWS(hook_rows_3d(p), hook_kind_3d(p), S(stream), ASYNC)
#define HOOK_hipMemcpy3DAsync_spt ~, ROWS(hook_rows_3d(p), hook_kind_3d(p), SPT(stream), ASYNC)
#define HOOK_hipMemcpyParam2D      ~, ROWS(hook_rows_param2d(pCopy), hipMemcpyDefault, S(NULL), SYNC)
#define HOOK_hipMemcpyParam2DAsync ~, ROWS(hook_rows_param2d(pCopy), hipMemcpyDefault, S(stream), ASYNC)
#define HOOK_hipDrvMemcpy2DUnaligned ~, ROWS(hook_rows_param2d(pCopy), hipMemcpyDefault, S(NULL), SYNC)
#define HOOK_hipDrvMemcpy3D       ~, ROWS(hook_rows_drv3d(pCopy), hipMemcpyDefault, S(NULL), SYNC)
#define HOOK_hipDrvMemcpy3DAsync  ~, ROWS(hook_rows_drv3d(pCopy), hipMemcpyDefault, S(stream), ASYNC)

/* Arrays are known by their handles; only the runtime knows where their elements are. */
#define HOOK_hipMemcpyAtoH        ~, COPY(dst, srcArray, count, hipMemcpyDeviceToHost, S(NULL), SYNC)
#define HOOK_hipMemcpyHtoA        ~, COPY(dstArray, srcHost, count, hipMemcpyHostToDevice, S(NULL), SYNC)
#define HOOK_hipMemcpyAtoHAsync   ~, COPY(dstHost, srcArray, ByteCount, hipMemcpyDeviceToHost, S(stream), ASYNC)
#define HOOK_hipMemcpyHtoAAsync   ~, COPY(dstArray, srcHost, ByteCount, hipMemcpyHostToDevice, S(stream), ASYNC)
#define HOOK_hipMemcpyAtoD        ~, COPY(dstDevice, srcArray, ByteCount, hipMemcpyDeviceToDevice, S(NULL), SYNC)
#define HOOK_hipMemcpyDtoA        ~, COPY(dstArray, srcDevice, ByteCount, hipMemcpyDeviceToDevice, S(NULL), SYNC)
#define HOOK_hipMemcpyAtoA        ~, COPY(dstArray, srcArray, ByteCount, hipMemcpyDeviceToDevice, S(NULL), SYNC)
#define HOOK_hipMemcpyToArray     ~, COPY(dst, src, count, kind, S(NULL), SYNC)
#define HOOK_hipMemcpyFromArray   ~, COPY(dst, srcArray, count, kind, S(NULL), SYNC)
#define HOOK_hipMemcpyFromArray_spt ~, COPY(dst, src, count, kind, SPT(NULL), SYNC)
#define ROWS_TO_ARRAY   ((struct hook_rows){ dst, src, width, spitch, width, height, 0, 0, 1 })
#define ROWS_FROM_ARRAY ((struct hook_rows){ dst, src, dpitch, width, width, height, 0, 0, 1 })
#define ROWS_ARRAYS     ((struct hook_rows){ dst, src, width, width, width, height, 0, 0, 1 })
#define HOOK_hipMemcpy2DToArray            ~, ROWS(ROWS_TO_ARRAY, kind, S(NULL), SYNC)
#define HOOK_hipMemcpy2DToArray_spt        ~, ROWS(ROWS_TO_ARRAY, kind, SPT(NULL), SYNC)
#define HOOK_hipMemcpy2DToArrayAsync       ~, ROWS(ROWS_TO_ARRAY, kind, S(stream), ASYNC)
#define HOOK_hipMemcpy2DToArrayAsync_spt   ~, ROWS(ROWS_TO_ARRAY, kind, SPT(stream), ASYNC)
#define HOOK_hipMemcpy2DFromArray          ~, ROWS(ROWS_FROM_ARRAY, kind, S(NULL), SYNC)
#define HOOK_hipMemcpy2DFromArray_spt      ~, ROWS(ROWS_FROM_ARRAY, kind, SPT(NULL), SYNC)
#define HOOK_hipMemcpy2DFromArrayAsync     ~, ROWS(ROWS_FROM_ARRAY, kind, S(stream), ASYNC)
#define HOOK_hipMemcpy2DFromArrayAsync_spt ~, ROWS(ROWS_FROM_ARRAY, kind, SPT(stream), ASYNC)
#define HOOK_hipMemcpy2DArrayToArray       ~, ROWS(ROWS_ARRAYS, kind, S(NULL), SYNC)

/* ---- sets ------------------------------------------------------------------------------------ */

#define SET(d, width, n, stream, async) WORK(hook_set(&c, d, (uint64_t)value, width, n, stream, HOOK_##async)), WORKED
#define SET_ROWS(rows, stream, async)   struct hook_rows q = rows; WORK(hook_set_rows(&c, &q, (uint64_t)value, stream, HOOK_##async)), WORKED
#define ROWS_SET2D ((struct hook_rows){ dst, NULL, pitch, 0, width, height, 0, 0, 1 })
#define ROWS_SET3D ((struct hook_rows){ pitchedDevPtr.ptr, NULL, pitchedDevPtr.pitch, 0, extent.width, extent.height, pitchedDevPtr.pitch * pitchedDevPtr.ysize, 0, extent.depth })

#define HOOK_hipMemset           ~, SET(dst, 1, sizeBytes, S(NULL), SYNC)
#define HOOK_hipMemset_spt       ~, SET(dst, 1, sizeBytes, SPT(NULL), SYNC)
#define HOOK_hipMemsetAsync      ~, SET(dst, 1, sizeBytes, S(stream), ASYNC)
#define HOOK_hipMemsetAsync_spt  ~, SET(dst, 1, sizeBytes, SPT(stream), ASYNC)
#define HOOK_hipMemsetD8         ~, SET(dest, 1, count, S(NULL), SYNC)
#define HOOK_hipMemsetD16        ~, SET(dest, 2, count, S(NULL), SYNC)
#define HOOK_hipMemsetD32        ~, SET(dest, 4, count, S(NULL), SYNC)
#define HOOK_hipMemsetD8Async    ~, SET(dest, 1, count, S(stream), ASYNC)
#define HOOK_hipMemsetD16Async   ~, SET(dest, 2, count, S(stream), ASYNC)
#define HOOK_hipMemsetD32Async   ~, SET(dst, 4, count, S(stream), ASYNC)
#define HOOK_hipMemset2D           ~, SET_ROWS(ROWS_SET2D, S(NULL), SYNC)
#define HOOK_hipMemset2D_spt       ~, SET_ROWS(ROWS_SET2D, SPT(NULL), SYNC)
#define HOOK_hipMemset2DAsync      ~, SET_ROWS(ROWS_SET2D, S(stream), ASYNC)
#define HOOK_hipMemset2DAsync_spt  ~, SET_ROWS(ROWS_SET2D, SPT(stream), ASYNC)
#define ROWS_SETD(element) ((struct hook_rows){ dst, NULL, dstPitch, 0, width * element, height, 0, 0, 1 })
#define HOOK_hipMemsetD2D8         ~, SET_ROWS(ROWS_SETD(1), S(NULL), SYNC)
#define HOOK_hipMemsetD2D16        ~, SET_ROWS(ROWS_SETD(2), S(NULL), SYNC)
#define HOOK_hipMemsetD2D32        ~, SET_ROWS(ROWS_SETD(4), S(NULL), SYNC)
#define HOOK_hipMemsetD2D8Async    ~, SET_ROWS(ROWS_SETD(1), S(stream), ASYNC)
#define HOOK_hipMemsetD2D16Async   ~, SET_ROWS(ROWS_SETD(2), S(stream), ASYNC)
#define HOOK_hipMemsetD2D32Async   ~, SET_ROWS(ROWS_SETD(4), S(stream), ASYNC)
#define HOOK_hipMemset3D           ~, SET_ROWS(ROWS_SET3D, S(NULL), SYNC)
#define HOOK_hipMemset3D_spt       ~, SET_ROWS(ROWS_SET3D, SPT(NULL), SYNC)
#define HOOK_hipMemset3DAsync      ~, SET_ROWS(ROWS_SET3D, S(stream), ASYNC)
#define HOOK_hipMemset3DAsync_spt  ~, SET_ROWS(ROWS_SET3D, SPT(stream), ASYNC)

/* ---- launches -------------------------------------------------------------------------------- */

#define LAUNCH(launch, stream) struct hook_launch q = launch; WORK(hook_launch(&c, &q, stream)), WORKED
#define DIM3(d)                { d.x, d.y, d.z }
/* Work sizes in threads, as the Ext functions count them, to blocks. */
#define BLOCKS(n)              (localWorkSize##n ? globalWorkSize##n / localWorkSize##n : 0)
#define LAUNCH_MODULE(coop, ex) ((struct hook_launch){ f, { gridDimX, gridDimY, gridDimZ }, { blockDimX, blockDimY, blockDimZ }, sharedMemBytes, kernelParams, ex, coop })
#define LAUNCH_EXT              ((struct hook_launch){ f, { BLOCKS(X), BLOCKS(Y), BLOCKS(Z) }, { localWorkSizeX, localWorkSizeY, localWorkSizeZ }, sharedMemBytes, kernelParams, extra, false })
#define LAUNCH_HOST             ((struct hook_launch){ function_address, DIM3(numBlocks), DIM3(dimBlocks), sharedMemBytes, args, NULL, false })
#define LAUNCH_COOP(block)      ((struct hook_launch){ f, DIM3(gridDim), DIM3(block), sharedMemBytes, kernelParams, NULL, true })

#define HOOK_hipModuleLaunchKernel            ~, LAUNCH(LAUNCH_MODULE(false, extra), S(stream))
#define HOOK_hipModuleLaunchCooperativeKernel ~, LAUNCH(LAUNCH_MODULE(true, NULL), S(stream))
#define LAUNCH_TIMED(launch, stream) struct order_stream *s = stream; hook_event_beside(&c, hipSuccess, startEvent, s); struct hook_launch q = launch; WORK(hook_launch(&c, &q, s)), WORKED; hook_event_beside(&c, r, stopEvent, s)
#define HOOK_hipExtModuleLaunchKernel         ~, LAUNCH_TIMED(LAUNCH_EXT, S(hStream))
#define HOOK_hipHccModuleLaunchKernel         ~, LAUNCH_TIMED(LAUNCH_EXT, S(hStream))
#define HOOK_hipLaunchKernel                  ~, LAUNCH(LAUNCH_HOST, S(stream))
/* It returns nothing: that it failed is what it changed about the thread's last error. */
#define LAUNCH_GGL              ((struct hook_launch){ (const void *)function_address, DIM3((*numBlocks)), DIM3((*dimBlocks)), sharedMemBytes, NULL, kernarg, false })
#define HOOK_hipLaunchKernelGGLImpl           ~, const hipError_t was = audit.raw.hipPeekAtLastError(); struct hook_launch q = numBlocks && dimBlocks ? LAUNCH_GGL : ((struct hook_launch){ 0 }); WORK(hook_launch(&c, &q, S(stream))), \
    const hipError_t now = audit.raw.hipPeekAtLastError(); const hipError_t r = now == was ? hipSuccess : now; WORKED; note_failure(&c, r)
#define HOOK_hipLaunchKernel_spt              ~, LAUNCH(LAUNCH_HOST, SPT(stream))
#define HOOK_hipExtLaunchKernel               ~, LAUNCH_TIMED(LAUNCH_HOST, S(stream))
#define HOOK_hipLaunchCooperativeKernel       ~, LAUNCH(LAUNCH_COOP(blockDimX), S(stream))
#define HOOK_hipLaunchCooperativeKernel_spt   ~, LAUNCH(LAUNCH_COOP(blockDim), SPT(hStream))
#define LAUNCH_CONFIG(x)        (config ? x : (hipStream_t)NULL)
#define LAUNCH_EXC              ((struct hook_launch){ fPtr, DIM3(config->gridDim), DIM3(config->blockDim), config->dynamicSmemBytes, args, NULL, false })
#define LAUNCH_DRV_EX           ((struct hook_launch){ f, { config->gridDimX, config->gridDimY, config->gridDimZ }, { config->blockDimX, config->blockDimY, config->blockDimZ }, config->sharedMemBytes, params, extra, false })
#define HOOK_hipLaunchKernelExC   ~, LAUNCH(config ? LAUNCH_EXC : ((struct hook_launch){ 0 }), S(LAUNCH_CONFIG(config->stream)))
#define HOOK_hipDrvLaunchKernelEx ~, LAUNCH(config ? LAUNCH_DRV_EX : ((struct hook_launch){ 0 }), S(LAUNCH_CONFIG(config->hStream)))
/* The launches' own events follow the call's, so that it is the call that the device names. */
#define LAUNCH_MANY PLAIN(launchParamsList, numDevices, flags); statement_tag(&c)
#define HOOK_hipExtLaunchMultiKernelMultiDevice          ~, LAUNCH_MANY, hook_launch_each(&c, r, launchParamsList, numDevices)
#define HOOK_hipLaunchCooperativeKernelMultiDevice       ~, LAUNCH_MANY, hook_launch_each(&c, r, launchParamsList, numDevices)
#define HOOK_hipModuleLaunchCooperativeKernelMultiDevice ~, LAUNCH_MANY, hook_launch_functions(&c, r, launchParamsList, numDevices)
#define HOOK_hipConfigureCall ~, PLAIN(gridDim.x, blockDim.x, sharedMem), call_end(&c, (unsigned)r); hook_configure(stream)
#define HOOK_hipLaunchByPtr   ~, WORK(hook_launch_configured(&c, func)), WORKED

/* ---- streams --------------------------------------------------------------------------------- */

#define HOOK_hipStreamCreate              ~, , hook_stream_created(&c, r, stream, 0, 0)
#define HOOK_hipStreamCreateWithFlags     ~, , hook_stream_created(&c, r, stream, flags, 0)
#define HOOK_hipStreamCreateWithPriority  ~, , hook_stream_created(&c, r, stream, flags, priority)
#define HOOK_hipExtStreamCreateWithCUMask ~, , hook_stream_created(&c, r, stream, 0, 0)
#define HOOK_hipStreamDestroy ~, struct order_stream *s = hook_stream_destroy(&c, stream), hook_stream_destroyed(&c, r, s)

#define SYNC(how) struct hook_sync s = how
#define SYNCED    hook_synced(&c, r, &s)
#define HOOK_hipStreamSynchronize     ~, SYNC(hook_sync_stream(&c, S(stream), DETAIL_SCOPE_STREAM)), SYNCED
#define HOOK_hipStreamSynchronize_spt ~, SYNC(hook_sync_stream(&c, SPT(stream), DETAIL_SCOPE_STREAM)), SYNCED
#define ASKED     r = hook_stream_answer(&c, r, s.stream); SYNCED
#define HOOK_hipStreamQuery           ~, SYNC(hook_sync_stream(&c, S(stream), DETAIL_SCOPE_STREAM_QUERY)), ASKED
#define HOOK_hipStreamQuery_spt       ~, SYNC(hook_sync_stream(&c, SPT(stream), DETAIL_SCOPE_STREAM_QUERY)), ASKED
#define HOOK_hipDeviceSynchronize     ~, SYNC(hook_sync_device(&c)), SYNCED
#define HOOK_hipCtxSynchronize        ~, SYNC(hook_sync_device(&c)), SYNCED

#define QUEUE(a, b, stream) WORK(hook_queue(&c, a, (uint64_t)(b), stream)), WORKED
#define HOOK_hipMemPrefetchAsync     ~, QUEUE(dev_ptr, count, S(stream))
#define HOOK_hipMemPrefetchAsync_v2  ~, QUEUE(dev_ptr, count, S(stream))
#define HOOK_hipStreamAttachMemAsync ~, QUEUE(dev_ptr, length, S(stream))
#define HOOK_hipStreamWaitValue32    ~, QUEUE(ptr, value, S(stream))
#define HOOK_hipStreamWaitValue64    ~, QUEUE(ptr, value, S(stream))
#define HOOK_hipStreamWriteValue32   ~, SET_VALUE(4)
#define HOOK_hipStreamWriteValue64   ~, SET_VALUE(8)
#define SET_VALUE(width)             WORK(hook_set(&c, ptr, value, width, 1, S(stream), HOOK_ASYNC)), WORKED
#define HOOK_hipStreamBatchMemOp     ~, QUEUE(paramArray, count, S(stream))
#define HOOK_hipSignalExternalSemaphoresAsync ~, QUEUE(extSemArray, numExtSems, S(stream))
#define HOOK_hipWaitExternalSemaphoresAsync   ~, QUEUE(extSemArray, numExtSems, S(stream))
#define HOOK_hipGraphicsMapResources   ~, QUEUE(resources, count, S(stream))
#define HOOK_hipGraphicsUnmapResources ~, QUEUE(resources, count, S(stream))
#define HOOK_hipMemMapArrayAsync       ~, QUEUE(mapInfoList, count, S(stream))

#define QUEUED hook_host_queued(&c, r, &w, userData)
#define HOOK_hipLaunchHostFunc        ~, WORK(hook_host_fn(&c, &fn, &userData, S(stream))), QUEUED
#define HOOK_hipLaunchHostFunc_spt    ~, WORK(hook_host_fn(&c, &fn, &userData, SPT(stream))), QUEUED
#define HOOK_hipStreamAddCallback     ~, WORK(hook_callback(&c, &callback, &userData, S(stream))), QUEUED
#define HOOK_hipStreamAddCallback_spt ~, WORK(hook_callback(&c, &callback, &userData, SPT(stream))), QUEUED

/* ---- events ---------------------------------------------------------------------------------- */

#define HOOK_hipEventCreate          ~, , hook_event_created(&c, r, event, 0)
#define HOOK_hipEventCreateWithFlags ~, , hook_event_created(&c, r, event, flags)
#define HOOK_hipIpcOpenEventHandle   ~, , hook_event_created(&c, r, event, 0)
#define HOOK_hipEventDestroy         ~, hook_event_destroy(&c, event), call_end(&c, (unsigned)r)
#define EVENT_RECORD(stream)         struct order_stream *s = stream; uint64_t mark = hook_event_record(&c, event, s), hook_event_recorded(&c, r, event, s, mark)
#define HOOK_hipEventRecord          ~, EVENT_RECORD(S(stream))
#define HOOK_hipEventRecord_spt      ~, EVENT_RECORD(SPT(stream))
#define HOOK_hipEventRecordWithFlags ~, EVENT_RECORD(S(stream))
#define EVENT_WAIT_ON(stream)        struct order_stream *s = stream; hook_event_wait(&c, event, s), hook_event_waited(&c, r, event, s)
#define HOOK_hipStreamWaitEvent      ~, EVENT_WAIT_ON(S(stream))
#define HOOK_hipStreamWaitEvent_spt  ~, EVENT_WAIT_ON(SPT(stream))
#define HOOK_hipEventSynchronize     ~, hook_event_sync(&c, event, DETAIL_WAIT_WAIT), hook_event_synced(&c, r, event)
#define HOOK_hipEventQuery           ~, hook_event_sync(&c, event, DETAIL_WAIT_QUERY), r = hook_event_answer(&c, r, event); hook_event_synced(&c, r, event)

/* ---- code ------------------------------------------------------------------------------------ */

#define HOOK_hipModuleLoad       ~, , hook_module_loaded(&c, r, GOT(module), NULL, fname)
#define HOOK_hipModuleLoadData   ~, , hook_module_loaded(&c, r, GOT(module), image, NULL)
#define HOOK_hipModuleLoadDataEx ~, , hook_module_loaded(&c, r, GOT(module), image, NULL)
#define HOOK_hipModuleUnload     ~, hook_module_unload(&c, module), hook_module_unloaded(&c, r, module)
#define HOOK_hipModuleGetFunction ~, , hook_function(&c, r, GOT(function), module, kname)
#define HOOK_hipModuleGetGlobal  ~, , hook_global(&c, r, GOT(dptr), GOT_SIZE(bytes), hmod, name)
#define HOOK_hipGetSymbolAddress ~, , hook_symbol_address(&c, r, GOT(devPtr), symbol)
#define HOOK_hipModuleLoadFatBinary ~, , hook_module_loaded(&c, r, GOT(module), fatbin, NULL)
#define HOOK_hipLibraryLoadData     ~, , hook_module_loaded(&c, r, GOT(library), code, NULL)
#define HOOK_hipLibraryLoadFromFile ~, , hook_module_loaded(&c, r, GOT(library), NULL, fileName)
#define HOOK_hipLibraryUnload       ~, hook_module_unload(&c, library), hook_module_unloaded(&c, r, library)
#define HOOK_hipLibraryGetKernel    ~, , hook_function(&c, r, GOT(pKernel), library, name)
#define HOOK_hipGetFuncBySymbol     ~, , hook_function_of_symbol(&c, r, GOT(functionPtr), symbolPtr)
#define HOOK___hipRegisterFatBinary   ~, PLAIN(data, 0, 0), hook_fatbin(r, data); call_end(&c, 0)
#define HOOK___hipUnregisterFatBinary ~, PLAIN(modules, 0, 0); hook_fatbin_gone(modules), call_end(&c, 0)
#define HOOK___hipRegisterFunction ~, , hook_function(&c, hipSuccess, hostFunction, modules, deviceName)

/* ---- graphs ---------------------------------------------------------------------------------- */

#define CAPTURE_BEGIN(stream) struct order_stream *s = stream; hook_capture_begin(&c, s, mode), hook_capture_begun(&c, r, s)
#define CAPTURE_END(stream)   struct order_stream *s = stream; hook_capture_end(&c, s), hook_capture_ended(&c, r, s, pGraph)
#define HOOK_hipStreamBeginCapture     ~, CAPTURE_BEGIN(S(stream))
#define HOOK_hipStreamBeginCapture_spt ~, CAPTURE_BEGIN(SPT(stream))
#define HOOK_hipStreamEndCapture       ~, CAPTURE_END(S(stream))
#define HOOK_hipStreamEndCapture_spt   ~, CAPTURE_END(SPT(stream))

#define GRAPH(kind, dst, src, node) hook_graph(&c, EVENT_##kind, dst, src, node)
#define MADE(p)                     hook_graph_done(&c, r, GOT(p))
#define MADE_OF(p, from)            hook_graph_made_of(&c, r, GOT(p), from)
#define HOOK_hipGraphCreate               ~, GRAPH(GRAPH_CREATE, NULL, NULL, NULL), MADE(pGraph)
#define HOOK_hipGraphClone                ~, GRAPH(GRAPH_CREATE, NULL, originalGraph, NULL), MADE_OF(pGraphClone, originalGraph)
#define HOOK_hipGraphDestroy              ~, GRAPH(GRAPH_DESTROY, graph, NULL, NULL), hook_graph_destroyed(&c, r, graph)
#define HOOK_hipGraphExecDestroy          ~, GRAPH(GRAPH_DESTROY, NULL, graphExec, NULL), hook_graph_destroyed(&c, r, graphExec)
#define HOOK_hipGraphInstantiate          ~, GRAPH(GRAPH_INSTANTIATE, NULL, graph, NULL), MADE_OF(pGraphExec, graph)
#define HOOK_hipGraphInstantiateWithFlags ~, GRAPH(GRAPH_INSTANTIATE, NULL, graph, NULL), MADE_OF(pGraphExec, graph)
#define HOOK_hipGraphInstantiateWithParams ~, GRAPH(GRAPH_INSTANTIATE, NULL, graph, NULL), MADE_OF(pGraphExec, graph)
#define HOOK_hipGraphExecUpdate           ~, GRAPH(GRAPH_UPDATE, hGraphExec, hGraph, NULL), hook_graph_updated(&c, r, hGraphExec, hGraph)
#define SET_EXEC GRAPH(GRAPH_UPDATE, hGraphExec, NULL, node)
#define SET_NODE GRAPH(GRAPH_UPDATE, NULL, NULL, node)
#define HOOK_hipGraphExecKernelNodeSetParams   ~, SET_EXEC, hook_node_kernel_set(&c, r, pNodeParams)
#define HOOK_hipGraphExecMemcpyNodeSetParams   ~, SET_EXEC, hook_node_copy3d_set(&c, r, hGraphExec, pNodeParams)
#define HOOK_hipGraphExecMemcpyNodeSetParams1D ~, SET_EXEC, hook_node_copy_set(&c, r, hGraphExec, dst, src, count, kind)
#define HOOK_hipGraphExecMemcpyNodeSetParamsFromSymbol ~, SET_EXEC, hook_node_copy_set(&c, r, hGraphExec, dst, hook_symbol(symbol, offset), count, kind)
#define HOOK_hipGraphExecMemcpyNodeSetParamsToSymbol   ~, SET_EXEC, hook_node_copy_set(&c, r, hGraphExec, hook_symbol(symbol, offset), src, count, kind)
#define HOOK_hipGraphExecMemsetNodeSetParams   ~, SET_EXEC, hook_node_set_set(&c, r, pNodeParams)
#define HOOK_hipGraphKernelNodeSetParams       ~, SET_NODE, hook_node_kernel_set(&c, r, pNodeParams)
#define HOOK_hipGraphMemcpyNodeSetParams       ~, SET_NODE, hook_node_copy3d_set(&c, r, NULL, pNodeParams)
#define HOOK_hipGraphMemcpyNodeSetParams1D     ~, SET_NODE, hook_node_copy_set(&c, r, NULL, dst, src, count, kind)
#define HOOK_hipGraphMemsetNodeSetParams       ~, SET_NODE, hook_node_set_set(&c, r, pNodeParams)
#define HOOK_hipGraphExecHostNodeSetParams \
    ~, struct hook_host_node w; hook_host_node(&w, &pNodeParams); SET_EXEC, hook_node_host_set(&c, r, &w)
#define HOOK_hipGraphHostNodeSetParams \
    ~, struct hook_host_node w; hook_host_node(&w, &pNodeParams); SET_NODE, hook_node_host_set(&c, r, &w)
#define HOOK_hipGraphGetNodes                  ~, PLAIN(graph, 0, 0), hook_graph_nodes(&c, r, graph, nodes, numNodes)
#define HOOK_hipGraphLaunch     ~, WORK(hook_graph_launch(&c, graphExec, S(stream))), WORKED
#define HOOK_hipGraphLaunch_spt ~, WORK(hook_graph_launch(&c, graphExec, SPT(stream))), WORKED
#define HOOK_hipGraphUpload     ~, QUEUE(graphExec, 0, S(stream))

#define HOOK_hipGraphAddDependencies ~, PLAIN(graph, numDependencies, 0), hook_graph_edges(&c, r, graph, from, to, numDependencies)
#define NODE const struct hook_node n = hook_node(pGraphNode, graph, pDependencies, numDependencies)
#define HOOK_hipGraphAddKernelNode   ~, , NODE; hook_node_kernel(&c, r, &n, pNodeParams)
#define HOOK_hipGraphAddMemcpyNode   ~, , NODE; hook_node_copy3d(&c, r, &n, pCopyParams)
#define HOOK_hipGraphAddMemcpyNode1D ~, , NODE; hook_node_copy(&c, r, &n, dst, src, count, kind)
#define HOOK_hipGraphAddMemcpyNodeFromSymbol ~, , NODE; hook_node_copy(&c, r, &n, dst, hook_symbol(symbol, offset), count, kind)
#define HOOK_hipGraphAddMemcpyNodeToSymbol   ~, , NODE; hook_node_copy(&c, r, &n, hook_symbol(symbol, offset), src, count, kind)
#define HOOK_hipGraphAddMemsetNode   ~, , NODE; hook_node_set(&c, r, &n, pMemsetParams)
#define HOOK_hipGraphAddHostNode \
    ~, struct hook_host_node w; hook_host_node(&w, &pNodeParams), NODE; hook_node_host(&c, r, &n, &w)
#define HOOK_hipGraphHostNodeGetParams ~, PLAIN(node, pNodeParams, 0), hook_host_node_read(r, pNodeParams); call_end(&c, (unsigned)r)
#define HOOK_hipGraphAddMemAllocNode ~, , NODE; hook_node_alloc(&c, r, &n, pNodeParams)
#define HOOK_hipGraphAddMemFreeNode  ~, , NODE; hook_node_free(&c, r, &n, dev_ptr)
#define HOOK_hipDrvGraphAddMemFreeNode \
    ~, , const struct hook_node n = hook_node(phGraphNode, hGraph, dependencies, numDependencies); hook_node_free(&c, r, &n, dptr)
#define HOOK_hipGraphAddEmptyNode    ~, , NODE; hook_node_plain(&c, r, &n)
#define HOOK_hipGraphAddChildGraphNode  ~, , NODE; hook_node_child(&c, r, &n, childGraph)
#define HOOK_hipGraphAddEventRecordNode ~, , NODE; hook_node_event(&c, r, &n, EVENT_EVENT_RECORD, event)
#define HOOK_hipGraphAddEventWaitNode   ~, , NODE; hook_node_event(&c, r, &n, EVENT_EVENT_WAIT, event)

/* clang-format on */

#endif

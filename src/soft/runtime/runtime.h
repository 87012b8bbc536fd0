/* runtime.h - the HIP functions of the software device, and where to find what.
 *
 * The device is a queue of operations (struct soft_op) per stream and a scheduler that runs them in
 * an order HIP permits. A HIP function of the runtime, soft_hipXxx(), builds an operation, submits
 * it and, where HIP says so, waits for it. src/soft/entry exports soft_hipXxx as hipXxx; a function
 * of hip_api.def that has no soft_hipXxx answers hipErrorNotSupported there.
 *
 * Most files have a header of the same name; this one only declares what hip_api.def lists. All of
 * it is thread-safe, as HIP is.
 *
 *   settings.c      what the environment says
 *   handle.c        objects that programs hold by opaque pointers
 *   memory.c        address ranges, blocks, guards, history
 *   slack.c         patterns beside blocks, and reports about launches
 *   defined.c       which bytes of device memory have been written
 *   tensor.c        parts of blocks that the program has named
 *   alloc.c         the hipMalloc family
 *   heap.c          malloc() in device code
 *   mempool.c       stream-ordered allocation
 *   managed.c       hints about managed memory
 *   virtual.c       hipMemAddressReserve, hipMemCreate, hipMemMap
 *   ipc.c           memory of other processes
 *   op.c            operations: building one
 *   op_run.c        running one, by the part that its kind belongs to
 *   schedule.c      the scheduler: dispatcher, watchdog, four policies
 *   stream.c        streams and their rules
 *   copy.c          copies and fills
 *   event.c         events
 *   function.c      kernels as programs hold them, and the native ones
 *   launch.c        launches
 *   host.c          host functions on a stream
 *   value.c         streams that wait for values in memory
 *   pool.c          one kernel on all cores
 *   fault_signal.c  SIGSEGV becomes a fault
 *   error.c         last and sticky errors
 *   start.c         the start, and forks
 *   parts.c         what is started, and what a fork must lock
 *   reset.c         hipDeviceReset
 *   device.c        choosing and configuring a device; device_property.c has its properties
 *   occupancy.c     function attributes, and how many blocks fit on a compute unit
 *   module/         code objects, symbols
 *   machine/        kernels that are machine code
 *   hostcall/       printf and memory for running kernels
 *   image/          arrays, textures, surfaces
 *   rtc/            hiprtc and linking
 *   graph/          capture and replay
 *
 * Lock order: graphs (graph/graph.h), scheduler, memory table; module/symbol.c has that of modules.
 * No lock is held while an operation runs. */
#ifndef SOFT_RUNTIME_RUNTIME_H
#define SOFT_RUNTIME_RUNTIME_H

#include "hip/hip_api.h"
#include "hip/hip_types.h"

/* Every function the runtime may implement; see src/soft/entry for how missing ones answer. */
#define HIP_FN(ret, name, params, args, cls, since) ret soft_##name params;
#define HIP_VOID_FN(name, params, args, cls, since) void soft_##name params;
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

#endif

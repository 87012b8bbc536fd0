/* abi_undeclared.h - functions of hip_api.def that the C headers do not declare, and why. */
#ifndef ABI_UNDECLARED_H
#define ABI_UNDECLARED_H

/* Called by code that the compiler generates. */
#define ABI_UNDECLARED___hipRegisterFatBinary   ~, 1
#define ABI_UNDECLARED___hipUnregisterFatBinary ~, 1
#define ABI_UNDECLARED___hipRegisterFunction    ~, 1
#define ABI_UNDECLARED___hipRegisterVar         ~, 1
#define ABI_UNDECLARED___hipRegisterManagedVar  ~, 1
#define ABI_UNDECLARED___hipRegisterSurface     ~, 1
#define ABI_UNDECLARED___hipRegisterTexture     ~, 1

/* For tools; never had a public prototype. */
#define ABI_UNDECLARED_hipGetCmdName             ~, 1
#define ABI_UNDECLARED_hipInitActivityCallback   ~, 1
#define ABI_UNDECLARED_hipEnableActivityCallback ~, 1
#define ABI_UNDECLARED_hipRegisterTracerCallback ~, 1

/* Declared in hip_ext.h, for C++ only. */
#define ABI_UNDECLARED_hipExtModuleLaunchKernel ~, 1
#define ABI_UNDECLARED_hipHccModuleLaunchKernel ~, 1

/* Declared in a namespace, for C++ only. */
#define ABI_UNDECLARED_hipLaunchKernelGGLImpl ~, 1

/* Put into the node of an old release by a later one. */
#define ABI_UNDECLARED_hipDeviceGetTexture1DLinearMaxWidth ~, 1
#if HIP_VERSION_MAJOR == 5
#define ABI_UNDECLARED_hipCreateSurfaceObject        ~, 1
#define ABI_UNDECLARED_hipDestroySurfaceObject       ~, 1
#define ABI_UNDECLARED_hipChooseDeviceR0000          ~, 1
#define ABI_UNDECLARED_hipGetDevicePropertiesR0000   ~, 1
#define ABI_UNDECLARED_hipDeviceGetGraphMemAttribute ~, 1
#define ABI_UNDECLARED_hipDeviceSetGraphMemAttribute ~, 1
#define ABI_UNDECLARED_hipDeviceGraphMemTrim         ~, 1
#define ABI_UNDECLARED_hipEventRecord_spt            ~, 1
#define ABI_UNDECLARED_hipPointerSetAttribute        ~, 1
#define ABI_UNDECLARED_hipStreamGetDevice            ~, 1
#define ABI_UNDECLARED_hipTexRefGetArray             ~, 1
#define ABI_UNDECLARED_hipTexRefGetBorderColor       ~, 1
#define ABI_UNDECLARED_hiprtcLinkAddData             ~, 1
#define ABI_UNDECLARED_hiprtcLinkAddFile             ~, 1
#define ABI_UNDECLARED_hiprtcLinkComplete            ~, 1
#define ABI_UNDECLARED_hiprtcLinkCreate              ~, 1
#define ABI_UNDECLARED_hiprtcLinkDestroy             ~, 1
#endif

/* Gone from the headers of 6.x, or moved to one that needs OpenGL. */
#if HIP_VERSION_MAJOR > 5
#define ABI_UNDECLARED___hipGetPCH                 ~, 1
#define ABI_UNDECLARED_hipGLGetDevices             ~, 1
#define ABI_UNDECLARED_hipGraphicsGLRegisterBuffer ~, 1
#define ABI_UNDECLARED_hipGraphicsGLRegisterImage  ~, 1
#define ABI_UNDECLARED_hipRegisterApiCallback      ~, 1
#define ABI_UNDECLARED_hipRemoveApiCallback        ~, 1
#define ABI_UNDECLARED_hipRegisterActivityCallback ~, 1
#define ABI_UNDECLARED_hipRemoveActivityCallback   ~, 1
#endif

#endif

# The functions that CMakeLists.txt is made of.

# What a library or program of greta needs from the system.
add_library(greta_system INTERFACE)
target_link_libraries(greta_system INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)

# generated/greta_build.h, checked in every build (cmake/build_info.cmake).
function(greta_build_info)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    set(flags "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}")
    if(GRETA_SANITIZE)
        string(APPEND flags " -fsanitize=${GRETA_SANITIZE}")
    endif()
    string(STRIP "${flags}" flags)
    set(run ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
        "-DCOMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}" "-DFLAGS=${flags}"
        -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
        -DOUTPUT=${PROJECT_BINARY_DIR}/generated/greta_build.h
        -P ${PROJECT_SOURCE_DIR}/cmake/build_info.cmake)
    add_custom_target(greta_build_info COMMAND ${run}
        BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/greta_build.h
        COMMENT "Checking what is built" VERBATIM)
endfunction()

# Sources of a folder; every build checks for new ones.
function(greta_glob out)
    set(found)
    foreach(pattern IN LISTS ARGN)
        file(GLOB some CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${pattern})
        list(APPEND found ${some})
    endforeach()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# A file named *_avx2.c, *_avxvnni.c, *_avx512.c, *_avx512vnni.c or *_amx.c is compiled for that instruction set;
# its callers check first that the processor has it (base/cpu.h).
function(greta_instruction_sets)
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        return()
    endif()
    set(avx2 -mavx2 -mfma -mf16c)
    set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
    set(avxvnni ${avx2} -mavxvnni)
    set(avx512vnni ${avx512} -mavx512vnni)
    set(amx ${avx512vnni} -mamx-tile -mamx-bf16)
    foreach(source IN LISTS ARGN)
        if(source MATCHES "_(avx2|avxvnni|avx512|avx512vnni|amx)\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${${CMAKE_MATCH_1}})
        endif()
    endforeach()
endfunction()

# The host and a GPU must compute this bit for bit alike: the compiler must not contract products and sums into FMAs.
function(greta_exact_functions)
    foreach(source IN LISTS ARGN)
        if(source MATCHES "/cpu/choose\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
        endif()
    endforeach()
endfunction()

# Loops over the lanes of a wave (rows_*.c) should be vectorised, with bit-identical results on every instruction set: no
# product and sum become an FMA unless the source says so.
function(greta_row_functions)
    foreach(source IN LISTS ARGN)
        if(source MATCHES "/isa/rows_[a-z0-9]+\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off -fno-math-errno -fno-trapping-math)
            if(NOT GRETA_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
                set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O3)
            endif()
        endif()
    endforeach()
endfunction()

# mm_*.c have hundreds of inlined vectors: with -O2 and AddressSanitizer's check for use after scope on each of them,
# they take minutes to compile. UndefinedBehaviorSanitizer's checks of pointers would double that again; AddressSanitizer
# finds null and out-of-bounds pointers anyway when they are used.
function(greta_sanitize_lightly)
    foreach(source IN LISTS ARGN)
        if(NOT GRETA_SANITIZE OR NOT source MATCHES "/mm_[a-z0-9]+\\.c$")
            continue()
        endif()
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O1)
        if(GRETA_SANITIZE MATCHES "address")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize-address-use-after-scope
                -fno-sanitize=null,pointer-overflow,object-size)
        endif()
    endforeach()
endfunction()

# In mm_*.c, with all its inlining, tracking variables for the debugger takes a quarter to two fifths of GCC's time; the code
# is the same without. clang warns of every loop that it does not unroll although asked to; but UNROLL is only a hint.
function(greta_follow_lightly)
    foreach(source IN LISTS ARGN)
        if(NOT source MATCHES "/mm_[a-z0-9]+\\.c$")
            continue()
        endif()
        if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -fno-var-tracking)
        else()
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -Wno-pass-failed)
        endif()
    endforeach()
endfunction()

# greta_layer(LAYER LOWER…): greta_<layer>, a static library for tests and programs, and greta_<layer>_objects for the shared
# libraries, which must contain all of a layer and not only what something refers to.
function(greta_layer layer)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.c)
    list(FILTER sources EXCLUDE REGEX "/src/soft/entry/")
    greta_instruction_sets(${sources})
    greta_row_functions(${sources})
    greta_exact_functions(${sources})
    greta_sanitize_lightly(${sources})
    greta_follow_lightly(${sources})
    if(NOT sources)
        return()
    endif()
    add_library(greta_${layer}_objects OBJECT ${sources})
    target_include_directories(greta_${layer}_objects PRIVATE ${GRETA_${layer}_INCLUDES})
    if(layer STREQUAL "hip")
        # Where the loader looks for lib/soft if that is not beside the program.
        target_compile_definitions(greta_hip_objects PRIVATE
            GRETA_INSTALL_LIBDIR="${CMAKE_INSTALL_FULL_LIBDIR}")
    endif()
    if(layer STREQUAL "report")
        # Page, style and scripts of the HTML report are embedded in the library.
        greta_glob(page src/report/html/*)
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/report/report_html.c PROPERTIES
            COMPILE_DEFINITIONS GRETA_HTML="${PROJECT_SOURCE_DIR}/src/report/html"
            OBJECT_DEPENDS "${page}")
    endif()
    if(layer STREQUAL "kernels")
        greta_gpu_kernels()
    endif()
    if(layer STREQUAL "infer")
        set(demo ${PROJECT_SOURCE_DIR}/models/greta-demo.gguf)
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/infer/demo.c PROPERTIES
            COMPILE_DEFINITIONS GRETA_DEMO_MODEL="${demo}" OBJECT_DEPENDS ${demo})
    endif()
    add_dependencies(greta_${layer}_objects greta_build_info)
    add_library(greta_${layer} STATIC $<TARGET_OBJECTS:greta_${layer}_objects>)
    set_target_properties(greta_${layer} PROPERTIES
        ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/layers LINKER_LANGUAGE C)
    set(lower)
    foreach(name IN LISTS ARGN)
        if(TARGET greta_${name})
            list(APPEND lower greta_${name})
        endif()
    endforeach()
    target_link_libraries(greta_${layer} PUBLIC ${lower} greta_system ${GRETA_${layer}_LIBRARIES})
    list(APPEND GRETA_LAYERS ${layer})
    set(GRETA_LAYERS ${GRETA_LAYERS} PARENT_SCOPE)
endfunction()

# One greta_layer() for each line of cmake/folders.txt; a folder without sources is skipped.
function(greta_folders)
    set(list ${PROJECT_SOURCE_DIR}/cmake/folders.txt)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
    file(STRINGS ${list} lines REGEX "^[a-z]+:")
    foreach(line IN LISTS lines)
        string(REGEX MATCHALL "[a-z]+" names "${line}")
        list(POP_FRONT names layer)
        if(NOT layer STREQUAL "preload")
            greta_layer(${layer} ${names})
        endif()
    endforeach()
    set(GRETA_LAYERS ${GRETA_LAYERS} PARENT_SCOPE)
endfunction()

# The objects of the given layers, as far as those exist.
function(greta_objects out)
    set(objects)
    foreach(layer IN LISTS ARGN)
        if(TARGET greta_${layer}_objects)
            list(APPEND objects $<TARGET_OBJECTS:greta_${layer}_objects>)
        endif()
    endforeach()
    set(${out} ${objects} PARENT_SCOPE)
endfunction()

# A symbol that a shared library of greta lacks is an error when it is linked, not when a user starts it.
# Not in sanitizer builds: clang has the sanitizer's runtime in the program, not in libraries.
function(greta_shared_options target)
    target_link_options(${target} PRIVATE -Wl,-Bsymbolic)
    if(NOT GRETA_SANITIZE)
        target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
endfunction()

# greta_library(NAME LAYERS LIBRARY…): lib<name>.so and lib<name>.a from all of the given layers and the
# system's libraries. The archive holds one object whose hidden symbols are local, so that a program
# may define its own log_open().
function(greta_library name layers)
    greta_objects(objects ${layers})
    add_library(${name} SHARED ${objects})
    set_target_properties(${name} PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION 0 LINKER_LANGUAGE C)
    greta_shared_options(${name})
    target_link_libraries(${name} PRIVATE greta_system ${ARGN})

    set(whole ${PROJECT_BINARY_DIR}/layers/${name}.o)
    add_custom_command(OUTPUT ${whole}
        COMMAND ${CMAKE_LINKER} -r -o ${whole} ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole}
        DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Joining the objects of lib${name}.a")
    set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_library(${name}_static STATIC ${whole})
    set_target_properties(${name}_static PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C)
endfunction()

# libgcore: the audit. libgreta: the engine, and the audit through which it calls HIP.
function(greta_libraries)
    set(audit base hip codeobj record audit)
    greta_library(gcore "${audit}" ${GRETA_base_LIBRARIES} ${GRETA_codeobj_LIBRARIES})
    if(TARGET greta_infer)
        greta_library(greta "${audit};model;kernels;infer" ${GRETA_base_LIBRARIES}
            ${GRETA_codeobj_LIBRARIES} ${GRETA_model_LIBRARIES})
        add_dependencies(greta soft_runtime)
    endif()
endfunction()

# A linker version script for a library that exports the functions of hip_api.def; `extra` is a last
# node and its patterns. Symbols in no node are local; if further arguments are given, only symbols that
# match these patterns are local. The target is linked again when the list changes.
function(greta_version_script target name extra)
    set(script ${PROJECT_BINARY_DIR}/generated/${name}.map)
    greta_glob(definitions src/hip/*.def)
    if(NOT TARGET ${name}_map)
        add_custom_command(OUTPUT ${script}
            COMMAND ${CMAKE_COMMAND} -DCC=${CMAKE_C_COMPILER} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
                    "-DEXTRA=${extra}" "-DLOCAL=${ARGN}" -DOUTPUT=${script}
                    -P ${PROJECT_SOURCE_DIR}/cmake/version_script.cmake
            DEPENDS ${definitions} ${PROJECT_SOURCE_DIR}/cmake/version_script.cmake
                    ${PROJECT_SOURCE_DIR}/cmake/hip_exports.h
            COMMENT "Listing the exports of ${name}" VERBATIM)
        add_custom_target(${name}_map DEPENDS ${script})
    endif()
    add_dependencies(${target} ${name}_map)
    target_link_options(${target} PRIVATE -Wl,--version-script=${script})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
endfunction()

# The software device as a drop-in libamdhip64, once for each SONAME that HIP programs ask for.
function(greta_soft_runtime)
    add_custom_target(soft_runtime)
    greta_glob(entry src/soft/entry/*.c)
    if(NOT entry OR NOT TARGET greta_hip)
        return()
    endif()
    greta_objects(objects base hip codeobj isa record soft)
    foreach(major 5 6 7)
        set(target amdhip64_${major})
        add_library(${target} SHARED ${entry} ${objects})
        add_dependencies(${target} greta_build_info)
        target_compile_definitions(${target} PRIVATE SOFT_HIP_MAJOR=${major})
        target_link_libraries(${target} PRIVATE greta_system ${GRETA_base_LIBRARIES}
            ${GRETA_codeobj_LIBRARIES})
        target_link_options(${target} PRIVATE -Wl,-soname,libamdhip64.so.${major})
        greta_shared_options(${target})
        greta_version_script(${target} amdhip64 "greta_1 greta_soft_*")
        set_target_properties(${target} PROPERTIES
            PREFIX "" OUTPUT_NAME libamdhip64.so SUFFIX .${major} NO_SONAME ON
            LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/soft)
        # Programs of ROCm 5.3 and later load hiprtc as libhiprtc; here it is in the same library.
        add_custom_command(TARGET ${target} POST_BUILD
            COMMAND ${CMAKE_COMMAND} -E create_symlink libamdhip64.so.${major}
                    ${PROJECT_BINARY_DIR}/lib/soft/libhiprtc.so.${major})
        add_dependencies(soft_runtime ${target})
    endforeach()
    # Plain libamdhip64.so is what -lamdhip64 links: the one for the HIP headers that are installed.
    set(major 6)
    find_file(HIP_VERSION_HEADER hip/hip_version.h PATHS /opt/rocm/include)
    if(HIP_VERSION_HEADER)
        file(STRINGS ${HIP_VERSION_HEADER} line REGEX "define HIP_VERSION_MAJOR +[567]")
        string(REGEX REPLACE ".* ([567]).*" "\\1" major "${line}")
    endif()
    if(NOT major MATCHES "^[567]$")
        set(major 6)
    endif()
    add_custom_command(TARGET amdhip64_${major} POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E create_symlink libamdhip64.so.${major}
                ${PROJECT_BINARY_DIR}/lib/soft/libamdhip64.so
        COMMAND ${CMAKE_COMMAND} -E create_symlink libamdhip64.so.${major}
                ${PROJECT_BINARY_DIR}/lib/soft/libhiprtc.so)
endfunction()

# libgcore_preload.so: the audit in front of any program's HIP runtime. It replaces functions of the C
# library under all their versions, which a symbol without a version does. Always optimised: the
# exported functions must end in jumps. gcc's sanitizers are shared libraries, which can be preloaded after
# it (tests/support/tap.sh); clang's are part of the program, so that its sanitizer builds have no preload library.
function(greta_preload)
    greta_glob(sources src/preload/*.c)
    if(NOT sources OR GRETA_FUZZ OR (GRETA_SANITIZE AND NOT CMAKE_C_COMPILER_ID STREQUAL "GNU"))
        return()
    endif()
    if(GRETA_SANITIZE) # a sanitizer calls functions of these while it starts
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/preload/next.c
            ${PROJECT_SOURCE_DIR}/src/preload/lookup.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
    endif()
    greta_objects(objects base hip codeobj record audit)
    add_library(gcore_preload SHARED ${sources} ${objects})
    add_dependencies(gcore_preload greta_build_info)
    target_compile_options(gcore_preload PRIVATE -O2)
    target_link_libraries(gcore_preload PRIVATE greta_system ${GRETA_base_LIBRARIES}
        ${GRETA_codeobj_LIBRARIES})
    set_target_properties(gcore_preload PROPERTIES NO_SONAME ON)
    greta_shared_options(gcore_preload)
    greta_version_script(gcore_preload gcore_preload "" "gcore_*")
endfunction()

# The programs. They contain every layer but soft, which the loader opens at run time.
function(greta_tools)
    set(layers ${GRETA_LAYERS})
    list(REMOVE_ITEM layers soft)
    list(REVERSE layers)
    list(TRANSFORM layers PREPEND greta_)
    greta_glob(common tools/common/*.c)
    if(common)
        add_library(greta_tools_common STATIC ${common})
        add_dependencies(greta_tools_common greta_build_info)
        set_target_properties(greta_tools_common PROPERTIES
            ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/layers)
        target_link_libraries(greta_tools_common PUBLIC ${layers})
        set(layers greta_tools_common ${layers})
    endif()
    greta_glob(programs tools/greta_*.c)
    set(names)
    foreach(main IN LISTS programs)
        get_filename_component(program ${main} NAME_WE)
        string(REGEX REPLACE "^greta_" "" short ${program})
        greta_glob(parts tools/${short}/*.c)
        set(target ${program}_program) # greta_model is a layer and a program
        add_executable(${target} ${main} ${parts})
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${program})
        target_link_libraries(${target} PRIVATE ${layers} ${GRETA_${short}_PROGRAM_LIBRARIES})
        target_compile_definitions(${target} PRIVATE ${GRETA_${short}_PROGRAM_DEFINITIONS})
        add_dependencies(${target} greta_build_info soft_runtime)
        if(TARGET gcore_preload)
            add_dependencies(${target} gcore_preload)
        endif()
        list(APPEND names ${target})
    endforeach()
    set(GRETA_PROGRAMS ${names} PARENT_SCOPE)
endfunction()

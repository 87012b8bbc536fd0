# Writes a linker version script from the preprocessed list of HIP functions.
#   cmake -DCC=cc -DSOURCE_DIR=… -DEXTRA="greta_1 greta_soft_*" -DOUTPUT=… -P version_script.cmake
# Every function goes into the node of its `since` column (4_2: hip_4.2); a node inherits the one
# before it, as in ROCm's library. EXTRA adds a last node with a pattern. All other symbols are
# local, or only those that match the patterns in LOCAL.

cmake_minimum_required(VERSION 3.22)

execute_process(
    COMMAND ${CC} -E -P -x c -I${SOURCE_DIR}/src ${SOURCE_DIR}/cmake/hip_exports.h
    OUTPUT_VARIABLE text
    ERROR_VARIABLE problem
    RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "cannot preprocess hip_api.def:\n${problem}")
endif()

string(REGEX MATCHALL "HIP_EXPORT [A-Za-z0-9_]+ [0-9]+_[0-9]+" exports "${text}")
set(nodes)
foreach(export IN LISTS exports)
    string(REGEX REPLACE "HIP_EXPORT ([A-Za-z0-9_]+) ([0-9]+_[0-9]+)" "\\1;\\2" pair "${export}")
    list(GET pair 0 name)
    list(GET pair 1 node)
    list(APPEND nodes ${node})
    string(APPEND names_${node} "    ${name};\n")
endforeach()
if(NOT nodes)
    message(FATAL_ERROR "hip_api.def names no function")
endif()
list(REMOVE_DUPLICATES nodes)
list(SORT nodes COMPARE NATURAL)

set(script)
set(parent)
if(NOT LOCAL)
    set(LOCAL "*")
endif()
string(REPLACE ";" ";\n    " LOCAL "${LOCAL}")
set(locals "local:\n    ${LOCAL};\n")
foreach(node IN LISTS nodes)
    string(REPLACE "_" "." version ${node})
    string(APPEND script "hip_${version} {\nglobal:\n${names_${node}}${locals}}${parent};\n\n")
    set(parent " hip_${version}")
    set(locals)
endforeach()
if(EXTRA)
    separate_arguments(EXTRA)
    list(POP_FRONT EXTRA name)
    list(JOIN EXTRA ";\n    " patterns)
    string(APPEND script "${name} {\nglobal:\n    ${patterns};\n}${parent};\n")
endif()
file(WRITE ${OUTPUT} "${script}")

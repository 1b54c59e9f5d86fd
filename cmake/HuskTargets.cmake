# SPDX-License-Identifier: Apache-2.0
# The few ways in which husk declares targets. Every function takes explicit source lists.

set(HUSK_SANITIZE_FLAGS "")
if(HUSK_SANITIZE)
  set(HUSK_SANITIZE_FLAGS -fsanitize=${HUSK_SANITIZE} -fno-sanitize-recover=all)
endif()

# Seconds after which a test hangs: many times what it takes on a machine that does much else. (Each husk command of a system
# test has its own limit, in tests/system/lib.sh.)
set(HUSK_UNIT_LIMIT 1500)
set(HUSK_SYSTEM_LIMIT 3600)

# husk_library(NAME SOURCES ... [LINK ...]): an internal static library. Includes are written
# from the top of the tree ("lib/base/buf.h"), so the path of an include names its layer.
function(husk_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${HUSK_SANITIZE_FLAGS})
  if(HUSK_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# husk_program(NAME OUTPUT_DIR SOURCES ... [LINK ...]): with the archives of libraries (husk_linked).
function(husk_program name output_dir)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${HUSK_SANITIZE_FLAGS})
  target_link_options(${name} PRIVATE ${HUSK_SANITIZE_FLAGS})
  set_target_properties(${name} PROPERTIES HUSK_ARCHIVES ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${output_dir})
endfunction()

# husk_static_program(NAME OUTPUT_DIR SOURCES ... [LINK ...]): a program that runs in guests, without libraries of theirs and
# without sanitizers.
function(husk_static_program name output_dir)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -fno-pie)
  target_link_options(${name} PRIVATE -static)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  set_target_properties(${name} PROPERTIES
    POSITION_INDEPENDENT_CODE OFF
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${output_dir})
endfunction()

# husk_module(NAME OUTPUT_DIR SOURCES ... [LINK ...]): what a program loads with dlopen(3) when it needs it.
function(husk_module name output_dir)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${HUSK_SANITIZE_FLAGS})
  target_link_options(${name} PRIVATE ${HUSK_SANITIZE_FLAGS})
  set_target_properties(${name} PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${output_dir})
endfunction()

# husk_unit_test(PATH [LINK ...] [SOURCES ...]): builds tests/unit/PATH.c (a cmocka program)
# and registers it as ctest "unit:PATH". PATH mirrors the source tree.
function(husk_unit_test path)
  cmake_parse_arguments(ARG "" "" "LINK;SOURCES" ${ARGN})
  string(REPLACE "/" "-" target "test-${path}")
  add_executable(${target} ${PROJECT_SOURCE_DIR}/tests/unit/${path}.c $<TARGET_OBJECTS:test-children> ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${ARG_LINK} PkgConfig::CMOCKA)
  target_compile_options(${target} PRIVATE ${HUSK_SANITIZE_FLAGS} -Wno-missing-prototypes)
  target_link_options(${target} PRIVATE ${HUSK_SANITIZE_FLAGS})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME unit:${path} COMMAND ${target})
  set_tests_properties(unit:${path} PROPERTIES LABELS "unit" TIMEOUT ${HUSK_UNIT_LIMIT} SKIP_RETURN_CODE 77
    # An allocation that is far too large fails, as it does without the sanitizer.
    ENVIRONMENT "HUSK_SOURCE_DIR=${PROJECT_SOURCE_DIR};ASAN_OPTIONS=allocator_may_return_null=1")
endfunction()

# husk_script_test(PATH [ARGS ...] PROGRAMS TARGET...): registers the script tests/unit/PATH.sh as ctest "unit:PATH". What it
# runs are the PROGRAMS, which the target of its name (test-PATH, as of a compiled test) builds.
function(husk_script_test path)
  cmake_parse_arguments(ARG "" "" "ARGS;PROGRAMS" ${ARGN})
  string(REPLACE "/" "-" target "test-${path}")
  add_custom_target(${target} ALL DEPENDS ${ARG_PROGRAMS})
  add_test(NAME unit:${path} COMMAND ${PROJECT_SOURCE_DIR}/tests/unit/${path}.sh ${ARG_ARGS})
  set_tests_properties(unit:${path} PROPERTIES LABELS "unit" TIMEOUT ${HUSK_UNIT_LIMIT} SKIP_RETURN_CODE 77)
endfunction()

# husk_fuzz_test(NAME [LINK ...] [SOURCES ...]): tests/fuzz/NAME.c defines LLVMFuzzerTestOneInput.
# With HUSK_FUZZ it is a libFuzzer program; without, a replayer. Either way the corpus in
# tests/fuzz/corpus/NAME is replayed as ctest "fuzz:NAME".
function(husk_fuzz_test name)
  cmake_parse_arguments(ARG "" "" "LINK;SOURCES" ${ARGN})
  set(target fuzz-${name})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  add_executable(${target} ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}.c ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${ARG_LINK})
  target_compile_options(${target} PRIVATE ${HUSK_SANITIZE_FLAGS} -Wno-missing-prototypes
                                           -Wno-missing-declarations)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(HUSK_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer ${HUSK_SANITIZE_FLAGS})
    add_test(NAME fuzz:${name} COMMAND ${target} -runs=0 ${corpus})
  else()
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/fuzz_replay.c)
    target_link_options(${target} PRIVATE ${HUSK_SANITIZE_FLAGS})
    add_test(NAME fuzz:${name} COMMAND ${target} ${corpus})
  endif()
  set_tests_properties(fuzz:${name} PROPERTIES LABELS "fuzz" TIMEOUT ${HUSK_UNIT_LIMIT})
endfunction()

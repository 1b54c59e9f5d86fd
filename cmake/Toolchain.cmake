# SPDX-License-Identifier: Apache-2.0
# Compiler settings common to every husk program.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # cleanup attribute, typeof
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

add_compile_definitions(_GNU_SOURCE HUSK_VERSION="${PROJECT_VERSION}")
add_compile_options(
  -Wall -Wextra $<$<BOOL:${HUSK_WERROR}>:-Werror>
  -Wshadow -Wconversion -Wno-sign-conversion -Wswitch-enum -Wimplicit-fallthrough
  -Wmissing-prototypes -Wstrict-prototypes -Wold-style-definition -Wmissing-declarations
  -Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla -Wnull-dereference
  -fno-strict-aliasing -fno-common -fstack-protector-strong
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)

if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wjump-misses-init
                      -Wtrampolines)
endif()
# gcc 12 sees impossible null paths when sanitizers add theirs.
if(HUSK_SANITIZE)
  add_compile_options(-Wno-null-dereference -fno-omit-frame-pointer)
endif()

if(CMAKE_BUILD_TYPE MATCHES "Rel")
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
add_link_options(-Wl,-z,relro,-z,now -Wl,--as-needed)

# Assertions document invariants of our own code and stay on in every build; untrusted input
# never reaches one.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")

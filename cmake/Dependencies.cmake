# SPDX-License-Identifier: Apache-2.0
# Libraries and why each is here: docs/decisions/0002-dependencies.md.
find_package(PkgConfig REQUIRED)
pkg_check_modules(JSONC REQUIRED IMPORTED_TARGET json-c)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(SQUASHFS REQUIRED IMPORTED_TARGET libsquashfs1)
pkg_check_modules(EXT2FS REQUIRED IMPORTED_TARGET ext2fs com_err)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(GPGME REQUIRED IMPORTED_TARGET gpgme)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(LIBNL REQUIRED IMPORTED_TARGET libnl-3.0 libnl-route-3.0)
pkg_check_modules(CAP REQUIRED IMPORTED_TARGET libcap)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(LIBVIRT IMPORTED_TARGET libvirt>=9.0 libvirt-qemu>=9.0) # optional: without it there is no --vmm=libvirt
if(HUSK_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

# husk_linked(NAME ARCHIVE): Linked::NAME is PkgConfig::NAME, but that programs (husk_program) take the archive where there is
# one: to bind a shared library's names costs more than most commands do with them (docs/decisions/0016-images-module.md).
function(husk_linked name archive)
  find_library(${name}_ARCHIVE NAMES ${archive} HINTS ${${name}_LIBRARY_DIRS})
  mark_as_advanced(${name}_ARCHIVE)
  add_library(Linked::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(Linked::${name} INTERFACE ${${name}_INCLUDE_DIRS})
  if(${name}_ARCHIVE)
    target_link_libraries(Linked::${name} INTERFACE
      $<IF:$<BOOL:$<TARGET_PROPERTY:HUSK_ARCHIVES>>,${${name}_ARCHIVE},PkgConfig::${name}>)
  else()
    target_link_libraries(Linked::${name} INTERFACE PkgConfig::${name})
  endif()
endfunction()
husk_linked(JSONC libjson-c.a)
husk_linked(NETTLE libnettle.a)
husk_linked(SECCOMP libseccomp.a)
husk_linked(CAP libcap.a)
husk_linked(PROTOBUF_C libprotobuf-c.a)

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
pkg_check_modules(LIBVIRT IMPORTED_TARGET libvirt>=9.0 libvirt-qemu>=9.0) # optional: without it there is no --vmm=libvirt
if(HUSK_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

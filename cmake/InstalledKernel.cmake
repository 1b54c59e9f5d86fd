# SPDX-License-Identifier: Apache-2.0
# Runs at the end of an installation: without a guest kernel no pod can run, which nobody should find out later.
set(husk "${CMAKE_INSTALL_PREFIX}/lib/husk")
set(there OFF)
foreach(kind small packaged)
  if(EXISTS "$ENV{DESTDIR}${husk}/kernel/${kind}/vmlinux" AND EXISTS "$ENV{DESTDIR}${husk}/kernel/${kind}/initramfs")
    set(there ON)
  endif()
endforeach()
if(NOT there)
  message(WARNING "No guest kernel is installed: no pod can run yet. Run one of\n"
    "  ${husk}/kernel-config/get packaged   (the distribution's: a download)\n"
    "  ${husk}/kernel-config/get small      (husk's own, which starts faster: compiled in some ten minutes)")
endif()

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a guest can leave on the host: files of all owners, but none that makes somebody on the host
 * another user.
 */
#ifndef STAGE1_KVM_VIRTIOFS_MODES_H
#define STAGE1_KVM_VIRTIOFS_MODES_H

#include <stdbool.h>

/*
 * From here on, and in programs executed, no file gets a set-user-ID or set-group-ID bit (EPERM),
 * whatever its owner; no capabilities or other attributes (EOPNOTSUPP); and system calls by which
 * either could be asked for unseen are not there (ENOSYS). All others go on. Gives up the chance to
 * gain privileges by execve(2). @keeps_groups: setgroups(2) says that it has worked, and does
 * nothing. 0 or -errno.
 */
int modes_forbid_set_ids(bool keeps_groups);

#endif

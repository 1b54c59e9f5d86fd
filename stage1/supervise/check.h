/* SPDX-License-Identifier: Apache-2.0 */
/* The check entrypoint of a stage1 (docs/protocol-stage1.md). */
#ifndef STAGE1_SUPERVISE_CHECK_H
#define STAGE1_SUPERVISE_CHECK_H

#include "stage1/backend.h"

/*
 * The whole program: whether run could do what these options ask for. The exit status: 0, or
 * EXIT_HUSK_FAILURE after a line on standard error that says why not.
 */
int check_options(const struct backend *backend, int argc, char **argv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run entrypoint of a stage1: reads what stage0 prepared, has the backend plan and start the
 * pod, supervises it (docs/protocol-stage1.md).
 */
#ifndef STAGE1_SUPERVISE_RUN_H
#define STAGE1_SUPERVISE_RUN_H

#include "stage1/backend.h"

/*
 * The whole program, on the pod in the working directory. Errors are told on standard error. The
 * exit status: the pod's, or EXIT_HUSK_FAILURE.
 */
int run_pod(const struct backend *backend, int argc, char **argv);

#endif

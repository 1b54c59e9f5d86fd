/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a shim, as containerd writes it: flags of Go, then one word. Pure. */
#ifndef SHIM_ARGS_H
#define SHIM_ARGS_H

#include "lib/base/err.h"

enum shim_action {
	SHIM_START,   /* make a server for a container, and say where it is */
	SHIM_DELETE,  /* clear away what a container has left */
	SHIM_VERSION, /* -v */
};

/* Borrowed from the arguments; "" for what is not said. */
struct shim_args {
	enum shim_action action;
	const char *ns, *address, *id, *bundle;
};

/* Reads the arguments behind the program's name. 0, or -EINVAL and @e. */
int shim_args_parse(char *const *args, struct shim_args *ret, struct err *e);

#endif

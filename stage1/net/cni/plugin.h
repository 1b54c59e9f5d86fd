/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and runs a CNI plugin: a program that gets a document and prints one. */
#ifndef STAGE1_NET_CNI_PLUGIN_H
#define STAGE1_NET_CNI_PLUGIN_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

#define CNI_OUTPUT_MAX ((size_t)256 * 1024) /* bytes of output: 4 times what a result may have */
#define CNI_STDERR_MAX \
	((size_t)1024) /* bytes of error output that are kept, the last: ERR_TEXT_MAX */

struct cni_plugin_run {
	const char *path; /* absolute */
	const char *type; /* argv[0] */
	const struct strv *env;
	const struct buf *input; /* for its standard input */
	int64_t timeout_ms;
	int cancel_fd; /* when it is readable, or hung up, the plugin is killed; negative: none */
};

/*
 * Looks for the plugin @type in @dirs, in their order. It is the first regular, executable file of
 * that name; nobody but us and root may be able to change it (lib/os/trusted.h). 0 and its path in
 * @out of @size bytes; -ENOENT, -EACCES (it is no program), -EPERM, -ELOOP, -ENAMETOOLONG, with @e.
 */
int cni_plugin_find(const char *type, const struct strv *dirs, char *out, size_t size,
		    struct err *e);

/*
 * Checks that a plugin is still at @path, as cni_plugin_find() would find it. 0 or errors as there.
 */
int cni_plugin_check(const char *path, struct err *e);

/*
 * Runs it to its end: in a session of its own, with no other descriptors, in "/". When it has ended
 * its process group is killed, so a process that it leaves behind needs a session of its own. @out,
 * initialised with CNI_OUTPUT_MAX, gets what it prints. 0 if it exited with 0; -ECANCELED;
 * -ETIMEDOUT; -EFBIG beyond CNI_OUTPUT_MAX; -EIO if it failed, with what it said of it; -errno. All
 * with @e, which does not name the plugin.
 */
int cni_plugin_run(const struct cni_plugin_run *run, struct buf *out, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the entrypoints of a stage1 image (lib/wire/stage1.h; docs/protocol-stage1.md).
 *
 * A stage1 is a directory with a manifest. husk knows of it what the manifest says: which interface
 * it speaks, in which version, and the paths of the entrypoints, which must stay below the
 * directory, or below its rootfs if it has one, as an extracted image has. What is said to an
 * entrypoint depends on the interface: see abi.h.
 */
#ifndef HOST_LAUNCH_STAGE1_H
#define HOST_LAUNCH_STAGE1_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/* Largest stage1 manifest; a real one has a few hundred bytes. */
#define STAGE1_MANIFEST_MAX ((size_t)64 * 1024)

/* Largest path of an entrypoint relative to the stage1 directory. */
#define STAGE1_ENTRYPOINT_MAX 255

/* Most output taken from a query entrypoint such as doctor. */
#define STAGE1_OUTPUT_MAX ((size_t)256 * 1024)

/*
 * Where stage1s are, relative to the executable, in the build tree and when installed: this and a
 * name.
 */
#define STAGE1_DIR_PREFIX  "../lib/husk/stage1-"
#define STAGE1_DEFAULT     "kvm"
#define STAGE1_DEFAULT_DIR STAGE1_DIR_PREFIX STAGE1_DEFAULT

#define STAGE1_NAME_MAX ((size_t)31) /* of letters, digits and dashes; "kvm" and "ns" are short */

/* Longest ID of an image: "sha512-" and 64 hexadecimal digits, with room. */
#define STAGE1_IMAGE_MAX ((size_t)127)

/* Whose words the entrypoints understand. */
enum stage1_abi {
	STAGE1_ABI_HUSK, /* docs/protocol-stage1.md */
	STAGE1_ABI_RKT,  /* rkt's images: what the annotations coreos.com/rkt/stage1/... name */
	STAGE1_ABI_COUNT_,
};

/* Options that a stage1 declares; that for VMs has eight. */
#define STAGE1_OPTIONS_MAX 32

#define STAGE1_OPTION_NAME_MAX ((size_t)31)  /* "scratch-size" has twelve bytes */
#define STAGE1_OPTION_ARG_MAX  ((size_t)47)  /* "auto|small|packaged|DIRECTORY" */
#define STAGE1_OPTION_HELP_MAX ((size_t)127) /* a line of a terminal, and some */

/* An option of run that only the stage1 knows: what husk tells about it, and passes on. */
struct stage1_option {
	char name[STAGE1_OPTION_NAME_MAX + 1]; /* lower-case letters, digits and dashes */
	char arg[STAGE1_OPTION_ARG_MAX + 1];   /* what stands for its value, which it always has */
	char help[STAGE1_OPTION_HELP_MAX + 1]; /* one line */
};

/* Longest path of the file, or the directory, with the changes of apps. */
#define STAGE1_CHANGES_MAX ((size_t)63)

struct stage1 {
	char image[STAGE1_IMAGE_MAX + 1]; /* the ID of the image that it came as; "": none */
	enum stage1_abi abi;
	size_t n_options;
	/* Of the pod directory; one, or none ("") if it does not say. */
	char changes_file[STAGE1_CHANGES_MAX + 1], changes_dir[STAGE1_CHANGES_MAX + 1];
	bool marks_are_user; /* overlayfs has marked directories with user.overlay.* there */
	char flavor[STAGE1_NAME_MAX + 1]; /* what its pods are made of, in a word; or "" */
	bool has_network;                 /* run takes options about networks */
	int64_t version;                  /* of the interface */
	/* From here on, nothing is written but what there is: these are many pages. */
	char dir[PATH_MAX]; /* absolute */
	struct stage1_option options[STAGE1_OPTIONS_MAX];
	char run[PATH_MAX]; /* absolute path of the run entrypoint */
	/* Absolute paths of further entrypoints; empty if this stage1 has none. */
	char check[PATH_MAX], stop[PATH_MAX], gc[PATH_MAX], enter[PATH_MAX], doctor[PATH_MAX];
	char attach[PATH_MAX], stats[PATH_MAX], update[PATH_MAX];
	char app_add[PATH_MAX], app_start[PATH_MAX], app_stop[PATH_MAX], app_rm[PATH_MAX];
	char app_update[PATH_MAX];
	char app_signal[PATH_MAX];
	char app_pause[PATH_MAX], app_resume[PATH_MAX];
};

/* A program of a stage1: its annotation in the manifest, and where in struct stage1 its path is. */
struct stage1_entrypoint {
	const char *annotation;
	size_t at;
};

/* All of them. */
extern const struct stage1_entrypoint stage1_entrypoints[];
extern const size_t stage1_n_entrypoints;

/* The path, of PATH_MAX bytes. */
const char *stage1_program(const struct stage1 *s, size_t index);

/* "husk", "rkt". */
const char *stage1_abi_name(enum stage1_abi abi);

/*
 * The absolute path of the stage1 that @which names: by the name of one that is installed beside
 * the running executable, else by its directory. NULL is STAGE1_DEFAULT. 0, or -errno and @e.
 */
int stage1_locate(const char *which, char ret[PATH_MAX], struct err *e);

/*
 * Reads the manifest of the stage1 that stage1_locate() finds for @which. Checks kind, interface
 * version and entrypoints; ret->image is empty. 0, or -errno and @e: then *ret is of no use.
 */
int stage1_open(const char *which, struct stage1 *ret, struct err *e);

/* The option @name (@len bytes) that @s declares, or NULL. */
const struct stage1_option *stage1_find_option(const struct stage1 *s, const char *name,
					       size_t len);

/*
 * Becomes the run entrypoint: changes to the pod directory @pod_fd, leaves only 0, 1, 2 and @pod_fd
 * open (not close-on-exec, announced in HUSK_LOCK_FD, or RKT_LOCK_FD) and execs it with @args after
 * its own path. Returns only on failure: -errno and @e.
 */
int stage1_exec_run(const struct stage1 *s, int pod_fd, const struct strv *args, struct err *e);

/*
 * Becomes the enter entrypoint in the pod directory @pod_fd, with the descriptors 0, 1, 2 and
 * @keep_fd, if that is another, only, and @args after its own path. Returns only on failure: -errno
 * and @e.
 */
int stage1_exec_enter(const struct stage1 *s, int pod_fd, int keep_fd, const struct strv *args,
		      struct err *e);

/* The same for the attach entrypoint. */
int stage1_exec_attach(const struct stage1 *s, int pod_fd, int keep_fd, const struct strv *args,
		       struct err *e);

/*
 * Runs the entrypoint @program, an absolute path from struct stage1, with @args in the pod
 * directory @pod_fd and waits for it. Its output is ours. 0, or -errno and @e if it cannot be run
 * or fails.
 */
int stage1_call(const char *program, int pod_fd, const struct strv *args, struct err *e);

/*
 * True if apps can be added to, started and stopped in, and removed from pods of @s while they run.
 */
bool stage1_is_mutable(const struct stage1 *s);

/*
 * Runs the entrypoint @program, an absolute path from struct stage1, with @args in the pod
 * directory @pod_fd (-EBADF: where we are) and waits for it. 0 with its exit code in *ret_code; if
 * that is not 0, @e has the last line of its standard error without its prefixes. -errno and @e if
 * it cannot be run or is killed.
 */
int stage1_ask(const char *program, int pod_fd, const struct strv *args, int *ret_code,
	       struct err *e);

/*
 * Runs the entrypoint @program, an absolute path from struct stage1, with @args (may be NULL) and
 * appends its standard output to @out; stdin is /dev/null, stderr is ours. *ret_status is as from
 * waitpid(2). 0, or -errno and @e if it cannot be started or prints more than @out holds.
 */
int stage1_query(const char *program, const struct strv *args, struct buf *out, int *ret_status,
		 struct err *e);

/* The same in the pod directory @pod_fd; @quiet: its stderr is /dev/null. */
int stage1_query_pod(const char *program, int pod_fd, const struct strv *args, bool quiet,
		     struct buf *out, int *ret_status, struct err *e);

#endif

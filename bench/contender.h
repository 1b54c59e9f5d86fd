/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a runtime is told to do something. A contender is a stage1 of husk or a peer; what suites ask
 * of it is a table of functions, so that a suite never knows whom it measures.
 *
 * Everything a contender makes is in directories of this run, and sweep() finds it again without
 * being told what was made: by listing. So it also removes what a run that was killed left behind.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <limits.h>
#include <sys/types.h>

#include "bench/command.h"
#include "bench/network.h"
#include "bench/results.h"

/* Half of PATH_MAX: there is room for what lies below, and for an option in front. */
#define SITE_PATH_MAX 2048

/* Where everything happens; the same for all contenders. */
struct site {
	struct runner *runner;
	char husk[PATH_MAX];             /* the program beside this one */
	char dir[SITE_PATH_MAX];         /* of this run: removed at its end */
	char data[SITE_PATH_MAX + 16];   /* husk's data directory, in it */
	char rootfs[SITE_PATH_MAX + 16]; /* the files of the image, in it */
	char image[128];                 /* its ID in husk's store */
	unsigned pods;                   /* most idle pods at once */
};

struct contender {
	struct column *column;
	const struct contender_ops *ops;
	const struct site *site;
	const char *const *options; /* words behind the program of a peer */
	char program[PATH_MAX];
	char dir[SITE_PATH_MAX + 16]; /* its own, in the site's */
	char stage1[PATH_MAX];        /* of husk */
	struct json_object *spec; /* of a runtime of OCI: a container as it proposes it; owned */
	const char *volume;       /* the kind of what pods have at VOLUME_TARGET; NULL: nothing */
	char source[SITE_PATH_MAX + 64]; /* what it is on the host; empty: nothing */
	struct namespaces namespaces;    /* where it is run; NAMESPACES_INIT: where we are */
};

struct contender_ops {
	/*
	 * Finds the program and what it says of itself; -ENOENT with @e if it is not there. Runs
	 * nothing that needs the image.
	 */
	int (*find)(struct contender *c, struct err *e);
	/* Makes what it needs before the first pod; may be NULL. */
	int (*prepare)(struct contender *c, struct err *e);
	/* The command that runs @words in a new pod, the @slot-th at once, in the foreground. */
	int (*run)(struct contender *c, unsigned slot, const char *const *words,
		   struct command *command, struct err *e);
	/* Starts the @slot-th pod in the background: idle, or with @for_apps one for the next. */
	int (*start)(struct contender *c, unsigned slot, bool for_apps, struct err *e);
	/* Adds an idle app to pod 0 and starts it; runs true in it; stops and removes it. */
	int (*app_add)(struct contender *c, struct err *e);
	int (*app_exec)(struct contender *c, struct err *e);
	int (*app_remove)(struct contender *c, struct err *e);
	/*
	 * Starts pod 0 in the background, on a network between it and the contender's network
	 * namespace, and has sh run @script there. @ret_ip has NETWORK_IP_SIZE bytes for its
	 * address. NULL: it is not given one.
	 */
	int (*serve)(struct contender *c, const char *script, char *ret_ip, struct err *e);
	const char *const *volumes; /* kinds that its pods can have; NULL: none */
	/* The process that the others of a pod in the background descend from. */
	int (*pid)(struct contender *c, unsigned slot, pid_t *ret, struct err *e);
	/* Ends and removes all pods. */
	int (*sweep)(struct contender *c, struct err *e);
};

/* What an idle app does: nothing, for longer than anything is measured. */
#define IDLE_PROGRAM  "sleep"
#define IDLE_ARGUMENT "100000"
#define IDLE          IDLE_PROGRAM, IDLE_ARGUMENT

/* The names that there are, each list with NULL behind it. */
extern const char *const contender_stage1s[], *const contender_peers[];

/* Prepares a contender by one of these names. */
void contender_init(struct contender *c, const char *name, const struct site *site,
		    struct column *column);

/* Gives its mount namespace up, and with it what is mounted there. */
void contender_deinit(struct contender *c);

/*
 * Finds the program of a peer, which is called as the contender, in PATH. -ENOENT with @e if it is
 * not there, -EPERM for others than root, for whom none of them does what is measured here.
 */
int contender_find_peer(struct contender *c, struct err *e);

/* The same for one that is called @name. */
int contender_find_program(struct contender *c, const char *name, struct err *e);

/* Where commands of @c are to be started: struct command has it. */
const struct namespaces *contender_namespaces(const struct contender *c);

/*
 * Gives it a mount and a network namespace that only its commands see, and has @mounts, which may
 * be NULL, mount there what it needs. When this program is gone, however it went, so are mounts,
 * interfaces and rules. 0 or -errno with @e.
 */
int contender_unshare(struct contender *c, int (*mounts)(const struct contender *c), struct err *e);

/* For that: no second control group hierarchy, which some hosts have, and crun refuses. 0. */
int contender_hide_unified(const struct contender *c);

/*
 * Makes the directories of a contender in its c->dir: "state", for what it keeps, and those of
 * contender_mount_overlay(). 0 or -errno with @e.
 */
int contender_make_dirs(const struct contender *c, struct err *e);

/*
 * For contender_unshare(): mounts the image's files at CONTENDER_ROOT, below an overlay, so that
 * one contender's writes are not another's. 0 or -errno.
 */
#define CONTENDER_ROOT "rootfs"
int contender_mount_overlay(const struct contender *c);

/* Takes the first line of what "PROGRAM --version" says. 0 or -errno with @e. */
int contender_ask_version(struct contender *c, struct err *e);

/*
 * Runs the @prefix and @words, NULL-terminated, as a contender is run. *ret_out, which may be NULL,
 * is its standard output, the caller's to free. 0 or -errno with @e.
 */
int contender_run(struct contender *c, const char *const *prefix, const char *const *words,
		  char **ret_out, struct err *e);

extern const struct contender_ops contender_husk, contender_oci, contender_podman;
extern const struct contender_ops contender_host;

#endif

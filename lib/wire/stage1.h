/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between stage0 (husk) and a stage1 image, in names. Normative text:
 * docs/protocol-stage1.md.
 *
 * A stage1 image is a directory with a "manifest" (JSON, an appc image manifest) whose annotations
 * name programs by paths relative to the directory. stage0 execs them with the pod directory as
 * working directory and knows nothing else of them.
 */
#ifndef LIB_WIRE_STAGE1_H
#define LIB_WIRE_STAGE1_H

#include <stddef.h>

#define STAGE1_INTERFACE_VERSION 2

/* Annotations of the stage1 manifest. They are this and a name, which rkt's have, too. */
#define STAGE1_ANN_PREFIX     "husk/stage1/"
#define STAGE1_RKT_ANN_PREFIX "coreos.com/rkt/stage1/"

#define STAGE1_ANN_VERSION    "husk/stage1/interface-version"
#define STAGE1_ANN_CHECK      "husk/stage1/check"
#define STAGE1_ANN_RUN        "husk/stage1/run"
#define STAGE1_ANN_STOP       "husk/stage1/stop"
#define STAGE1_ANN_GC         "husk/stage1/gc"
#define STAGE1_ANN_ENTER      "husk/stage1/enter"
#define STAGE1_ANN_ATTACH     "husk/stage1/attach"
#define STAGE1_ANN_STATS      "husk/stage1/stats"
#define STAGE1_ANN_UPDATE     "husk/stage1/update"
#define STAGE1_ANN_DOCTOR     "husk/stage1/doctor"
#define STAGE1_ANN_APP_ADD    "husk/stage1/app/add"
#define STAGE1_ANN_APP_START  "husk/stage1/app/start"
#define STAGE1_ANN_APP_STOP   "husk/stage1/app/stop"
#define STAGE1_ANN_APP_RM     "husk/stage1/app/rm"
#define STAGE1_ANN_APP_UPDATE "husk/stage1/app/update"
#define STAGE1_ANN_APP_SIGNAL "husk/stage1/app/signal"
#define STAGE1_ANN_APP_PAUSE  "husk/stage1/app/pause"
#define STAGE1_ANN_APP_RESUME "husk/stage1/app/resume"

/*
 * Not programs: what pods are made of, in a word; an option of run, with the name behind the slash;
 * the file of the pod directory, an ext4 image, in which apps' changes are, or the directory there;
 * and with which attributes overlayfs has marked directories there, if not trusted.*.
 */
#define STAGE1_ANN_FLAVOR        "husk/stage1/flavor"
#define STAGE1_ANN_OPTION        "husk/stage1/option/"
#define STAGE1_ANN_CHANGES_FILE  "husk/stage1/changes/ext4"
#define STAGE1_ANN_CHANGES_DIR   "husk/stage1/changes/dir"
#define STAGE1_ANN_CHANGES_MARKS "husk/stage1/changes/marks"
#define STAGE1_MARKS_USER        "user.overlay"

/* "true" if run takes the options below; none are passed to one that does not say so. */
#define STAGE1_ANN_NETWORK "husk/stage1/network"

/*
 * Options of run about the pod's network, without dashes, and how often each can come. Their values
 * and what their absence means: docs/protocol-stage1.md.
 */
#define STAGE1_OPT_NET        "net"
#define STAGE1_OPT_NETNS      "netns"
#define STAGE1_OPT_NET_CONFIG "net-config"
#define STAGE1_OPT_CNI_PATH   "cni-path"
#define STAGE1_OPT_DNS        "dns"
#define STAGE1_OPT_DNS_SEARCH "dns-search"
#define STAGE1_OPT_DNS_OPT    "dns-opt"
#define STAGE1_OPT_DNS_DOMAIN "dns-domain"
#define STAGE1_OPT_HOSTS      "hosts-entry"

#define STAGE1_NETS_MAX      ((size_t)6)  /* each has an interface: NET_INTERFACES_MAX */
#define STAGE1_NET_DIRS_MAX  ((size_t)3)  /* system, local, user */
#define STAGE1_CNI_PATHS_MAX ((size_t)16) /* distributions have one or two */
#define STAGE1_DNS_MAX       ((size_t)16) /* of each kind; resolvers look at 3, and 6 domains */
#define STAGE1_HOSTS_MAX     ((size_t)64) /* lines; Kubernetes' aliases are a handful */

#define STAGE1_NET_NAME_MAX 255 /* bytes: NET_INFO_NAME_MAX */
#define STAGE1_NET_ARGS_MAX \
	1023 /* bytes behind the name, which become CNI_ARGS: NET_INFO_TEXT_MAX */
#define STAGE1_DNS_TEXT_MAX 253 /* bytes of a domain (RFC 1035), of an option, of a host's name */

#define STAGE1_NET_NONE "none" /* a loopback interface and nothing else */
#define STAGE1_NET_HOST "host" /* the host's */
#define STAGE1_NET_ALL  "all"  /* all that are configured */

/* On --control of enter and attach: the number of the one process that messages are about. */
#define STAGE1_CONTROL_EXEC 1

/* The descriptor of the locked pod directory, kept open for the life of the pod. */
#define STAGE1_ENV_LOCK_FD     "HUSK_LOCK_FD"
#define STAGE1_RKT_ENV_LOCK_FD "RKT_LOCK_FD"

/*
 * The newest interface of rkt's stage1 images, as their interface-version says it; and what came
 * when.
 */
#define STAGE1_RKT_INTERFACE_VERSION 6
#define STAGE1_RKT_HAS_HOSTNAME      2
#define STAGE1_RKT_HAS_INSECURE      3 /* --disable-seccomp and the like */
#define STAGE1_RKT_HAS_DNS           4 /* --dns-conf-mode */
#define STAGE1_RKT_HAS_MUTABLE       5

/* Of a stage1 that came as an image, entrypoints are below the directory, beside the manifest. */
#define STAGE1_FILE_MANIFEST "manifest"
#define STAGE1_DIR_ROOTFS    "rootfs"

/*
 * Files of a pod directory. Written by stage0: the manifest, pod-created, stage1.json,
 * apps/NAME/rootfs (a hard link to the rendered image). Written by stage1: the others.
 */
#define POD_FILE_MANIFEST      "pod"            /* JSON, 0600 */
#define POD_FILE_MANIFEST_LOCK "pod.lck"        /* whose lock is held by who changes the manifest */
#define POD_FILE_CREATED       "pod-created"    /* its mtime is the creation time */
#define POD_FILE_STAGE1        "stage1.json"    /* which stage1 it was made with */
#define POD_FILE_NAME          "name"           /* what people call the pod; may be missing */
#define POD_FILE_PID           "pid"            /* decimal, of the supervisor; mtime: start time */
#define POD_FILE_READY         "ready"          /* empty; there once all apps have been started */
#define POD_FILE_CONSOLE       "console.log"    /* guest console, bounded */
#define POD_FILE_LOG           "supervisor.log" /* what the supervisor of a detached pod has to say */
#define POD_FILE_DISK_FULL     "disk-full" /* empty; while the host has no room for what apps write */
#define POD_FILE_SUSPENDED     "suspended"     /* empty; while somebody has stopped the whole pod */
#define POD_FILE_NET_INFO      "net-info.json" /* 0640; lib/wire/net_info.h; missing: no networks */
#define POD_DIR_APPS           "apps"
#define POD_FILE_ROOTFS        "rootfs" /* apps/NAME/rootfs */
#define POD_LINK_IMAGE         "image"  /* apps/NAME/image, a symbolic link: the image's ID */
#define POD_DIR_LOGS           "logs" /* logs/NAME: what a detached app wrote, in the CRI format */
#define POD_DIR_STATUS         "status"
/*
 * status/NAME: exit code in decimal; status/NAME-created, status/NAME-started: mtimes, when it was
 * added and last started; status/NAME-stopping: while it is being stopped on request;
 * status/NAME-deleting: it is being removed; status/NAME-oom: there if the guest's kernel killed a
 * process of the app because memory was short, before status/NAME is; so is status/NAME-reason,
 * there if a signal ended the app or there is something to say: the signal in decimal, or 0, and a
 * line for people (no room: the status is 128 and the signal); status/.NAME-reserved: becomes
 * status/NAME, so that a full disk does not swallow it.
 */
#define POD_STATUS_CREATED_SUFFIX  "-created"
#define POD_STATUS_STARTED_SUFFIX  "-started"
#define POD_STATUS_STOPPING_SUFFIX "-stopping"
#define POD_STATUS_DELETING_SUFFIX "-deleting"
#define POD_STATUS_OOM_SUFFIX      "-oom"
#define POD_STATUS_RESERVED        ".%s-reserved" /* of the name; no app's begins with a dot */
#define POD_STATUS_REASON_SUFFIX   "-reason"
#define POD_LOG_OLD_SUFFIX         ".old" /* of the part of a log before the present file */

/* Exit codes of husk and of a stage1's run entrypoint. */
#define EXIT_HUSK_FAILURE    254 /* husk itself failed */
#define EXIT_APP_NOT_EXEC    203 /* the app's program could not be executed */
#define EXIT_APP_NOT_RUNNING 5   /* of app/stop: there is nothing to stop */

#endif

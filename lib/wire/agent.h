/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the host and husk-agent, typed. Normative text: docs/protocol-agent.md.
 *
 * Sans-IO: structures to JSON bodies and back. Decoders check every field against its limit before
 * it lands in a structure; a structure that came out of a decoder satisfies all limits.
 */
#ifndef LIB_WIRE_AGENT_H
#define LIB_WIRE_AGENT_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "lib/wire/net.h"
#include "lib/wire/net_names.h"
#include "lib/wire/sysctls.h"

#define AGENT_PORT 1024 /* the one vsock port on which the agent listens */

/* Protocol versions that this build speaks: N and N-1 (there is no 0). */
#define AGENT_VERSION_MIN 1
#define AGENT_VERSION_MAX 1

/*
 * Limits of the protocol. They keep every message but app.add below FRAME_PAYLOAD_MAX; an app.add
 * whose lists are too long together is refused by frame_append().
 */
#define AGENT_SECRET_LEN      64     /* hex digits of the 32-byte pod secret */
#define AGENT_NAME_MAX        63     /* app name: an AC name, also a DNS label */
#define AGENT_HOSTNAME_MAX    64     /* of Linux */
#define AGENT_TEXT_MAX        512    /* messages for humans, version strings */
#define AGENT_PATH_MAX        4095   /* PATH_MAX of the guest without the NUL */
#define AGENT_USER_MAX        255    /* user or group: name, number or path */
#define AGENT_EXEC_MAX        65536  /* members of an exec vector */
#define AGENT_ENV_MAX         16384  /* members of an environment, which are looked up one by one */
#define AGENT_STRING_MAX      131071 /* bytes of one argument or variable, as Linux has it */
#define AGENT_APPS_MAX        32     /* apps of a pod at a time */
#define AGENT_EXECS_MAX       128    /* further processes in the apps of a pod at a time */
#define AGENT_STATS_MAX       32     /* calls of app.stats at work: as many as apps */
#define AGENT_CONNECTIONS_MAX 64     /* to ports of the pod at a time */
#define AGENT_LUN_MAX         255    /* highest LUN of the pod's SCSI target */
#define AGENT_SIGNAL_MAX      64
#define AGENT_TTY_SIZE_MAX    65535 /* rows, columns */
#define AGENT_GRACE_MS_MAX    3600000
#define AGENT_DRAIN_MS_MAX    60000
#define AGENT_GROUPS_MAX      1024 /* supplementary groups given by number */
#define AGENT_RLIMITS_MAX     16   /* resource limits; Linux has as many */
#define AGENT_PATHS_MAX       4096 /* protected ones of a kind; Kubernetes: one for each CPU */
#define AGENT_UMASK_MAX       0777
#define AGENT_CPU_MILLIS_MAX  1024000 /* more processors than any guest has */
#define AGENT_CPU_WEIGHT_MAX  10000   /* of cgroup v2 */
#define AGENT_SECCOMP_MAX     65536   /* hex digits: BPF_MAXINSNS (4096) instructions of 8 bytes */
#define AGENT_MOUNTS_MAX      64      /* volumes in the root of an app */
#define AGENT_MODE_MAX        07777   /* permissions */
#define AGENT_ID_MAX          INT64_C(4294967294) /* users, groups; one above is "no change" */

/*
 * What a program can be given with the usual limit of 8 MiB for its stack: a quarter of that for
 * arguments and environment, with a NUL and a pointer for each (execve(2)). The little that is
 * missing is for what the agent adds: the path of the program, and defaults like HOME.
 */
#define AGENT_WORD_COST 9
#define AGENT_WORDS_MAX ((size_t)(2 * 1024 * 1024 - 16 * 1024))

/*
 * What all lists of strings of a message have together as JSON, which takes up to six bytes for
 * one: twice of what a program can be given, as for a text of nothing but quotes.
 */
#define AGENT_WORDS_ENCODED_MAX ((size_t)4 * 1024 * 1024)

/* Name of a volume: room for "APP-NAME", as those are called for which an image asks. */
#define AGENT_VOLUME_NAME_MAX 127

/*
 * Where the scratch disk is, if the pod has one. The agent may mount what it finds there before
 * pod.setup says so, while the host is still dialing.
 */
#define AGENT_SCRATCH_LUN AGENT_LUN_MAX

/* Where the disks of volumes begin, behind those of apps; and how many volumes have a slot. */
#define AGENT_VOLUME_LUN   64
#define AGENT_VOLUME_SLOTS 64

/* The tag of the virtiofs device (virtio 1.2, 5.11) of a VM that has volumes of the host. */
#define AGENT_HOST_TAG "volumes"

/*
 * The directory in there in which volumes that apps have brought with them are: a directory of the
 * app's name, and in it a link for each slot, to what has the volume of all apps that brought the
 * same. That is below a directory of its own, whose name no app has.
 */
#define AGENT_HOST_APPS   "apps"
#define AGENT_HOST_SHARED "+shared"

/*
 * The capabilities of an app of which nothing else is said, as struct agent_confinement has them:
 * AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW SETFCAP SETGID
 * SETPCAP SETUID SYS_CHROOT.
 */
#define AGENT_CAPABILITIES_DEFAULT INT64_C(0xa80425fb)

/*
 * Bytes of payload of any message of the agent, less than a frame may have: the reply to
 * agent.hello has two texts, of which each byte may take six ("\u0001"), and the host keeps what
 * comes in memory.
 */
#define AGENT_REPLY_MAX 8192

/* Where the guest finds the pod secret: fw_cfg item name, and its path in sysfs. */
#define AGENT_SECRET_FW_CFG "opt/org.husk/secret"

/*
 * Method names. Host to agent: requests; AGENT_*_EXITED and AGENT_EXEC_STARTED: agent to host,
 * notifications.
 */
#define AGENT_HELLO        "agent.hello"
#define AGENT_INFO         "agent.info"
#define AGENT_ATTACH       "stream.attach"
#define AGENT_CONNECT      "stream.connect"
#define AGENT_POD_SETUP    "pod.setup"
#define AGENT_POD_CLOCK    "pod.clock"
#define AGENT_POD_SHUTDOWN "pod.shutdown"
#define AGENT_APP_ADD      "app.add"
#define AGENT_APP_START    "app.start"
#define AGENT_APP_REMOVE   "app.remove"
#define AGENT_APP_SIGNAL   "app.signal"
#define AGENT_APP_RESIZE   "app.resize"
#define AGENT_APP_STATS    "app.stats"
#define AGENT_APP_UPDATE   "app.update"
#define AGENT_APP_FREEZE   "app.freeze"
#define AGENT_APP_EXITED   "app.exited"
#define AGENT_APP_EXEC     "app.exec"
#define AGENT_EXEC_SIGNAL  "exec.signal"
#define AGENT_EXEC_RESIZE  "exec.resize"
#define AGENT_EXEC_STARTED "exec.started"
#define AGENT_EXEC_EXITED  "exec.exited"

/* Error codes of the agent, beside those of JSON-RPC. */
enum agent_error {
	AGENT_E_PARAMS = -32602,   /* a parameter is missing or beyond its limit */
	AGENT_E_METHOD = -32601,   /* no such method */
	AGENT_E_INTERNAL = -32000, /* a system call failed */
	AGENT_E_SECRET = -32001,   /* wrong pod secret, or none yet on this connection */
	AGENT_E_VERSION = -32002,  /* no common protocol version */
	AGENT_E_NO_APP = -32003,   /* no app of that name */
	AGENT_E_STATE = -32004,    /* not possible in the present state of the app or pod */
	AGENT_E_LIMIT = -32005,    /* a limit of the agent is reached */
	AGENT_E_DISK = -32006,     /* the disk is not there or cannot be mounted */
	AGENT_E_USER = -32007,     /* user or group cannot be found in the image */
};

/* agent.hello, first message of a control connection. */
struct agent_hello {
	int64_t version_min, version_max; /* what the host speaks */
	char secret[AGENT_SECRET_LEN + 1];
};

struct agent_hello_reply {
	int64_t version; /* what both will speak */
	char agent[AGENT_TEXT_MAX + 1];
	char kernel[AGENT_TEXT_MAX + 1];
};

enum agent_stream {
	AGENT_STREAM_STDIN,
	AGENT_STREAM_STDOUT,
	AGENT_STREAM_STDERR,
	AGENT_STREAM_TTY, /* both directions; the app has a terminal instead of the three */
	AGENT_STREAM_COUNT_,
};

/* stream.attach, first message of a stream connection; after the reply come raw bytes. */
struct agent_attach {
	char secret[AGENT_SECRET_LEN + 1];
	char app[AGENT_NAME_MAX + 1];
	int64_t exec; /* number of a further process in the app; 0: the app's own streams */
	enum agent_stream stream;
	bool end_stdin; /* the end of what the host sends ends a kept stdin, too */
};

/*
 * stream.connect, first message of a stream connection, which after the reply goes on as one to the
 * TCP port @port of the pod's loopback.
 */
struct agent_connect {
	char secret[AGENT_SECRET_LEN + 1];
	int64_t port;
};

/* pod.setup, once, before the first app. */
struct agent_pod_setup {
	char hostname[AGENT_HOSTNAME_MAX + 1];
	int64_t clock_ns;    /* host's CLOCK_REALTIME; 0 leaves the guest's clock alone */
	int64_t scratch_lun; /* disk for writable layers; -1: they live in memory */
	struct net *net;     /* owned: interfaces to configure; NULL: none */
	struct strv sysctls; /* to be set behind that, "NAME=VALUE" (lib/wire/sysctls.h) */
	/* Owned texts of files that apps see in place of their own; NULL: they keep those. */
	char *resolv_conf; /* at most NET_RESOLV_CONF_MAX bytes */
	char *hosts;       /* at most NET_HOSTS_TEXT_MAX bytes */
};

/* What to run in an app, and as whom. */
struct agent_process {
	struct strv exec; /* at least one member */
	struct strv env;  /* "NAME=value" */
	char cwd[AGENT_PATH_MAX + 1];
	bool cwd_is_there;              /* it is an error if not; false: then it is made */
	char user[AGENT_USER_MAX + 1];  /* "" is 0 */
	char group[AGENT_USER_MAX + 1]; /* "" is the user's primary group, or 0 */
	bool with_stdin;                /* false: /dev/null */
	bool with_tty;                  /* one terminal for all three; implies stdin */
	bool null_stdout, null_stderr;  /* /dev/null instead of a stream */
	int64_t rows, cols;             /* initial size of the terminal; 0: unknown */
};

/* What an app may do and use; the same holds for further processes in it. */
struct agent_confinement {
	int64_t capabilities; /* bounding set, bit N for capability number N */
	bool no_new_privs;
	bool read_only_root;
	bool open_paths; /* nothing of /proc and /sys is hidden or read-only */
	struct strv masked_paths, read_only_paths; /* absolute; what is not there is passed over */
	int64_t umask;                             /* -1: 022 */
	struct strv groups;    /* numbers of supplementary groups, beside those of the user */
	struct strv rlimits;   /* "NAME=SOFT:HARD", see lib/wire/rlimit.h */
	char *seccomp;         /* hex digits of an array of struct sock_filter, owned; NULL: none */
	int64_t oom_score_adj; /* -1000 to 1000 */
	int64_t memory_max;    /* bytes; this and the following: 0 is not a limit */
	int64_t cpu_millis;    /* thousandths of a processor */
	int64_t cpu_weight;    /* 1 to 10000, as cgroup v2 has it; 0: the default, 100 */
	int64_t pids_max;      /* processes and threads */
};

/* What a volume is made of. */
enum agent_volume {
	AGENT_VOLUME_EMPTY,  /* a directory on the scratch disk */
	AGENT_VOLUME_MEMORY, /* a tmpfs */
	AGENT_VOLUME_IMAGE,  /* the app's own directory at that path, which stays writable */
	AGENT_VOLUME_HOST,   /* something of the host, which serves it (AGENT_HOST_TAG) */
	AGENT_VOLUME_BLOCK,  /* a file system on a disk of its own */
	AGENT_VOLUME_COUNT_,
};

/* A volume in the root of an app. The first app that has it makes it. */
struct agent_mount {
	char volume[AGENT_VOLUME_NAME_MAX + 1];
	/*
	 * Absolute; what is missing of it is made. "/", of AGENT_VOLUME_HOST alone: the volume is
	 * the app's root directory, and its image is not used.
	 */
	char path[AGENT_PATH_MAX + 1];
	enum agent_volume kind;
	bool is_own; /* the app's, and goes with it; false: the pod's */
	bool read_only, no_exec, no_suid;
	int64_t mode, uid, gid; /* of the directory when it is made */
	int64_t size;           /* of AGENT_VOLUME_MEMORY, bytes; 0: what the kernel gives */
	/*
	 * AGENT_VOLUME_HOST: the name, in decimal, of what is served; of the app's own ones of the
	 * link to it in the app's directory (AGENT_HOST_APPS). AGENT_VOLUME_BLOCK: the disk is LUN
	 * AGENT_VOLUME_LUN and as many.
	 */
	int64_t slot;
};

/* All zero: none. */
struct agent_mounts {
	struct agent_mount *v; /* owned */
	size_t n;              /* up to AGENT_MOUNTS_MAX */
};

/* app.add: mounts the app's root and remembers what to run. */
struct agent_app_add {
	char app[AGENT_NAME_MAX + 1];
	int64_t lun;           /* read-only root file system image */
	bool keep_streams;     /* they outlive the connections that attach them */
	bool with_init;        /* process 1 is the agent's, and reaps; else it is the app */
	bool shares_processes; /* its processes and those of others that share can see each other */
	int64_t stop_signal;   /* what pod.shutdown sends it, to AGENT_SIGNAL_MAX; 0: SIGTERM */
	struct agent_process process;
	struct agent_confinement confinement;
	struct strv pre_start, post_stop; /* run as root before and after it; empty: nothing */
	struct agent_mounts mounts;       /* in this order: those above others first */
};

/* app.exec: a further process in a running app. */
struct agent_app_exec {
	char app[AGENT_NAME_MAX + 1];
	struct agent_process process;
	struct strv groups; /* as of the app, in place of its; empty: those of the app */
};

/* Reply of app.exec; and exec.started: its program is executed now. */
struct agent_exec_ref {
	int64_t exec; /* 1 to INT32_MAX, never used again in this pod */
};

struct agent_exec_signal {
	int64_t exec;
	int64_t signal; /* 1 to AGENT_SIGNAL_MAX, Linux numbers */
};

struct agent_exec_resize {
	int64_t exec;
	int64_t rows, cols;
};

/* exec.exited, sent to the connection that app.exec came on. */
struct agent_exec_exited {
	int64_t exec;
	int64_t code, signal; /* as in struct agent_app_exited */
	char message[AGENT_TEXT_MAX + 1];
};

/* app.start, app.remove and app.stats. */
struct agent_app_ref {
	char app[AGENT_NAME_MAX + 1];
};

struct agent_app_signal {
	char app[AGENT_NAME_MAX + 1];
	int64_t signal; /* 1 to AGENT_SIGNAL_MAX, Linux numbers */
	bool all;       /* each process of the app; false: its main process */
};

/* app.freeze: whether the processes of the app stand still. */
struct agent_app_freeze {
	char app[AGENT_NAME_MAX + 1];
	bool frozen;
};

struct agent_app_resize {
	char app[AGENT_NAME_MAX + 1];
	int64_t rows, cols;
};

/*
 * app.update: what an app may use from now on. The numbers are those of struct agent_confinement.
 */
struct agent_app_update {
	char app[AGENT_NAME_MAX + 1];
	int64_t memory_max, cpu_millis, cpu_weight, pids_max;
};

/* pod.clock: the pod's time of day was stopped, or the host's was set. */
struct agent_pod_clock {
	int64_t clock_ns; /* host's CLOCK_REALTIME */
};

/*
 * pod.shutdown: its signal to each app, SIGKILL after the grace period, seal the scratch disk, wait
 * at most the time to drain until attached outputs were read, reply.
 */
struct agent_pod_shutdown {
	int64_t grace_ms;
	int64_t drain_ms;
};

/* app.exited, sent to every control connection. */
struct agent_app_exited {
	char app[AGENT_NAME_MAX + 1];
	int64_t code;   /* exit code, 0 to 255; 203 if the program could not be executed */
	int64_t signal; /* 0, or the signal that ended it (code is then 0) */
	bool oom;       /* the kernel killed a process of the app because memory was short */
	char message[AGENT_TEXT_MAX + 1]; /* why it could not be started; else empty */
};

/*
 * Reply of app.stats: what the app's control group counts, since the app was last started. -1: the
 * guest's kernel does not count it; of a limit: there is none. The host counts pods so, too.
 */
struct agent_app_stats {
	int64_t cpu_usec, user_usec, system_usec; /* processor time, in microseconds */
	int64_t throttled_usec;                   /* time that cpu_millis has made it wait */
	int64_t memory_bytes, memory_peak_bytes, memory_limit;
	int64_t pids, pids_limit;              /* processes and threads */
	int64_t io_read_bytes, io_write_bytes; /* from and to disks */
	int64_t oom_kills;                     /* processes killed because memory was short */
	int64_t cpu_limit_millis;              /* thousandths of a processor */
	/*
	 * Parts of memory_bytes: anonymous memory, the cache of files, of that what is not in use.
	 */
	int64_t memory_anon_bytes, memory_file_bytes, memory_inactive_file_bytes;
	int64_t page_faults, major_page_faults;
};

#define AGENT_APP_STATS_NONE                                                                       \
	((struct agent_app_stats){ -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, \
				   -1, -1 })

/* Reply of agent.info. */
struct agent_info {
	int64_t rss_kib;   /* resident memory of the agent */
	int64_t uptime_ms; /* since the guest kernel started */
	int64_t init_ms;   /* uptime at the agent's first instruction */
	/* Of the guest's memory: bytes of all, used for nothing, and to be had; -1: not counted. */
	int64_t memory_total, memory_free, memory_available;
	int64_t cpus; /* of the guest, in use; -1 likewise */
};

/*
 * X_encode() yields a new JSON body in *ret (0, -ENOMEM, or -EILSEQ for a string that is not UTF-8;
 * in texts for people such bytes become '?'). X_decode() fills *ret (0, -EBADMSG for a missing,
 * mistyped or oversized field or a NULL @body, -ENOMEM); in texts for people '?' replaces what
 * str_make_printable() does. Only structures with a deinit function own memory.
 */
int agent_hello_encode(const struct agent_hello *m, struct json_object **ret);
int agent_hello_decode(struct json_object *body, struct agent_hello *ret);
int agent_hello_reply_encode(const struct agent_hello_reply *m, struct json_object **ret);
int agent_hello_reply_decode(struct json_object *body, struct agent_hello_reply *ret);
int agent_attach_encode(const struct agent_attach *m, struct json_object **ret);
int agent_attach_decode(struct json_object *body, struct agent_attach *ret);
int agent_connect_encode(const struct agent_connect *m, struct json_object **ret);
int agent_connect_decode(struct json_object *body, struct agent_connect *ret);
int agent_pod_setup_encode(const struct agent_pod_setup *m, struct json_object **ret);
int agent_pod_setup_decode(struct json_object *body, struct agent_pod_setup *ret);
int agent_app_add_encode(const struct agent_app_add *m, struct json_object **ret);
int agent_app_add_decode(struct json_object *body, struct agent_app_add *ret);
int agent_app_ref_encode(const struct agent_app_ref *m, struct json_object **ret);
int agent_app_ref_decode(struct json_object *body, struct agent_app_ref *ret);
int agent_app_signal_encode(const struct agent_app_signal *m, struct json_object **ret);
int agent_app_signal_decode(struct json_object *body, struct agent_app_signal *ret);
int agent_app_resize_encode(const struct agent_app_resize *m, struct json_object **ret);
int agent_app_resize_decode(struct json_object *body, struct agent_app_resize *ret);
int agent_app_freeze_encode(const struct agent_app_freeze *m, struct json_object **ret);
int agent_app_freeze_decode(struct json_object *body, struct agent_app_freeze *ret);
int agent_app_update_encode(const struct agent_app_update *m, struct json_object **ret);
int agent_app_update_decode(struct json_object *body, struct agent_app_update *ret);
int agent_pod_clock_encode(const struct agent_pod_clock *m, struct json_object **ret);
int agent_pod_clock_decode(struct json_object *body, struct agent_pod_clock *ret);
int agent_pod_shutdown_encode(const struct agent_pod_shutdown *m, struct json_object **ret);
int agent_pod_shutdown_decode(struct json_object *body, struct agent_pod_shutdown *ret);
int agent_app_exited_encode(const struct agent_app_exited *m, struct json_object **ret);
int agent_app_exited_decode(struct json_object *body, struct agent_app_exited *ret);
int agent_app_exec_encode(const struct agent_app_exec *m, struct json_object **ret);
int agent_app_exec_decode(struct json_object *body, struct agent_app_exec *ret);
int agent_exec_ref_encode(const struct agent_exec_ref *m, struct json_object **ret);
int agent_exec_ref_decode(struct json_object *body, struct agent_exec_ref *ret);
int agent_exec_signal_encode(const struct agent_exec_signal *m, struct json_object **ret);
int agent_exec_signal_decode(struct json_object *body, struct agent_exec_signal *ret);
int agent_exec_resize_encode(const struct agent_exec_resize *m, struct json_object **ret);
int agent_exec_resize_decode(struct json_object *body, struct agent_exec_resize *ret);
int agent_exec_exited_encode(const struct agent_exec_exited *m, struct json_object **ret);
int agent_exec_exited_decode(struct json_object *body, struct agent_exec_exited *ret);
int agent_app_stats_encode(const struct agent_app_stats *m, struct json_object **ret);
int agent_app_stats_decode(struct json_object *body, struct agent_app_stats *ret);
int agent_info_encode(const struct agent_info *m, struct json_object **ret);
int agent_info_decode(struct json_object *body, struct agent_info *ret);

/* How much @words take of AGENT_WORDS_MAX. */
size_t agent_words_size(const struct strv *words);

/* Prepare the lists of @m for filling; everything else becomes zero. */
void agent_pod_setup_init(struct agent_pod_setup *m);
void agent_process_init(struct agent_process *m);
void agent_confinement_init(struct agent_confinement *m);
void agent_app_add_init(struct agent_app_add *m);
void agent_app_exec_init(struct agent_app_exec *m);

/* Adds a copy of @mount. 0, -E2BIG, -ENOMEM. */
int agent_mounts_add(struct agent_mounts *m, const struct agent_mount *mount);

/* The one that is the root directory, borrowed; NULL: none is. */
const struct agent_mount *agent_mounts_root(const struct agent_mounts *m);

/* Whether @m is that one. */
bool agent_mount_is_root(const struct agent_mount *m);

/* Free what @m holds. Accept NULL. */
void agent_pod_setup_deinit(struct agent_pod_setup *m);
void agent_process_deinit(struct agent_process *m);
void agent_confinement_deinit(struct agent_confinement *m);
void agent_app_add_deinit(struct agent_app_add *m);
void agent_app_exec_deinit(struct agent_app_exec *m);

/* "stdin", "stdout", "stderr", "tty". */
const char *agent_stream_name(enum agent_stream stream);

/*
 * The protocol version to speak with a peer that speaks @min to @max, or -EPROTONOSUPPORT.
 */
int agent_choose_version(int64_t min, int64_t max);

/* True if @s is a name of a volume: the same with at most AGENT_VOLUME_NAME_MAX bytes. */
bool agent_volume_is_valid(const char *s);

/* True if @s is an app name: 1 to AGENT_NAME_MAX of [a-z0-9-], no dash at either end. */
bool agent_name_is_valid(const char *s);

#endif

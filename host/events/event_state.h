/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a pod looks like to what has happened to it: compares what was seen of a pod with what
 * was told before and yields the events in between. Pure: no descriptor, no clock. event_state.c
 * has the rules.
 */
#ifndef HOST_EVENTS_EVENT_STATE_H
#define HOST_EVENTS_EVENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/pod/info.h"
#include "host/pod/name.h"
#include "host/pod/pod.h"
#include "lib/wire/agent.h"
#include "lib/wire/net.h"

/*
 * Apps of one pod that are told about: all that a pod has at a time, and as many that just left it.
 */
#define POD_SEEN_APPS_MAX ((size_t)2 * AGENT_APPS_MAX)

/*
 * In the order in which they happen to a pod; those of apps happen between "started" and "exited".
 */
enum pod_event_kind {
	POD_EVENT_CREATED,   /* complete, with its manifest */
	POD_EVENT_PREPARED,  /* waits to be run */
	POD_EVENT_STARTED,   /* has a supervisor */
	POD_EVENT_READY,     /* all apps have been started */
	POD_EVENT_DISK_FULL, /* the host has no room for what its apps write; they get errors */
	POD_EVENT_DISK_ROOM, /* it has again */
	POD_EVENT_SUSPENDED, /* somebody has stopped the whole pod for a while */
	POD_EVENT_RESUMED,   /* it goes on */
	POD_EVENT_EXITED,    /* the supervisor is gone; exit codes are final */
	POD_EVENT_MARKED,    /* will be deleted when the grace period is over */
	POD_EVENT_REMOVED,   /* deleted, or given up before it ran */
	POD_EVENT_APP_CREATED,
	POD_EVENT_APP_STARTED,
	POD_EVENT_APP_OOM,     /* the kernel ended it because memory was short; "exited" follows */
	POD_EVENT_APP_EXITED,  /* without exit code if its pod ended without telling one */
	POD_EVENT_APP_REMOVED, /* taken out of a pod that goes on */
	POD_EVENT_KIND_COUNT_,
};

/* Addresses of a pod in one text, with blanks between them. */
#define POD_IPS_MAX ((size_t)NET_INTERFACES_MAX * NET_ADDRESSES_MAX * (NET_IP_TEXT_MAX + 1))

struct pod_event {
	enum pod_event_kind kind;
	int64_t time_ns;      /* CLOCK_REALTIME */
	const char *pod_name; /* "": the pod has none; borrowed from struct pod_told */
	const char *
		ips; /* of "ready": the pod's addresses; else NULL; borrowed from struct pod_seen */
	char app[AGENT_NAME_MAX + 1]; /* empty if it is the pod's event */
	bool has_exit_code;
	int exit_code;
	enum app_end end; /* APP_END_NONE without exit code */
	int signal;       /* that ended it, 0: none */
	int64_t order;    /* what the batch is sorted by */
};

/* What one change of an app can mean at most: the end of two runs, a removal, two new lives. */
#define APP_EVENTS_MAX ((size_t)8)

/*
 * What one look at a pod can yield at most: apps that were there before and others that are there
 * now.
 */
#define POD_EVENTS_MAX (POD_EVENT_APP_CREATED + APP_EVENTS_MAX * 2 * POD_SEEN_APPS_MAX)

struct pod_event_batch {
	struct pod_event v[POD_EVENTS_MAX];
	size_t n;
};

/* The status files of an app: their times, 0 for those that are not there. */
struct app_seen {
	char name[AGENT_NAME_MAX + 1];
	int64_t created_ns;
	int64_t started_ns;
	int64_t oom_ns;
	int64_t exited_ns;
	int exit_code;
	enum app_end end; /* of the run that has exited */
	int signal;
};

/* One look at a pod. Times are CLOCK_REALTIME, 0 if unknown. */
struct pod_seen {
	unsigned int phases; /* bit set: where it is, and where it has been since the last look */
	bool there;          /* else it is in none of the phases that users address */
	bool over;           /* it ran, and nobody holds its lock */
	int64_t now_ns;
	int64_t created_ns;
	int64_t moved_ns;     /* when it came where it is; exact for prepared and exited-garbage */
	int64_t changed_ns;   /* the last change in its directory */
	int64_t started_ns;   /* 0: there is no supervisor yet */
	int64_t ready_ns;     /* 0: it has not come so far */
	int64_t full_ns;      /* since when the host has no room for it; 0: it has */
	int64_t suspended_ns; /* since when it is stopped; 0: it goes */
	char name[POD_NAME_MAX + 1];
	char ips[POD_IPS_MAX + 1]; /* what it is reached at, once it is ready; "": nothing */
	struct app_seen apps[POD_SEEN_APPS_MAX];
	size_t n_apps;
};

/* An app that was told about. */
struct app_told {
	struct app_seen seen;
	bool running; /* its last start was told, and no end since */
};

/* What was told about one pod. All zero: nothing. */
struct pod_told {
	unsigned int kinds; /* bit set of the pod's own events that were told */
	bool looked;        /* the pod was looked at before, so news are new */
	bool ran;
	int64_t full_ns;      /* of the last "disk-full" that no "disk-room" followed, else 0 */
	int64_t suspended_ns; /* likewise, "suspended" and "resumed" */
	char name[POD_NAME_MAX + 1]; /* of the pod, known since somebody looked; "": none */
	struct app_told *apps;       /* owned; dropped at the end of the pod */
	size_t n_apps;
};

/* Accepts NULL and one that is all zero. */
void pod_told_deinit(struct pod_told *t);

/*
 * The app @name among those seen, added if it is new; NULL if there are POD_SEEN_APPS_MAX others.
 */
struct app_seen *pod_seen_app(struct pod_seen *s, const char *name);

/*
 * Puts into @ret what happened to the pod between what @t says and what @s shows, in order, and
 * notes in @t that it was told. 0, or -ENOMEM: nothing is noted.
 */
int pod_told_update(struct pod_told *t, const struct pod_seen *s, struct pod_event_batch *ret);

/* "created", "prepared", ...: pods and apps have the same words. */
const char *pod_event_name(enum pod_event_kind kind);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a host has control groups of version 2, of version 1, or both. The top is
 * where groups can be made: for root the root of each hierarchy, since services of the host are
 * children of that as well; for others the group that this process is in, of version 2 only, if the
 * host has made it theirs. Below it is "husk", below that a group for each pod, below that what the
 * pod makes of it.
 *
 * Nothing is kept about a group but its place, so that whoever knows the pod's UUID can kill and
 * remove it, whatever has become of its supervisor. The group of another process of the same user
 * may have been the top, so for others than root the tree is searched for the pod. Where somebody
 * has chosen a parent, that is the top, in those trees that have it; only then it has to be known.
 * A parent of the pod's own is to account for the pod as a whole. So its supervisor is there, too,
 * but beside the pod's group, where the kernel may kill all: which is why that parent is removed by
 * whoever cleans up after the supervisor. What it has started may outlive it there, the daemon of a
 * plugin of networks for one, and is killed then.
 *
 * "husk" goes with the last pod. Another pod may be about to make its group in there: it begins
 * again if "husk" has gone, as often as other pods have just ended.
 *
 * What is in the group is hostile: it may fork while it is killed, and where a program of the pod
 * is root and sees the group it may have made groups below, in any depth and number. So what waits
 * is bounded by time, and what looks at each of them by depth; removing ends when none is left, as
 * nobody makes more.
 */
#include "stage1/pod/pod_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/cgroup/cgroup_file.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "stage1/pod/cgroup_parent.h"
#include "stage1/pod/device_filter.h"

#define PARENT     "husk"        /* of the groups of all pods */
#define SUPERVISOR "-supervisor" /* behind the UUID: the group beside the pod's */
#define NAME_SIZE  (UUID_TEXT_LEN + sizeof(SUPERVISOR))

#define MOUNTINFO_MAX (4 << 20) /* 100,000 mounts are the kernel's limit; 40 bytes of each */
#define OWN_MAX       65536     /* /proc/PID/cgroup: a line for each of 13 hierarchies */
#define PROCS_MAX     4096      /* bytes of a list of processes that are killed in one go */
#define DEPTH_MAX     64 /* levels below the pod's group that are killed: a descriptor for each */
#define SEARCH_DEPTH  16 /* levels down to the group of a user's process */
#define SEARCH_MAX    65536 /* groups that are looked into */
#define MAKE_TRIES    16    /* pods that end while another begins */
#define WAIT_NS       (10 * NS_PER_SEC)
#define WAIT_STEP_MS  5

/* The directory, or -errno. */
static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Whether it is the directory of a group. */
static bool is_group(const struct dirent *d)
{
	return d->d_type == DT_DIR && d->d_name[0] != '.';
}

/* --- the tops --- */

struct tops {
	int fds[CGROUP_KINDS];
};

#define TOPS_INIT \
	((struct tops){ .fds = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })
_Static_assert(CGROUP_KINDS == 7, "as many as are initialised");

static void close_all(int fds[CGROUP_KINDS])
{
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		fds[kind] = fd_close(fds[kind]);
}

static void tops_deinit(struct tops *t)
{
	close_all(t->fds);
}

static bool is_root(void)
{
	return geteuid() == 0;
}

static int read_mounts(struct cgroup_mounts *ret, struct err *e)
{
	size_t len;
	cleanup_free char *text = NULL;
	int r = file_read_path("/proc/self/mountinfo", MOUNTINFO_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "control groups: /proc/self/mountinfo");
	cgroup_mounts_find(text, ret);
	return 0;
}

/* The mounted tree, unless another file system has been mounted over it. -EBADF, or -errno. */
static int open_root(const struct cgroup_mounts *mounts, int kind)
{
	struct statfs st;
	const long magic = kind == CGROUP_UNIFIED ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC;
	if (!mounts->at[kind].path[0])
		return -EBADF;
	cleanup_fd int fd = open_dir(AT_FDCWD, mounts->at[kind].path);
	if (fd < 0)
		return fd == -ENOENT ? -EBADF : fd;
	return fstatfs(fd, &st) == 0 && st.f_type == magic ? TAKE_FD(fd) : -EBADF;
}

/* All, or without privileges that of version 2 alone. */
static int open_roots(const struct cgroup_mounts *mounts, struct tops *ret, struct err *e)
{
	int n = is_root() ? CGROUP_KINDS : CGROUP_UNIFIED + 1;
	for (int kind = 0; kind < n; kind++) {
		ret->fds[kind] = open_root(mounts, kind);
		if (ret->fds[kind] < 0 && ret->fds[kind] != -EBADF)
			return err_sys(e, ret->fds[kind], "control groups: %s",
				       mounts->at[kind].path);
	}
	return 0;
}

static int find_roots(struct tops *ret, struct err *e)
{
	cleanup_free struct cgroup_mounts *mounts = malloc(sizeof(*mounts));
	int r = mounts ? read_mounts(mounts, e) : err_sys(e, -ENOMEM, "control groups");
	return r == 0 ? open_roots(mounts, ret, e) : r;
}

/* The group of this process, as far as there is one. 0 or -errno. */
static int open_own(const struct cgroup_mounts *mounts, struct tops *ret)
{
	char path[2 * CGROUP_PATH_MAX];
	size_t len;
	cleanup_free char *text = NULL;
	int r = file_read_path("/proc/self/cgroup", OWN_MAX, &text, &len);
	if (r == 0)
		r = cgroup_mounts_own(&mounts->at[CGROUP_UNIFIED], text, path, sizeof(path));
	if (r < 0)
		return r;
	ret->fds[CGROUP_UNIFIED] = open_dir(AT_FDCWD, path);
	return ret->fds[CGROUP_UNIFIED] < 0 ? ret->fds[CGROUP_UNIFIED] : 0;
}

/*
 * Goes down to @parent, in those of the trees that have it; with @uuid not where that pod's group
 * is above: a parent can be made where there was none. How many have it, or -errno with @e.
 */
static int go_down(struct tops *t, const char *parent, const char *uuid, struct err *e)
{
	int n = 0;
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		char below[sizeof(PARENT) + UUID_TEXT_LEN + 1];
		if (t->fds[kind] < 0)
			continue;
		snprintf(below, sizeof(below), PARENT "/%s", uuid ? uuid : "");
		if (uuid && faccessat(t->fds[kind], below, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		cleanup_fd int fd = path_open_beneath(t->fds[kind], parent, O_DIRECTORY, 0);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return err_sys(e, fd, "control group \"/%s\"", parent);
		fd_replace(&t->fds[kind], TAKE_FD(fd));
		n++;
	}
	return n;
}

static int open_tops(const char *parent, struct tops *ret, struct err *e)
{
	cleanup_free struct cgroup_mounts *mounts = malloc(sizeof(*mounts));
	if (!mounts)
		return err_sys(e, -ENOMEM, "control groups");
	int r = read_mounts(mounts, e);
	if (r == 0 && (*parent || is_root()))
		r = open_roots(mounts, ret, e);
	else if (r == 0)
		open_own(mounts, ret);
	if (r < 0 || !*parent)
		return r;
	r = go_down(ret, parent, NULL, e);
	return r == 0 ? err_set(e, -ENOENT,
				"there is no control group \"/%s\" that this pod's could be in (make "
				"it first; paths begin at the top of a tree)",
				parent)
		      : MIN(r, 0);
}

/* --- making --- */

/*
 * The top of the tree may have processes and enable controllers. Elsewhere the kernel refuses that,
 * or, for controllers of threads, makes the group one in whose children no process can be.
 */
static bool can_enable(int dir)
{
	char byte;
	cleanup_fd int procs = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	bool is_empty = procs >= 0 && read(procs, &byte, 1) == 0;
	return is_empty || faccessat(dir, "cgroup.type", F_OK, 0) < 0;
}

/* As far as can be: what is missing is not limited, which the agent says when it is asked to. */
static void enable_controllers(int dir)
{
	static const char *const wanted[] = { "+memory", "+pids", "+cpu", "+io" };
	if (!can_enable(dir))
		return;
	if (cgroup_file_write(dir, "cgroup.subtree_control", "+memory +pids +cpu +io") == 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		cgroup_file_write(dir, "cgroup.subtree_control", wanted[i]);
}

static int make_dir(int dir, const char *name)
{
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return open_dir(dir, name);
}

static int make_once(int top, bool is_v2, const char *name)
{
	cleanup_fd int parent = make_dir(top, PARENT);
	if (parent < 0)
		return parent;
	if (is_v2) {
		enable_controllers(top);
		enable_controllers(parent);
	}
	return make_dir(parent, name);
}

/* The group @name in "husk", or -errno. */
static int make_group(int top, bool is_v2, const char *name)
{
	int r = -ENOENT;
	for (int i = 0; r == -ENOENT && i < MAKE_TRIES; i++)
		r = make_once(top, is_v2, name);
	return r;
}

/* Who has chosen where it is to be does not go on without. */
static int make_failed(const struct pod_cgroup *g, int kind, int err, struct err *e)
{
	bool denied = (err == -EACCES || err == -EPERM || err == -EROFS) && !g->parent[0];
	if (denied && !is_root())
		err_set(e, err,
			"pod %s: this user may make no control group (run it in a group "
			"that is delegated: systemd-run --user --scope -p Delegate=yes)",
			g->uuid);
	else
		err_sys(e, err, "pod %s: cannot make a control group in \"%s\", \"/%s\"", g->uuid,
			cgroup_kind_name((enum cgroup_kind)kind), g->parent);
	return denied ? POD_CGROUP_E_NONE : err;
}

static int make_groups(const struct tops *tops, struct pod_cgroup *g, struct err *e)
{
	bool any = false;
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		if (tops->fds[kind] < 0)
			continue;
		g->fds[kind] = make_group(tops->fds[kind], kind == CGROUP_UNIFIED, g->uuid);
		if (g->fds[kind] < 0)
			return make_failed(g, kind, g->fds[kind], e);
		any = true;
	}
	if (any)
		return 0;
	err_set(e, -ENOENT, "pod %s: no control groups are mounted that %s (mount cgroup2)",
		g->uuid, is_root() ? "could be used" : "this user's processes are in");
	return POD_CGROUP_E_NONE;
}

/* The names of a group, which are checked. */
static int name_group(struct pod_cgroup *g, const char *uuid, const char *parent, struct err *e)
{
	if (!uuid_is_valid(uuid))
		return err_set(e, -EINVAL, "control group: \"%s\" is no UUID", uuid);
	str_copy(g->uuid, sizeof(g->uuid), uuid);
	int r = str_copy(g->parent, sizeof(g->parent), parent);
	return r < 0 ? err_sys(e, r, "control group \"/%.80s...\"", parent) : 0;
}

int pod_cgroup_make(const char *uuid, const char *parent, struct pod_cgroup *ret, struct err *e)
{
	CLEANUP(tops_deinit) struct tops tops = TOPS_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	int r = name_group(&g, uuid, parent, e);
	if (r == 0)
		r = open_tops(parent, &tops, e);
	if (r < 0)
		return r;
	r = make_groups(&tops, &g, e);
	if (r != 0) {
		pod_cgroup_remove(uuid, parent, NULL);
		return r;
	}
	*ret = g;
	g = POD_CGROUP_INIT;
	return 0;
}

void pod_cgroup_deinit(struct pod_cgroup *g)
{
	close_all(g->fds);
}

/* --- a parent of the pod's own --- */

/* Its path, and the two parts of it. */
struct own {
	char path[CGROUP_PATH_MAX];
	const char *above, *name;
};

static void split_own(struct own *o, const char *parent)
{
	str_copy(o->path, sizeof(o->path), parent);
	o->path[strlen(o->path) - 1] = '\0';
	char *slash = strrchr(o->path, '/');
	o->above = slash ? o->path : ".";
	o->name = slash ? slash + 1 : o->path;
	if (slash)
		*slash = '\0';
}

/*
 * Beside hierarchies of version 1 the tree of version 2 counts nothing, and who makes and removes
 * what is above, a kubelet, may leave it out: then it is left out here, too.
 */
static bool is_wanted(const struct tops *roots, int kind, const struct own *o)
{
	bool counts = kind != CGROUP_UNIFIED ||
		      (roots->fds[CGROUP_MEMORY] < 0 && roots->fds[CGROUP_PIDS] < 0);
	if (roots->fds[kind] < 0 || counts)
		return roots->fds[kind] >= 0;
	cleanup_fd int above =
		path_open_beneath(roots->fds[kind], o->above, O_PATH | O_DIRECTORY, 0);
	return above >= 0;
}

/* The group @path below @top, made as far as it is missing, or -errno. */
static int make_path(int top, bool is_v2, const char *path)
{
	char name[NAME_MAX + 1];
	cleanup_fd int dir = open_dir(top, ".");
	for (size_t n; dir >= 0 && *path; path += n + strspn(path + n, "/")) {
		n = strcspn(path, "/");
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		if (is_v2 && faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			enable_controllers(dir);
		fd_replace(&dir, make_dir(dir, name));
	}
	return dir < 0 ? dir : TAKE_FD(dir);
}

/* Puts this process into the group @name in @parent, which another pod of it may just remove. */
static int join(int top, bool is_v2, const char *parent, const char *name)
{
	int r = -ENOENT;
	for (int i = 0; (r == -ENOENT || r == -ENODEV) && i < MAKE_TRIES; i++) {
		cleanup_fd int own = make_path(top, is_v2, parent);
		cleanup_fd int group = own < 0 ? own : make_once(own, is_v2, name);
		r = group < 0 ? group : cgroup_file_write(group, "cgroup.procs", "0");
	}
	return r;
}

int pod_cgroup_supervise(const char *uuid, const char *parent, struct err *e)
{
	struct own own;
	char name[NAME_SIZE];
	CLEANUP(tops_deinit) struct tops roots = TOPS_INIT;
	split_own(&own, parent);
	snprintf(name, sizeof(name), "%s" SUPERVISOR, uuid);
	int r = find_roots(&roots, e);
	for (int kind = 0; r == 0 && kind < CGROUP_KINDS; kind++) {
		if (!is_wanted(&roots, kind, &own))
			continue;
		r = join(roots.fds[kind], kind == CGROUP_UNIFIED, parent, name);
		if (r < 0)
			err_set(e, r,
				"supervisor of pod %s: cannot make control group \"/%.*s\" in \"%s\": "
				"%s (%s)",
				uuid, (int)strlen(parent) - 1, parent,
				cgroup_kind_name((enum cgroup_kind)kind), strerror(-r),
				is_root() ? "option \"cgroup-parent\" of the stage1 names another "
					    "one, \"/\" that of all pods"
					  : "run husk as root, or without --cgroup-parent");
	}
	return r;
}

/* --- finding --- */

/* What is left to look into. */
struct search {
	const char *uuid;
	int left;
};

static int search(int dir, int depth, struct search *s);

static int search_children(int dir, int depth, struct search *s)
{
	int found = -ENOENT;
	cleanup_dir DIR *d = fd_list_dir(dir);
	for (struct dirent *de; d && found < 0 && s->left > 0 && (de = readdir(d));) {
		if (!is_group(de))
			continue;
		s->left--;
		cleanup_fd int child = open_dir(dir, de->d_name);
		if (child >= 0)
			found = search(child, depth - 1, s);
	}
	return found;
}

/* The directory "husk" below @dir with the pod's group in it, which is this user's; or -ENOENT. */
static int search(int dir, int depth, struct search *s)
{
	char path[sizeof(PARENT) + UUID_TEXT_LEN + 1];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", PARENT, s->uuid);
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid())
		return open_dir(dir, PARENT);
	return depth > 0 ? search_children(dir, depth, s) : -ENOENT;
}

/* Opens @name, which may be missing, in each of @in. 0 or -errno with @e. */
static int open_in_each(const int in[CGROUP_KINDS], const char *name, const char *uuid,
			int ret[CGROUP_KINDS], struct err *e)
{
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		int fd = in[kind] < 0 ? -ENOENT : open_dir(in[kind], name);
		if (fd < 0 && fd != -ENOENT)
			return err_sys(e, fd, "pod %s: cannot open its control group in \"%s\"",
				       uuid, cgroup_kind_name((enum cgroup_kind)kind));
		ret[kind] = fd < 0 ? -EBADF : fd;
	}
	return 0;
}

/* The directories "husk", in all of which may be the pod's group. */
static int open_parents(const char *uuid, const char *parent, struct tops *ret, struct err *e)
{
	CLEANUP(tops_deinit) struct tops tops = TOPS_INIT;
	int r = find_roots(&tops, e);
	if (r == 0 && *parent)
		r = go_down(&tops, parent, uuid, e);
	if (r < 0 || is_root() || *parent)
		return r < 0 ? r : open_in_each(tops.fds, PARENT, uuid, ret->fds, e);
	struct search s = { uuid, SEARCH_MAX };
	if (tops.fds[CGROUP_UNIFIED] >= 0)
		ret->fds[CGROUP_UNIFIED] = search(tops.fds[CGROUP_UNIFIED], SEARCH_DEPTH, &s);
	return 0;
}

/* With @suffix behind the UUID in the group's name. */
static int open_group(const char *uuid, const char *suffix, const char *parent,
		      struct pod_cgroup *ret, struct err *e)
{
	char name[NAME_SIZE];
	CLEANUP(tops_deinit) struct tops parents = TOPS_INIT;
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	int r = name_group(&g, uuid, parent, e);
	snprintf(name, sizeof(name), "%s%s", g.uuid, suffix);
	if (r == 0)
		r = open_parents(uuid, parent, &parents, e);
	if (r == 0)
		r = open_in_each(parents.fds, name, uuid, g.fds, e);
	if (r < 0)
		return r;
	*ret = g;
	g = POD_CGROUP_INIT;
	return 0;
}

int pod_cgroup_open(const char *uuid, const char *parent, struct pod_cgroup *ret, struct err *e)
{
	return open_group(uuid, "", parent, ret, e);
}

int pod_cgroup_reopen(const struct pod_cgroup *g, struct pod_cgroup *ret, struct err *e)
{
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup again = POD_CGROUP_INIT;
	str_copy(again.uuid, sizeof(again.uuid), g->uuid);
	str_copy(again.parent, sizeof(again.parent), g->parent);
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		char self[32], path[2 * CGROUP_PATH_MAX];
		if (g->fds[kind] < 0)
			continue;
		snprintf(self, sizeof(self), "/proc/self/fd/%d", g->fds[kind]);
		ssize_t len = readlink(self, path, sizeof(path) - 1);
		path[MAX(len, 0)] = '\0';
		again.fds[kind] = len < 0 ? -errno : open_dir(AT_FDCWD, path);
		if (again.fds[kind] == -ENOENT) /* in a chroot(2) the path is another one */
			return pod_cgroup_open(g->uuid, g->parent, ret, e);
		if (again.fds[kind] < 0)
			return err_sys(e, again.fds[kind], "pod %s: its group in \"%s\"", g->uuid,
				       cgroup_kind_name((enum cgroup_kind)kind));
	}
	*ret = again;
	again = POD_CGROUP_INIT;
	return 0;
}

/* --- using --- */

bool pod_cgroup_is_there(const struct pod_cgroup *g)
{
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		if (g->fds[kind] >= 0)
			return true;
	return false;
}

bool pod_cgroup_is_v1(const struct pod_cgroup *g)
{
	return g->fds[CGROUP_MEMORY] >= 0 || g->fds[CGROUP_PIDS] >= 0;
}

bool pod_cgroup_can_limit(const struct pod_cgroup *g)
{
	char text[256] = ""; /* names of some ten controllers */
	size_t len = 0;
	if (pod_cgroup_is_v1(g))
		return g->fds[CGROUP_MEMORY] >= 0;
	cleanup_fd int fd =
		openat(g->fds[CGROUP_UNIFIED], "cgroup.controllers", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && fd_read_full(fd, text, sizeof(text) - 1, &len) == 0 &&
	       strstr(text, "memory");
}

int pod_cgroup_make_child(const struct pod_cgroup *g, const char *name, struct err *e)
{
	enable_controllers(g->fds[CGROUP_UNIFIED]);
	int fd = make_dir(g->fds[CGROUP_UNIFIED], name);
	return fd < 0 ? err_sys(e, fd, "pod %s: cannot make a group \"%s\" in its own", g->uuid,
				name)
		      : fd;
}

/* What cgroups(7) names under "Delegating a hierarchy", and the same of version 1. */
static int give_to(int group, uid_t uid)
{
	static const char *const files[] = { "cgroup.procs", "cgroup.threads",
					     "cgroup.subtree_control", "tasks" };
	if (fchown(group, uid, uid) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (fchownat(group, files[i], uid, uid, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
			return -errno;
	return 0;
}

int pod_cgroup_delegate(const struct pod_cgroup *g, uid_t uid, struct err *e)
{
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		int r = g->fds[kind] < 0 ? 0 : give_to(g->fds[kind], uid);
		if (r < 0)
			return err_sys(e, r, "pod %s: cannot give its group in \"%s\" to user %u",
				       g->uuid, cgroup_kind_name((enum cgroup_kind)kind),
				       (unsigned)uid);
	}
	return 0;
}

int pod_cgroup_filter_devices(const struct pod_cgroup *g, struct err *e)
{
	int r = -ENODEV;
	if (g->fds[CGROUP_UNIFIED] >= 0)
		r = device_filter_attach(g->fds[CGROUP_UNIFIED]);
	if (r < 0 && g->fds[CGROUP_DEVICES] >= 0)
		r = device_filter_write(g->fds[CGROUP_DEVICES]);
	if (r < 0)
		return err_sys(e, r,
			       "pod %s: cannot keep devices from it (run as root, on a kernel "
			       "with CONFIG_CGROUP_BPF or CONFIG_CGROUP_DEVICE)",
			       g->uuid);
	return 0;
}

/* --- killing --- */

/* Whether /proc/PID/cgroup names the pod's group: the number may have passed to another process. */
static bool is_of_pod(pid_t pid, const char *uuid)
{
	char name[32], place[sizeof(PARENT) + UUID_TEXT_LEN + 2];
	size_t len;
	cleanup_free char *text = NULL;
	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	snprintf(place, sizeof(place), "/%s/%s", PARENT, uuid);
	return file_read_path(name, OWN_MAX, &text, &len) == 0 && strstr(text, place);
}

static void kill_process(pid_t pid, const char *uuid)
{
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0 && pid != getpid() && is_of_pod(pid, uuid))
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/*
 * Kills what the list of @dir begins with; the rest comes first the next time. True if there is
 * something in it. Processes of other PID namespaces than ours and its children have number 0.
 */
static bool kill_listed(int dir, const char *uuid)
{
	char text[PROCS_MAX];
	size_t len = 0;
	uint64_t pid;
	cleanup_fd int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1, &len) < 0)
		return false;
	text[len] = '\0';
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (num_parse_u64(line, INT_MAX, &pid) == 0 && pid > 0)
			kill_process((pid_t)pid, uuid);
	}
	return len > 0;
}

/* The same for @dir and the groups below. What cannot be listed now may hold something. */
static bool kill_tree(int dir, const char *uuid, int depth)
{
	bool found = kill_listed(dir, uuid);
	cleanup_dir DIR *d = fd_list_dir(dir);
	if (!d && errno != ENOENT)
		return true;
	for (struct dirent *de; depth > 0 && d && (de = readdir(d));) {
		if (!is_group(de))
			continue;
		cleanup_fd int child = open_dir(dir, de->d_name);
		if (child >= 0)
			found |= kill_tree(child, uuid, depth - 1);
	}
	return found;
}

/*
 * The kernel does it at once in version 2, from Linux 5.14 on, also to processes that are just
 * being forked. What it has killed, and what it cannot, is what the lists still have.
 */
static bool kill_round(const struct pod_cgroup *g)
{
	bool found = false;
	if (g->fds[CGROUP_UNIFIED] >= 0)
		cgroup_file_write(g->fds[CGROUP_UNIFIED], "cgroup.kill", "1");
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		if (g->fds[kind] >= 0)
			found |= kill_tree(g->fds[kind], g->uuid, DEPTH_MAX);
	return found;
}

static int kill_group(const char *uuid, const char *suffix, const char *parent, struct err *e)
{
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	int r = open_group(uuid, suffix, parent, &g, e);
	if (r < 0)
		return r;
	int64_t deadline = clock_monotonic_ns() + WAIT_NS;
	while (kill_round(&g)) {
		if (clock_monotonic_ns() > deadline)
			return err_set(e, -ETIMEDOUT,
				       "pod %s: processes in its control group do "
				       "not end (try again later)",
				       uuid);
		poll(NULL, 0, WAIT_STEP_MS);
	}
	return 0;
}

int pod_cgroup_kill(const char *uuid, const char *parent, struct err *e)
{
	return kill_group(uuid, "", parent, e);
}

/* --- removing --- */

/* The name of a group in @dir, in @ret. -ENOENT if there is none. */
static int find_child(int dir, char ret[NAME_MAX + 1])
{
	int r = -ENOENT;
	cleanup_dir DIR *d = fd_list_dir(dir);
	if (!d)
		return -errno;
	for (struct dirent *de; r == -ENOENT && (de = readdir(d));)
		if (is_group(de))
			r = str_copy(ret, NAME_MAX + 1, de->d_name);
	return r;
}

/*
 * Removes the groups below @top, however deep they are, with one directory open: down to one that
 * has none, up again, and that one removed. -EBUSY while there are processes.
 */
static int remove_below(int top)
{
	char name[NAME_MAX + 1];
	uint64_t depth = 0;
	bool is_empty = false; /* @name is what was just left behind */
	cleanup_fd int dir = open_dir(top, ".");
	int r = dir < 0 ? dir : find_child(dir, name);
	while (r == 0 || (r == -ENOENT && depth > 0)) {
		bool found = r == 0;
		bool is_gone = found && (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT);
		if (found && !is_gone && is_empty)
			return -errno;
		if (!is_gone) {
			fd_replace(&dir, open_dir(dir, found ? name : ".."));
			found ? depth++ : depth--;
		}
		if (dir < 0) /* if somebody else removes them, too, they are looked at again */
			return dir == -ENOENT ? -EBUSY : dir;
		is_empty = !found;
		r = find_child(dir, name);
	}
	return r == -ENOENT ? 0 : r;
}

/* -EBUSY while there are processes. */
static int remove_tree(int parent, const char *name)
{
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY && errno != ENOTEMPTY)
		return -errno;
	cleanup_fd int dir = open_dir(parent, name);
	int r = dir < 0 ? dir : remove_below(dir);
	if (r == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r == -ENOENT ? 0 : r;
}

static int remove_group(int parent, const char *name, int64_t deadline)
{
	int r;
	while ((r = remove_tree(parent, name)) == -EBUSY && clock_monotonic_ns() < deadline)
		poll(NULL, 0, WAIT_STEP_MS);
	return r;
}

/* All of them, also if one fails. Then "husk", unless another pod is in there. */
static int remove_groups(const char *uuid, const char *suffix, const char *parent, struct err *e)
{
	char name[NAME_SIZE];
	CLEANUP(tops_deinit) struct tops parents = TOPS_INIT;
	int64_t deadline = clock_monotonic_ns() + WAIT_NS;
	int r = uuid_is_valid(uuid) ? open_parents(uuid, parent, &parents, e)
				    : err_set(e, -EINVAL, "control group: \"%s\" is no UUID", uuid);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%s%s", uuid, suffix);
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		int n = parents.fds[kind] < 0 ? 0 : remove_group(parents.fds[kind], name, deadline);
		if (n < 0)
			r = err_sys(e, n, "pod %s: cannot remove its control group in \"%s\"", uuid,
				    cgroup_kind_name((enum cgroup_kind)kind));
		if (parents.fds[kind] >= 0)
			unlinkat(parents.fds[kind], "../" PARENT, AT_REMOVEDIR);
	}
	return r;
}

int pod_cgroup_remove(const char *uuid, const char *parent, struct err *e)
{
	return remove_groups(uuid, "", parent, e);
}

/* Who has groups in there, or processes, keeps it. */
static int remove_own(const char *parent, struct err *e)
{
	struct own own;
	CLEANUP(tops_deinit) struct tops roots = TOPS_INIT;
	split_own(&own, parent);
	int r = find_roots(&roots, e);
	for (int kind = 0; r == 0 && kind < CGROUP_KINDS; kind++) {
		if (roots.fds[kind] < 0)
			continue;
		cleanup_fd int dir = path_open_beneath(roots.fds[kind], own.above, O_DIRECTORY, 0);
		if (dir >= 0)
			unlinkat(dir, own.name, AT_REMOVEDIR);
	}
	return r;
}

int pod_cgroup_remove_own(const char *uuid, const char *parent, struct err *e)
{
	int r = kill_group(uuid, SUPERVISOR, parent, e);
	if (r == 0)
		r = remove_groups(uuid, SUPERVISOR, parent, e);
	return r == 0 ? remove_own(parent, e) : r;
}

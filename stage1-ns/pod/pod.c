/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. clone3(2) makes the first process of the namespaces, a copy of ours. It and
 * we go in turns over a socket pair: it gets ids, when they are mapped; it enters control groups of
 * version 1 (it is born in that of version 2), makes its root directory and says so; we attach
 * images there; it becomes husk-agent. What goes wrong it says in words.
 *
 * An image is mounted where the privileges for that are, and attached by a process that joins the
 * pod's namespaces for that moment (setns(2)), as does one that unmounts it. Before that an image
 * is nowhere to be seen, on the host neither: a pod that is killed leaves no mount.
 */
#include "stage1-ns/pod/pod.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/image_mount.h"
#include "lib/os/loopback.h"
#include "lib/os/path.h"
#include "lib/os/sandbox.h"
#include "lib/os/spawn.h"
#include "lib/os/unix.h"
#include "lib/os/userns.h"
#include "stage1-ns/message.h"
#include "stage1-ns/pod/root.h"
#include "stage1/pod/pod_limits.h"
#include "stage1/pod/podfiles.h"

int setns(int fd, int type); /* <sched.h> and <linux/sched.h> cannot be included together */
int unshare(int flags);

#define AGENT      "../../guest/husk-agent" /* from our own program */
#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC)

/*
 * Of root of the host, who root in a pod without a user namespace is: what apps have by default,
 * and what the agent mounts, changes users, signals and limits with. Others reach beyond the pod:
 * modules, the clock, raw I/O, files by handle, logs, security modules.
 */
static const int capabilities[] = {
	CAP_AUDIT_WRITE,  CAP_CHOWN,
	CAP_DAC_OVERRIDE, CAP_FOWNER,
	CAP_FSETID,       CAP_IPC_LOCK,
	CAP_IPC_OWNER,    CAP_KILL,
	CAP_LEASE,        CAP_MKNOD,
	CAP_NET_ADMIN,    CAP_NET_RAW,
	CAP_SETFCAP,      CAP_SETGID,
	CAP_SETPCAP,      CAP_SETUID,
	CAP_SYS_ADMIN,    CAP_SYS_CHROOT,
	CAP_SYS_NICE,     CAP_SYS_PTRACE,
	CAP_SYS_RESOURCE, CAP_NET_BIND_SERVICE,
};

/* ---- words between the two processes ---- */

/* What is wrong, or an empty text. */
struct word {
	int code;
	char text[MESSAGE_TEXT_MAX + 1];
};

static int say(int sync, const struct err *why, int fd)
{
	struct word w = { .code = why ? why->code : 0 };
	size_t sent;
	if (why)
		snprintf(w.text, sizeof(w.text), "%s", why->text);
	return unix_send_fds(sync, &w, sizeof(w), &fd, fd < 0 ? 0 : 1, &sent);
}

/* Waits for the other process. A descriptor that comes replaces *ret_fd (may be NULL). */
static int hear(int sync, int *ret_fd, struct err *e)
{
	struct word w;
	int fds[UNIX_FDS_MAX];
	size_t len = 0, n = 0;
	int r = unix_recv_fds(sync, &w, sizeof(w), fds, &len, &n);
	if (ret_fd && r == 0 && n > 0)
		fd_replace(ret_fd, fds[--n]);
	while (n > 0)
		fd_close(fds[--n]);
	if (r < 0 || len != sizeof(w))
		return err_set(e, -EPIPE, "namespaces: their first process ended");
	w.text[MESSAGE_TEXT_MAX] = '\0';
	return w.code < 0 ? err_set(e, w.code, "%s", w.text) : 0;
}

/* ---- the first process ---- */

/*
 * Read-only whatever its file is: an app that makes the kernel execute it, by /proc/self/exe, could
 * write to it otherwise.
 */
static int open_agent(struct err *e)
{
	char path[PATH_MAX];
	int r = path_from_self(AGENT, path, sizeof(path));
	if (r == 0)
		r = image_mount_file(path);
	return r < 0 ? err_sys(e, r, "husk-agent (is husk installed as a whole?)") : r;
}

/* Whether the pod's apps have groups of version 2: beside one for the agent, not below its own. */
static bool has_tree(const struct pod *p)
{
	return p->had_cgroup && p->cgroup.fds[CGROUP_UNIFIED] >= 0 && !pod_cgroup_is_v1(&p->cgroup);
}

/*
 * The group that it is in becomes the root of those that the pod sees. Not so in a tree, where each
 * app gets a namespace: with the mount option "nsdelegate", nobody can be put beside that root.
 */
static int enter_cgroups(const struct pod *p, const struct spawn_cgroups *groups, struct err *e)
{
	int r = spawn_enter_cgroups(groups);
	if (r < 0)
		return err_sys(e, r, "pod %s: cannot enter its control groups", p->in->uuid);
	if (!has_tree(p) && unshare(CLONE_NEWCGROUP) < 0)
		return err_sys(e, -errno, "namespaces: control groups");
	return 0;
}

/*
 * Others than root may mount in the pod's namespaces alone, where they have become root and are
 * still themselves; root mounts outside, where it gets to everything. There are ids for files to be
 * seen with, then.
 */
static int mount_volumes(struct pod *p, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < p->in->n_volumes; i++) {
		const struct host_volume *v = &p->in->volumes[i];
		r = p->volumes[i] = host_volume_mount(v, NULL, e);
		if (r >= 0 && p->user_ns >= 0)
			r = host_volume_map_ids(p->volumes[i], v, p->user_ns, "--userns=host", e);
	}
	return MIN(r, 0);
}

static int enter_pod(struct pod *p, int scratch_mount, bool *ret_cgroups, struct err *e)
{
	const struct root_input root = { .groups = &p->cgroup,
					 .scratch = p->in->with_scratch ? NS_DIR_APPS : NULL,
					 .scratch_mount = scratch_mount,
					 .sysfs = p->sysfs,
					 .volumes = p->in->volumes,
					 .volume_mounts = p->volumes,
					 .n_volumes = p->of_root ? 0 : p->in->n_volumes };
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); /* the kernel may have none */
	int r = p->of_root ? 0 : mount_volumes(p, e);
	return r == 0 ? root_enter(&root, ret_cgroups, e) : r;
}

static int become_agent(int agent, bool with_cgroups, struct err *e)
{
	static char *const no_environment[] = { NULL };
	char listen[32], secret[32];
	snprintf(listen, sizeof(listen), "--listen-fd=%d", HELPER_FD_LISTEN);
	snprintf(secret, sizeof(secret), "--secret-fd=%d", HELPER_FD_SECRET);
	const char *const groups = with_cgroups ? "--cgroup-dir=" ROOT_CGROUP_DIR : NULL;
	const char *const disks = "--disk-dir=" NS_DISK_DIR;
	const char *const argv[] = { "husk-agent", "--no-init", listen, secret,
				     "--run-dir=", disks,       groups, NULL };
	for (int fd = HELPER_FD_LISTEN; fd <= HELPER_FD_LOCK; fd++)
		fd_set_cloexec(fd, false);
	if (dup2(HELPER_FD_CONSOLE, STDERR_FILENO) < 0)
		return err_sys(e, -errno, "agent: its errors");
	syscall(SYS_execveat, agent, "", argv, no_environment, AT_EMPTY_PATH);
	return err_sys(e, -errno, "agent: cannot execute it");
}

static bool pod_makes_netns(const struct pod_input *in)
{
	return in->net == POD_NET_NONE || in->net == POD_NET_CONNECT;
}

static _Noreturn void first_process(struct pod *p, const struct spawn_cgroups *groups, int sync)
{
	const struct pod_input *in = p->in;
	struct err e = ERR_INIT;
	int scratch_mount = -EBADF, agent = p->program;
	bool with_cgroups = false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int r = hear(sync, &scratch_mount, &e); /* nobody there: whoever made us is gone */
	if (r == 0)
		r = enter_cgroups(p, groups, &e);
	if (r == 0 && in->with_userns && (r = userns_become_root()) < 0)
		err_sys(&e, r, "user namespace: cannot become root there");
	if (r == 0 && agent < 0)
		r = agent = open_agent(&e);
	if (r >= 0 && pod_makes_netns(in))
		low_ports_open(); /* a kernel without the setting has root alone there */
	if (r >= 0)
		r = enter_pod(p, scratch_mount, &with_cgroups, &e);
	if (r < 0 || say(sync, NULL, -EBADF) < 0 || hear(sync, NULL, &e) < 0) {
		say(sync, &e, -EBADF);
		_exit(1);
	}
	if (!in->with_userns)
		r = sandbox_keep_bounding_set(capabilities, ARRAY_SIZE(capabilities));
	if (r < 0)
		err_sys(&e, r, "agent: cannot give up capabilities");
	else
		become_agent(agent, with_cgroups, &e);
	say(sync, &e, -EBADF);
	_exit(1);
}

/* ---- visits ---- */

struct visit {
	const struct pod *pod;
	const char *what; /* of errors */
	int slot;
	int mount; /* to be attached; -EBADF: make one for FUSE */
};

static int join(const struct pod *p, int type)
{
	int fd = type == CLONE_NEWUSER ? p->user_ns : p->mount_ns;
	return setns(fd, type) < 0 ? -errno : 0;
}

/* Root of the pod's user namespace, if it has one, but still in the mount namespace of the host. */
static int join_users(const struct pod *p)
{
	int r = p->user_ns >= 0 ? join(p, CLONE_NEWUSER) : 0;
	return r == 0 && p->user_ns >= 0 ? userns_become_root() : r;
}

/* A process that is in the pod for a moment. *ret_fd: the descriptor that it sent, or -EBADF. */
static int visit_pod(const struct visit *v, int (*fn)(const struct visit *v, int sync), int *ret_fd,
		     struct err *e)
{
	int pair[2], status = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, -errno, "%s", v->what);
	cleanup_fd int here = pair[0], there = pair[1];
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(-fn(v, there));
	}
	fd_replace(&there, -EBADF);
	int r = pid < 0 ? -errno : spawn_wait(pid, &status);
	if (r < 0)
		return err_sys(e, r, "%s", v->what);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_sys(e, WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO,
			       "%s: cannot be attached to the pod, or detached", v->what);
	return ret_fd ? hear(here, ret_fd, e) : 0;
}

/* ---- the pod ---- */

/*
 * Whatever the kernel counts in a user namespace, inotify instances for example, it counts for who
 * has made that, too. Root of the host would share what it may have with all pods; so it is the
 * user that root of the pod is outside, who is nobody else.
 */
static pid_t clone_as_owner(const struct pod *p, struct clone_args *args)
{
	const uid_t same = (uid_t)-1;
	if (!p->of_root || !p->in->with_userns)
		return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
	if (setresuid(same, userns_base(p->in->uuid), same) < 0)
		return -1;
	setfsuid(0); /* but root still puts processes into groups */
	pid_t pid = (pid_t)syscall(SYS_clone3, args, sizeof(*args));
	int error = errno;
	if (pid != 0 && setresuid(same, 0, same) < 0)
		return -1; /* it dies with us */
	errno = error;
	return pid;
}

static int clone_into(struct pod *p, const struct spawn_cgroups *groups, struct err *e)
{
	int pair[2];
	struct clone_args args = { .flags = NAMESPACES | CLONE_PIDFD, .exit_signal = SIGCHLD };
	args.pidfd = (uint64_t)(uintptr_t)&p->agent_fd;
	args.flags |= groups->dir >= 0 ? CLONE_INTO_CGROUP : 0;
	args.cgroup = (uint64_t)MAX(groups->dir, 0);
	args.flags |= p->in->with_userns ? CLONE_NEWUSER : 0;
	args.flags |= pod_makes_netns(p->in) ? CLONE_NEWNET : 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, -errno, "namespaces");
	pid_t pid = clone_as_owner(p, &args);
	if (pid == 0) {
		fd_close(pair[0]);
		first_process(p, groups, pair[1]);
	}
	p->sync = pair[0];
	fd_close(pair[1]);
	if (pid < 0 && errno == EPERM && p->in->with_userns)
		return err_set(e, -EPERM,
			       "namespaces: a user namespace is not permitted here (in a chroot(2) "
			       "it never is: use pivot_root(2); or a security module forbids it)");
	if (pid < 0 && errno == EACCES && groups->dir >= 0)
		return err_set(e, -EACCES,
			       "pod %s: its processes may not go from our control group to its own "
			       "(whoever runs it needs a group that both are in, see cgroups(7); "
			       "or a security module forbids it)",
			       p->in->uuid);
	if (pid < 0)
		return err_sys(e, -errno,
			       "namespaces: cannot make them (see user.max_*_namespaces of "
			       "sysctl)");
	p->agent = pid;
	return 0;
}

/*
 * In its groups from the beginning: to move a process takes the kernel milliseconds, more than all
 * else that a pod needs to start.
 */
static int clone_first(struct pod *p, struct err *e)
{
	CLEANUP(pod_limits_close) struct spawn_cgroups groups = SPAWN_CGROUPS_NONE;
	cleanup_fd int apart = -EBADF;
	int r = p->had_cgroup ? pod_limits_open(&p->cgroup, &groups, e) : 0;
	if (r == 0 && has_tree(p)) {
		r = apart = pod_cgroup_make_child(&p->cgroup, "agent", e);
		groups.dir = apart;
	}
	return r < 0 ? r : clone_into(p, &groups, e);
}

static int open_namespace(pid_t pid, const char *name, int *ret, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	*ret = open(path, O_RDONLY | O_CLOEXEC);
	return *ret < 0 ? err_sys(e, -errno, "namespaces: \"%s\"", path) : 0;
}

/* Sends the pod's network namespace to who connects it, and waits until that is done. */
static int connect_network(const struct pod *p, struct err *e)
{
	int fd = -EBADF;
	size_t sent;
	char byte = 0;
	int r = open_namespace(p->agent, "net", &fd, e);
	cleanup_fd int netns = fd;
	if (r < 0)
		return r;
	r = unix_send_fds(HELPER_FD_NETNS, &byte, 1, &netns, 1, &sent);
	if (r < 0 || read(HELPER_FD_NETNS, &byte, 1) != 1)
		return err_set(e, -ENETDOWN, "network namespace: nobody has connected it");
	fd_close(HELPER_FD_NETNS);
	return 0;
}

/* @made is what pod_cgroup_make() has said, with @e. */
static int set_limits(struct pod *p, int made, const struct cgroup_limits *l, struct err *e)
{
	return made == 0 ? pod_limits_set(&p->cgroup, POD_LIMITS_OF_PROGRAMS, l, e) : made;
}

/*
 * A host that has no control groups, or none for this user, is as good: only what somebody wants to
 * be limited is refused there, as it is by the agent for each app.
 */
static int limit_pod(struct pod *p, int made, struct err *e)
{
	struct cgroup_limits l = p->in->limits;
	bool any = l.memory_max || l.cpu_millis || l.pids_max;
	const struct cgroup_limits usual = { .pids_max = l.pids_max ? 0 : POD_TASKS };
	if (l.cpu_millis)
		l.cpu_weight = pod_limits_weight(l.cpu_millis);
	int r = set_limits(p, made, &usual, e);
	if (r >= 0 && any)
		r = set_limits(p, made, &l, e);
	if (r == POD_CGROUP_E_NONE && any)
		return err_context(e, "limits of the pod");
	return MIN(r, 0);
}

static int make_cgroup(struct pod *p, struct err *e)
{
	struct err why = ERR_INIT;
	int r = pod_cgroup_make(p->in->uuid, p->in->cgroup_parent, &p->cgroup, &why);
	p->had_cgroup = r == 0;
	r = limit_pod(p, r, &why);
	if (r == 0 && p->had_cgroup && p->of_root)
		r = pod_cgroup_filter_devices(&p->cgroup, &why);
	if (r == 0 && p->had_cgroup && p->of_root && p->in->with_userns)
		r = pod_cgroup_delegate(&p->cgroup, userns_base(p->in->uuid), &why);
	if (r < 0)
		*e = why;
	return r;
}

/*
 * Root of a user namespace does not own a network that is shared, and may neither set it up nor
 * mount sysfs(5), which shows it: so we are in there, and do both, before there is a pod.
 */
static int share_network(struct pod *p, struct err *e)
{
	if (pod_makes_netns(p->in))
		return 0;
	if (!p->of_root)
		return err_set(e, -EPERM, "network namespace: only root shares one with a pod");
	if (p->in->net == POD_NET_JOIN && setns(HELPER_FD_NETNS, CLONE_NEWNET) < 0)
		return err_sys(e, -errno, "network namespace: cannot join it");
	int r = loopback_up();
	if (r < 0)
		return err_sys(e, r, "network namespace: the loopback interface");
	p->sysfs = root_mount_sysfs();
	return p->sysfs < 0 ? err_sys(e, p->sysfs, "network namespace: /sys") : 0;
}

/* The first process, which waits, and its ids. */
static int make_namespaces(struct pod *p, struct err *e)
{
	const struct pod_input *in = p->in;
	int r = share_network(p, e);
	if (r == 0)
		r = clone_first(p, e);
	if (r == 0)
		r = open_namespace(p->agent, "mnt", &p->mount_ns, e);
	if (r == 0 && in->with_userns)
		r = userns_map(p->agent, userns_base(in->uuid), e);
	if (r == 0 && in->with_userns)
		r = open_namespace(p->agent, "user", &p->user_ns, e);
	return r == 0 && in->net == POD_NET_CONNECT ? connect_network(p, e) : r;
}

static int attach_volumes(const struct visit *v, int sync)
{
	const struct pod *p = v->pod;
	(void)sync;
	int r = join_users(p);
	if (r == 0)
		r = join(p, CLONE_NEWNS);
	cleanup_fd int root = r == 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : r;
	if (root < 0)
		return r < 0 ? r : -errno;
	return root_add_volumes(root, p->in->volumes, p->volumes, p->in->n_volumes);
}

static int add_volumes(struct pod *p, struct err *e)
{
	const struct visit v = { .pod = p, .what = "volumes" };
	int r = mount_volumes(p, e);
	if (r == 0 && p->in->n_volumes > 0)
		r = visit_pod(&v, attach_volumes, NULL, e);
	for (size_t i = 0; i < p->in->n_volumes; i++)
		p->volumes[i] = fd_close(p->volumes[i]);
	return r;
}

/* Lets the first process make its root directory, in which volumes are attached then. */
static int make_root(struct pod *p, struct err *e)
{
	cleanup_fd int scratch = -EBADF;
	int r = 0;
	if (p->of_root && p->in->with_userns && p->in->with_scratch)
		r = scratch = image_mount_mapped(HELPER_FD_SCRATCH, p->user_ns,
						 "pod directory: \"" NS_DIR_APPS "\"", e);
	if (r >= 0 && say(p->sync, NULL, scratch) < 0)
		r = err_set(e, -EPIPE, "namespaces: their first process ended");
	return r < 0 ? r : hear(p->sync, NULL, e);
}

int pod_create(struct pod *p, const struct pod_input *in, struct err *e)
{
	p->in = in;
	p->of_root = geteuid() == 0;
	for (size_t i = 0; i < AGENT_VOLUME_SLOTS; i++)
		p->volumes[i] = -EBADF;
	/* Root of a user namespace may not get to the file, root of the host always does. */
	int r = p->of_root ? p->program = open_agent(e) : 0;
	if (r >= 0)
		r = make_cgroup(p, e);
	if (r == 0)
		r = make_namespaces(p, e);
	if (r == 0)
		r = make_root(p, e);
	return r == 0 && p->of_root ? add_volumes(p, e) : r;
}

int pod_start(struct pod *p, struct err *e)
{
	char byte;
	int r = say(p->sync, NULL, -EBADF);
	/* execve(2) closes the other end. */
	if (r == 0 && recv(p->sync, &byte, 1, MSG_PEEK) == 0)
		return 0;
	return r < 0 ? err_sys(e, r, "agent") : hear(p->sync, NULL, e);
}

/* ---- images ---- */

static void slot_path(int slot, char ret[32])
{
	snprintf(ret, 32, NS_DISK_DIR "/%d", slot);
}

/* The device belongs to the user namespace that we are in, its path to the host. */
static int mount_fuse(const struct pod *p, int sync, int *ret)
{
	cleanup_fd int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int r = device < 0 ? -errno : join(p, CLONE_NEWNS);
	if (r == 0)
		r = *ret = image_mount_fuse(device);
	return r < 0 ? r : say(sync, NULL, device);
}

/* In a process of its own, which joins the pod. 0 or -errno. */
static int attach_image(const struct visit *v, int sync)
{
	char path[32];
	int mount = v->mount, r = join_users(v->pod);
	if (r == 0)
		r = mount < 0 ? mount_fuse(v->pod, sync, &mount) : join(v->pod, CLONE_NEWNS);
	if (r < 0)
		return r;
	slot_path(v->slot, path);
	if ((mkdir(path, 0755) < 0 && errno != EEXIST) ||
	    move_mount(mount, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int detach_image(const struct visit *v, int sync)
{
	char path[32];
	(void)sync;
	int r = join_users(v->pod);
	if (r == 0)
		r = join(v->pod, CLONE_NEWNS);
	if (r < 0)
		return r;
	slot_path(v->slot, path);
	if ((umount2(path, MNT_DETACH) < 0 && errno != EINVAL) || rmdir(path) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

static int plug_fuse(struct pod *p, int slot, int fd, struct err *e)
{
	const struct visit v = { .pod = p, .what = "image", .slot = slot, .mount = -EBADF };
	int r = image_check_fuse(e);
	cleanup_fd int device = -EBADF;
	if (r == 0)
		r = visit_pod(&v, attach_image, &device, e);
	if (r == -EACCES)
		return err_sys(e, r, "image: /dev/fuse, which root of the pod opens (chmod 666)");
	return r == 0 ? image_serve_fuse(fd, device, HELPER_FD_CONSOLE, &p->servers[slot], e) : r;
}

int pod_plug(struct pod *p, int slot, int fd, struct err *e)
{
	struct err none = ERR_INIT;
	cleanup_fd int mount = p->of_root ? image_mount_loop(fd, p->user_ns, e) : -EPERM;
	/* Root of a container that may not use loop devices is not better off than others. */
	if (mount < 0 && (!p->of_root || image_check_fuse(&none) == 0))
		return plug_fuse(p, slot, fd, e);
	if (mount < 0)
		return mount;
	const struct visit v = { .pod = p, .what = "image", .slot = slot, .mount = mount };
	return visit_pod(&v, attach_image, NULL, e);
}

static void stop_server(struct pod *p, int slot)
{
	int status;
	if (p->servers[slot] <= 0)
		return;
	kill(p->servers[slot], SIGKILL);
	spawn_wait(p->servers[slot], &status);
	p->servers[slot] = 0;
}

int pod_unplug(struct pod *p, int slot, struct err *e)
{
	const struct visit v = { .pod = p, .what = "image", .slot = slot, .mount = -EBADF };
	int r = visit_pod(&v, detach_image, NULL, e);
	stop_server(p, slot);
	return r;
}

/* ---- the end ---- */

void pod_end(struct pod *p, int *ret_status)
{
	*ret_status = -1;
	p->sync = fd_close(p->sync);
	/* First: whoever waits for one that hangs cannot be killed. */
	for (int slot = 0; slot < AGENT_APPS_MAX; slot++)
		stop_server(p, slot);
	if (p->agent > 0) {
		kill(p->agent, SIGKILL);
		spawn_wait(p->agent, ret_status);
	}
	p->agent = 0;
	p->was_short = pod_limits_killed(&p->cgroup);
	struct err ignored = ERR_INIT; /* gc tries again */
	if (p->had_cgroup)
		pod_cgroup_remove(p->in->uuid, p->in->cgroup_parent, &ignored);
	pod_cgroup_deinit(&p->cgroup);
	p->had_cgroup = false;
}

void pod_forget_mounts(struct pod *p)
{
	const int kept[] = { p->mount_ns, HELPER_FD_LOCK };
	if (p->mount_ns >= 0 && fork() == 0) {
		fd_keep_only(kept, ARRAY_SIZE(kept));
		fd_close(p->mount_ns);
		_exit(0);
	}
	fd_close(p->program);
	fd_close(p->agent_fd);
	fd_close(p->mount_ns);
	fd_close(p->user_ns);
	fd_close(p->sysfs);
	*p = POD_INIT;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-ns, the program, with a pod whose agent runs: what it is told at its start, and by messages
 * then. System tests look at the pod.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/base/uuid.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/random.h"
#include "lib/os/spawn.h"
#include "lib/os/unix.h"
#include "lib/wire/agent.h"
#include "stage1-ns/message.h"
#include "stage1/pod/pod_cgroup.h"
#include "tests/support/fixture.h"

#define UUID      "12345678-1234-4123-8123-123456789abc" /* of no pod that is started */
#define SECRET    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define WORDS_MAX 200

static struct uuid uuid; /* of the last pod: its control group is the host's, whom others share */

struct keeper {
	pid_t pid;
	int socket;
	int errors; /* read from */
};

/* All that it is given but images, as the backend gives it; @netns, unless negative, is closed. */
static void start(void **state, struct keeper *k, struct strv *argv, int netns)
{
	int pair[2], out[2], secret[2];
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	unlink("sock");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC) | pipe2(secret, O_CLOEXEC), 0);
	int listener = unix_listen("sock", 0600);
	int lock = openat(fixture_dir(state), "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int console = openat(fixture_dir(state), "console", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(listener >= 0 && lock >= 0 && console >= 0);
	assert_int_equal(fd_write_all(secret[1], SECRET, AGENT_SECRET_LEN), 0);
	struct spawn_plan plan = { .program = KEEPER_PROGRAM, .argv = argv->v };
	const int fds[][2] = { { out[1], STDERR_FILENO },      { pair[1], HELPER_FD_SOCKET },
			       { listener, HELPER_FD_LISTEN }, { secret[0], HELPER_FD_SECRET },
			       { lock, HELPER_FD_LOCK },       { console, HELPER_FD_CONSOLE } };
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(spawn_plan_fd(&plan, fds[i][0], fds[i][1]), 0);
	if (netns >= 0)
		assert_int_equal(spawn_plan_fd(&plan, netns, HELPER_FD_NETNS), 0);
	assert_int_equal(spawn(&plan, &k->pid, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i][0]);
	fd_close(secret[1]);
	fd_close(netns);
	k->socket = pair[0];
	k->errors = out[0];
	assert_int_equal(chdir("/"), 0);
}

/* Waits for its end: it has the exit code @code, and what it wrote begins with @line. */
static void finish(struct keeper *k, int code, const char *line)
{
	char text[512];
	size_t len;
	int status;
	assert_int_equal(fd_read_full(k->errors, text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	assert_int_equal(spawn_wait(k->pid, &status), 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !str_starts(text, line))
		fail_msg("status %d: %s", status, text);
	fd_close(k->socket);
	fd_close(k->errors);
}

static void add(struct strv *argv, const char *word)
{
	assert_int_equal(strv_add(argv, word), 0);
}

static void expect_refused(void **state, const char *const *words, size_t n)
{
	struct keeper k;
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, WORDS_MAX);
	add(&argv, "husk-ns");
	for (size_t i = 0; i < n; i++)
		add(&argv, words[i]);
	start(state, &k, &argv, -EBADF);
	finish(&k, 2, "husk-ns: is started by husk\n");
}

/* It makes no pod of what the backend would not say, so that there are places for all of it. */
static void test_options(void **state)
{
	static const char *const bad[][2] = {
		{ "--images=0" },
		{ "--uuid=x" },
		{ "--uuid=" UUID, "--images=33" },
		{ "--uuid=" UUID, "--images=-1" },
		{ "--uuid=" UUID, "--net=none" },
		{ "--uuid=" UUID, "--pids=9223372036854775808" },
		{ "--uuid=" UUID, "--volume=0:ro:all:relative" },
	};
	const char *words[1 + AGENT_VOLUME_SLOTS + 1] = { "--uuid=" UUID };
	_Static_assert(AGENT_APPS_MAX == 32, "33 images are too many");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(state, bad[i], bad[i][1] ? 2 : 1);
	for (size_t i = 1; i < ARRAY_SIZE(words); i++)
		words[i] = "--volume=0:ro:all:/";
	expect_refused(state, words, ARRAY_SIZE(words));
}

/* What it answers to a message, with @fd unless that is negative. */
static const char *ask(const struct keeper *k, uint32_t kind, int slot, int fd)
{
	static struct message m;
	int fds[UNIX_FDS_MAX];
	size_t len, n;
	m = (struct message){ .kind = kind, .slot = slot };
	assert_int_equal(unix_send_fds(k->socket, &m, sizeof(m), &fd, fd < 0 ? 0 : 1, &len), 0);
	assert_int_equal(unix_recv_fds(k->socket, &m, sizeof(m), fds, &len, &n), 0);
	assert_int_equal(len, sizeof(m));
	assert_int_equal(n, 0);
	assert_int_equal(m.kind, MESSAGE_DONE);
	assert_int_equal(m.slot, slot);
	return m.text;
}

/* The process that a pidfd is of. */
static pid_t pid_of(int pidfd)
{
	char path[64];
	size_t len;
	cleanup_free char *text = NULL;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	assert_int_equal(file_read_path(path, 4096, &text, &len), 0);
	const char *at = strstr(text, "Pid:\t");
	assert_non_null(at);
	return atoi(at + strlen("Pid:\t"));
}

/* Begins a pod with these options, unless NULL; @netns as for start(). */
static void begin_pod(void **state, struct keeper *k, const char *option, const char *net,
		      int netns)
{
	unsigned char bytes[UUID_BYTES];
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, WORDS_MAX);
	assert_int_equal(random_bytes(bytes, sizeof(bytes)), 0);
	uuid_from_random(bytes, &uuid);
	add(&argv, "husk-ns");
	assert_int_equal(strv_addf(&argv, "--uuid=%s", uuid.text), 0);
	if (option)
		add(&argv, option);
	if (net)
		add(&argv, net);
	start(state, k, &argv, netns);
}

/* Waits until it is up. Its agent. */
static pid_t await_pod(struct keeper *k)
{
	struct message m;
	int fds[UNIX_FDS_MAX];
	size_t len, n;
	assert_int_equal(unix_recv_fds(k->socket, &m, sizeof(m), fds, &len, &n), 0);
	if (len != sizeof(m))
		finish(k, 0, "a pod");
	assert_int_equal(m.kind, MESSAGE_UP);
	assert_int_equal(n, 1);
	pid_t agent = pid_of(fds[0]);
	fd_close(fds[0]);
	return agent;
}

/* A pod with @option, unless that is NULL. Its agent. */
static pid_t start_pod(void **state, struct keeper *k, const char *option)
{
	begin_pod(state, k, option, NULL, -EBADF);
	return await_pod(k);
}

static void end_pod(struct keeper *k)
{
	assert_int_equal(shutdown(k->socket, SHUT_WR), 0);
	finish(k, 0, "husk-agent: killed by signal 9\n");
}

/* Images have as many places as a pod has apps, and no more, and whatever is wrong is answered. */
static void test_messages(void **state)
{
	static const int none[] = { -1, AGENT_APPS_MAX, AGENT_APPS_MAX + 1, INT32_MIN, INT32_MAX };
	struct keeper k;
	char want[64];
	if (geteuid() != 0)
		skip();
	start_pod(state, &k, NULL);
	cleanup_fd int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		snprintf(want, sizeof(want), "slot %d: there is none", none[i]);
		assert_string_equal(ask(&k, MESSAGE_PLUG, none[i], file), want);
		assert_string_equal(ask(&k, MESSAGE_UNPLUG, none[i], -1), want);
	}
	/* Not an image, which FUSE finds out later, if at all. */
	assert_null(strstr(ask(&k, MESSAGE_PLUG, AGENT_APPS_MAX - 1, file), "there is none"));
	assert_string_equal(ask(&k, MESSAGE_UNPLUG, AGENT_APPS_MAX - 1, -1), "");
	assert_string_equal(ask(&k, MESSAGE_UNPLUG, 0, -1), "");
	assert_string_equal(ask(&k, MESSAGE_PLUG, 0, -1), "message 0: not understood");
	assert_string_equal(ask(&k, MESSAGE_DONE, 0, -1), "message 3: not understood");
	end_pod(&k);
}

/* A message that is too short comes from nobody who is to be obeyed. */
static void test_short_message(void **state)
{
	struct keeper k;
	char byte;
	if (geteuid() != 0)
		skip();
	start_pod(state, &k, NULL);
	assert_int_equal(send(k.socket, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(k.socket, &byte, 1, 0), 0);
	finish(&k, 0, "husk-agent: killed by signal 9\n");
}

/* Whether process @pid has what is descriptor @fd of process @other. */
static bool has_descriptor(pid_t pid, pid_t other, int fd)
{
	char path[64], want[256] = "", link[256];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)other, fd);
	assert_true(readlink(path, want, sizeof(want) - 1) > 0);
	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, i);
		memset(link, 0, sizeof(link));
		if (readlink(path, link, sizeof(link) - 1) > 0 && strcmp(link, want) == 0)
			return true;
	}
	return false;
}

/* By a program in version 2, or by a list in version 1 that does not begin with all of them. */
static bool are_devices_filtered(const struct pod_cgroup *g)
{
	char first = 0;
	union bpf_attr query;
	memset(&query, 0, sizeof(query));
	query.query.target_fd = (uint32_t)g->fds[CGROUP_UNIFIED];
	query.query.attach_type = BPF_CGROUP_DEVICE;
	if (g->fds[CGROUP_UNIFIED] >= 0 &&
	    syscall(SYS_bpf, BPF_PROG_QUERY, &query, sizeof(query)) == 0 &&
	    query.query.prog_cnt > 0)
		return true;
	if (g->fds[CGROUP_DEVICES] < 0)
		return false;
	cleanup_fd int fd = openat(g->fds[CGROUP_DEVICES], "devices.list", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, &first, 1) == 1 && first != 'a';
}

/*
 * Whoever root is in the pod: his agent cannot speak as husk-ns does, holds the lock for as long as
 * it lives, may use no more of the host's memory for its root directory than that has to, and has
 * the devices of apps alone, in whose list nobody of the pod gets to write.
 */
static void test_agent(void **state)
{
	static const char *const options[] = { "--userns", NULL };
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
		struct keeper k;
		struct statvfs fs;
		struct err e = ERR_INIT;
		char path[64];
		pid_t agent = start_pod(state, &k, options[i]);
		assert_false(has_descriptor(agent, k.pid, HELPER_FD_SOCKET));
		assert_true(has_descriptor(agent, k.pid, HELPER_FD_LOCK));
		snprintf(path, sizeof(path), "/proc/%d/root", (int)agent);
		assert_int_equal(statvfs(path, &fs), 0);
		assert_int_equal(fs.f_blocks * fs.f_frsize, 1 << 20);
		snprintf(path, sizeof(path), "/proc/%d/root/cgroup/devices", (int)agent);
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(pod_cgroup_open(uuid.text, "", &g, &e), 0);
		if (pod_cgroup_is_there(&g)) /* a container may have none */
			assert_true(are_devices_filtered(&g));
		end_pod(&k);
	}
}

/* An image whose files somebody has open still goes from the pod at once. */
static void test_busy_image(void **state)
{
	struct keeper k;
	char text[1024];
	if (geteuid() != 0)
		skip();
	fixture_write(state, "name", "text", 4);
	snprintf(text, sizeof(text), "cd '%s' && mksquashfs name image -quiet -no-progress >&2",
		 fixture_path(state));
	assert_int_equal(system(text), 0);
	pid_t agent = start_pod(state, &k, NULL);
	cleanup_fd int image = openat(fixture_dir(state), "image", O_RDONLY | O_CLOEXEC);
	assert_string_equal(ask(&k, MESSAGE_PLUG, 3, image), "");
	snprintf(text, sizeof(text), "/proc/%d/root/disks/3/name", (int)agent);
	int file = open(text, O_RDONLY | O_CLOEXEC);
	assert_true(file >= 0);
	assert_string_equal(ask(&k, MESSAGE_UNPLUG, 3, -1), "");
	assert_int_equal(access(text, F_OK), -1);
	assert_false(has_descriptor(k.pid, getpid(), image)); /* nor is its file kept */
	fd_close(file);
	end_pod(&k);
}

/* What @fn returns in the namespace @name of the agent. */
static int call_inside(pid_t agent, const char *name, int (*fn)(pid_t agent))
{
	char path[64];
	int status;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)agent, name);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		_exit(fd < 0 || setns(fd, 0) < 0 ? 100 : fn(agent));
	}
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Whether the agent's line of version 2 in cgroup(5) ends in @end, as seen from where we are. */
static bool is_in_group(pid_t agent, const char *end)
{
	char path[64];
	size_t len;
	cleanup_free char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)agent);
	if (file_read_path(path, 65536, &text, &len) < 0)
		return false;
	const char *line = strstr(text, "0::");
	size_t n = line ? strcspn(line, "\n") : 0;
	return n >= strlen(end) && strncmp(line + n - strlen(end), end, strlen(end)) == 0;
}

static int check_root_group(pid_t agent)
{
	return is_in_group(agent, "0::/") ? 0 : 1;
}

/*
 * The groups that a pod sees begin with its own. In a tree of version 2, the agent is beside those
 * of the apps, each of which sees its own, and sees what the host does: where that has made
 * namespaces the bounds of groups, it could move apps to no other than its own.
 */
static void test_groups(void **state)
{
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct err e = ERR_INIT;
	struct keeper k;
	char beside[UUID_TEXT_LEN + 16];
	if (geteuid() != 0)
		skip();
	pid_t agent = start_pod(state, &k, "--userns");
	assert_int_equal(pod_cgroup_open(uuid.text, "", &g, &e), 0);
	snprintf(beside, sizeof(beside), "/%s/agent", uuid.text);
	if (pod_cgroup_is_v1(&g)) /* there is one group for all */
		assert_int_equal(call_inside(agent, "cgroup", check_root_group), 0);
	else if (g.fds[CGROUP_UNIFIED] >= 0)
		assert_true(is_in_group(agent, beside));
	end_pod(&k);
}

/* Without a capability, as users of a pod have none. */
static int bind_port_80(pid_t agent)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(80) };
	(void)agent;
	if (setresuid(65534, 65534, 65534) < 0)
		return 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0 ? 0 : 2;
}

/* In a network of its own, connected or not, whoever is in the pod listens on any port. */
static void test_low_ports(void **state)
{
	struct keeper k;
	int pair[2], fds[UNIX_FDS_MAX];
	size_t len, n;
	char byte;
	if (geteuid() != 0)
		skip();
	pid_t agent = start_pod(state, &k, "--userns");
	assert_int_equal(call_inside(agent, "net", bind_port_80), 0);
	end_pod(&k);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	begin_pod(state, &k, "--userns", "--net=connect", pair[1]);
	assert_int_equal(unix_recv_fds(pair[0], &byte, 1, fds, &len, &n), 0);
	assert_int_equal(n, 1);
	fd_close(fds[0]);
	assert_int_equal(write(pair[0], "", 1), 1); /* it is connected */
	agent = await_pod(&k);
	assert_int_equal(call_inside(agent, "net", bind_port_80), 0);
	end_pod(&k);
	fd_close(pair[0]);
}

static int check_loopback(pid_t agent)
{
	struct ifreq req = { .ifr_name = "lo" };
	(void)agent;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &req) < 0)
		return 1;
	return req.ifr_flags & IFF_UP ? 0 : 2;
}

/* A new network namespace, in which nothing is up. */
static int make_netns(void)
{
	cleanup_fd int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(own >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(setns(own, CLONE_NEWNET), 0);
	return fd;
}

/* Root of a pod that shares a network does not own it, and could not bring lo up itself. */
static void test_shared_network(void **state)
{
	struct keeper k;
	if (geteuid() != 0)
		skip();
	begin_pod(state, &k, "--userns", "--net=join", make_netns());
	assert_int_equal(call_inside(await_pod(&k), "net", check_loopback), 0);
	end_pod(&k);
}

static int access_in_pod(pid_t agent, const char *path)
{
	char full[128];
	snprintf(full, sizeof(full), "/proc/%d/root%s", (int)agent, path);
	return access(full, F_OK);
}

/* A host, or a container above all, may lack some of the devices of apps: a pod has the others. */
static void test_missing_device(void **state)
{
	struct keeper k;
	if (geteuid() != 0)
		skip();
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	bool covered = mount("none", "/dev/net", "tmpfs", 0, NULL) == 0;
	assert_true(covered || errno == ENOENT);
	pid_t agent = start_pod(state, &k, "--userns");
	assert_int_equal(access_in_pod(agent, "/dev/net/tun"), -1);
	assert_int_equal(access_in_pod(agent, "/dev/null"), 0);
	end_pod(&k);
	if (covered)
		assert_int_equal(umount2("/dev/net", MNT_DETACH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_options),        fixture_test(test_messages),
		fixture_test(test_short_message),  fixture_test(test_agent),
		fixture_test(test_busy_image),     fixture_test(test_groups),
		fixture_test(test_low_ports),      fixture_test(test_shared_network),
		fixture_test(test_missing_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

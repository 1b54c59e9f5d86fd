/* SPDX-License-Identifier: Apache-2.0 */
/* With plugins that are scripts and note what they are called for; and with those of Debian. */
#include "stage1/net/cni.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/spawn.h"
#include "lib/wire/stage1.h"
#include "stage1/net/cni/networks.h"
#include "stage1/net/cni/state.h"
#include "tests/support/fixture.h"

#define POD     "0d6ba5bc-7d57-4ae5-a0b3-5a31e7ac2b54"
#define PLUGINS "/usr/lib/cni"
#define RESULT                                                                              \
	"{\"cniVersion\":\"0.4.0\",\"interfaces\":[{\"name\":\"eth0\",\"mac\":"             \
	"\"ee:a8:72:92:8e:80\",\"sandbox\":\"/x\"}],\"ips\":[{\"interface\":0,\"version\":" \
	"\"6\",\"address\":\"fd00::2/64\"},{\"interface\":0,\"version\":\"4\",\"address\":" \
	"\"10.1.0.2/20\",\"gateway\":\"10.1.0.1\"}],\"dns\":{\"domain\":\"example.com\"}}"

static struct err e;
static struct cni_attachments list;
static struct cni_done done;
static struct strv dirs;
static size_t asked, n_nets; /* of cni_check() */

static struct cni_runtime runtime(void)
{
	e = ERR_INIT;
	return (struct cni_runtime){
		.container = POD, .netns = "/run/ns", .dirs = &dirs, .cancel_fd = -EBADF
	};
}

/*
 * A plugin that notes its calls in "log", and their input in "input"; it fails if there is a file
 * fail-NAME-COMMAND, and ends by itself only when killed if there is hang-NAME-COMMAND.
 */
static void make_plugin(void **state, const char *name)
{
	char text[4096];
	const char *dir = fixture_path(state);
	int n = snprintf(text, sizeof(text),
			 "#!/bin/sh\ncd %s\necho \"$CNI_COMMAND %s $CNI_IFNAME\" >>log\n"
			 "cat >input\n[ ! -e fail-%s-$CNI_COMMAND ] || "
			 "{ echo '{\"code\":1,\"msg\":\"refused\"}'; exit 1; }\n"
			 "[ ! -e hang-%s-$CNI_COMMAND ] || tail -f /dev/null\n"
			 "[ $CNI_COMMAND = ADD ] && cat result\nexit 0\n",
			 dir, name, name, name);
	fixture_write(state, name, text, (size_t)n);
	assert_int_equal(fchmodat(fixture_dir(state), name, 0755, 0), 0);
}

static void add_network(const char *name, const char *conf)
{
	struct cni_attachment *a = &list.v[list.n];
	cni_attachment_init(a);
	assert_int_equal(cni_config_parse(conf, strlen(conf), &a->config, &e), 0);
	assert_string_equal(a->config.name, name);
	snprintf(a->if_name, sizeof(a->if_name), "eth%zu", list.n++);
}

/* Two networks: x of a and b, y of c. */
static void begin(void **state)
{
	make_plugin(state, "a");
	make_plugin(state, "b");
	make_plugin(state, "c");
	fixture_write(state, "result", RESULT, strlen(RESULT));
	strv_init(&dirs, 4);
	assert_int_equal(strv_add(&dirs, fixture_path(state)), 0);
	add_network("x", "{\"name\":\"x\",\"cniVersion\":\"0.4.0\",\"plugins\":[{\"type\":\"a\"},"
			 "{\"type\":\"b\",\"capabilities\":{\"portMappings\":true}}]}");
	add_network("y", "{\"name\":\"y\",\"cniVersion\":\"0.4.0\",\"type\":\"c\","
			 "\"capabilities\":{\"portMappings\":true}}");
}

static void end(void)
{
	cni_attachments_deinit(&list);
	strv_deinit(&dirs);
}

static void check_file(void **state, const char *name, const char *want)
{
	cleanup_free char *text = NULL;
	int r = file_read_at(fixture_dir(state), name, 65536, &text, NULL);
	assert_int_equal(r, want ? 0 : -ENOENT);
	if (want)
		assert_string_equal(text, want);
}

/* What was called, and nothing of it is remembered any more. */
static void check_undone(void **state, const char *log)
{
	check_file(state, "log", log);
	check_file(state, CNI_STATE_FILE, NULL);
	check_file(state, POD_FILE_NET_INFO, NULL);
}

static void test_add(void **state)
{
	struct pod_port port = { .port = 80, .host_port = 8080 };
	const struct pod_ports ports = { &port, 1 };
	begin(state);
	struct cni_runtime rt = runtime();
	rt.ports = &ports;
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), 0);
	assert_int_equal(list.n, 0);
	assert_int_equal(done.nets.n, 2);
	assert_string_equal(done.nets.nets[0].ip, "10.1.0.2");
	assert_string_equal(done.nets.nets[0].mask, "255.255.240.0");
	assert_string_equal(done.nets.nets[0].ips[0], "fd00::2/64");
	assert_string_equal(done.nets.nets[0].mac, "ee:a8:72:92:8e:80");
	assert_string_equal(done.dns.domain, "example.com");
	assert_int_equal(done.nets.nets[1].n_ips, 0); /* they are eth0's */
	assert_true(done.ports_forwarded);
	cni_done_deinit(&done);
	/* The ports went to the first one. */
	check_file(state, "input", "{\"name\":\"y\",\"cniVersion\":\"0.4.0\",\"type\":\"c\"}");
	assert_int_equal(cni_check(&rt, fixture_dir(state), &asked, &n_nets, &e), 0);
	strv_deinit(&dirs);
	begin(state);
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -EEXIST);
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), 0);
	check_undone(state, "ADD a eth0\nADD b eth0\nADD c eth1\n"
			    "CHECK a eth0\nCHECK b eth0\nCHECK c eth1\n"
			    "DEL c eth1\nDEL b eth0\nDEL a eth0\n");
	check_file(state, "input",
		   "{\"type\":\"a\",\"name\":\"x\",\"cniVersion\":\"0.4.0\",\"prevResult\":" RESULT
		   "}");
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), 0);
	end();
}

static void test_add_fails(void **state)
{
	begin(state);
	struct cni_runtime rt = runtime();
	fixture_write(state, "fail-c-ADD", "", 0);
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -EIO);
	assert_string_equal(e.text, "network \"y\": plugin \"c\": refused");
	check_file(state, "log", "ADD a eth0\nADD b eth0\nADD c eth1\n");
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), 0);
	check_undone(state, "ADD a eth0\nADD b eth0\nADD c eth1\n"
			    "DEL c eth1\nDEL b eth0\nDEL a eth0\n");
	end();
}

/* What cannot be undone is there for the next one who tries; what was not begun is not undone. */
static void test_undo_fails(void **state)
{
	begin(state);
	struct cni_runtime rt = runtime();
	fixture_write(state, "fail-b-ADD", "", 0);
	fixture_write(state, "fail-b-DEL", "", 0);
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -EIO);
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), -EIO);
	check_file(state, "log", "ADD a eth0\nADD b eth0\nDEL b eth0\nDEL a eth0\n");
	assert_string_equal(e.text,
			    "failed to remove network: network \"x\": plugin \"b\": refused");
	assert_int_equal(unlinkat(fixture_dir(state), "fail-b-DEL", 0), 0);
	assert_int_equal(unlinkat(fixture_dir(state), "log", 0), 0);
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), 0);
	check_undone(state, "DEL b eth0\nDEL a eth0\n");
	end();
}

/* One that hangs leaves time to those behind it. */
static void test_delete_hangs(void **state)
{
	begin(state);
	struct cni_runtime rt = runtime();
	rt.del_ms = 6000;
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), 0);
	cni_done_deinit(&done);
	fixture_write(state, "hang-c-DEL", "", 0);
	fixture_write(state, "hang-b-DEL", "", 0);
	assert_int_equal(unlinkat(fixture_dir(state), "log", 0), 0);
	int64_t start = clock_monotonic_ns();
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), -ETIMEDOUT);
	assert_true(clock_monotonic_ns() - start < rt.del_ms * NS_PER_MS);
	assert_string_equal(e.text, "failed to remove network: network \"y\": plugin \"c\": does "
				    "not end within 3 s");
	check_file(state, "log", "DEL c eth1\nDEL b eth0\nDEL a eth0\n");
	end();
}

static void test_bad_results(void **state)
{
	static const char *const cases[][2] = {
		{ "", "prints no result" },
		{ "hello", "its result: it is not JSON" },
		{ "{\"ips\":7}", "its result: \"ips\" is not a list of at most 16" },
		{ "{\"cniVersion\":\"0.2.0\"}",
		  "its result: \"cniVersion\" is not 0.4.0, in which it was asked" },
	};
	char want[256];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(state);
		struct cni_runtime rt = runtime();
		fixture_write(state, "result", cases[i][0], strlen(cases[i][0]));
		assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -EBADMSG);
		snprintf(want, sizeof(want), "network \"x\": plugin \"a\": %s", cases[i][1]);
		assert_string_equal(e.text, want);
		assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), 0);
		check_undone(state, "ADD a eth0\nDEL b eth0\nDEL a eth0\n");
		assert_int_equal(unlinkat(fixture_dir(state), "log", 0), 0);
		end();
	}
}

/* Nothing is begun if a plugin is missing; one that moved is found again. */
static void test_missing(void **state)
{
	char other[PATH_MAX];
	begin(state);
	struct cni_runtime rt = runtime();
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "other", 0755), 0);
	snprintf(other, sizeof(other), "%s/other", fixture_path(state));
	assert_int_equal(strv_add(&dirs, other), 0);
	assert_int_equal(renameat(dir, "c", dir, "d"), 0);
	assert_int_equal(cni_add(&rt, &list, dir, &done, &e), -ENOENT);
	assert_non_null(strstr(e.text, "network \"y\": plugin \"c\": not found in /"));
	check_undone(state, NULL);
	strv_deinit(&dirs);
	begin(state);
	assert_int_equal(strv_add(&dirs, other), 0);
	assert_int_equal(cni_add(&rt, &list, dir, &done, &e), 0);
	cni_done_deinit(&done);
	assert_int_equal(renameat(dir, "a", dir, "other/a"), 0);
	assert_int_equal(cni_check(&rt, dir, &asked, &n_nets, &e), -ENOENT);
	assert_int_equal(cni_delete(&rt, dir, &e), 0);
	end();
}

static void limit_files(rlim_t max)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk is full before the first plugin runs; when its result is kept; at the very end. */
static void test_disk_full(void **state)
{
	char result[4096];
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	begin(state);
	struct cni_runtime rt = runtime();
	assert_int_equal(sigaction(SIGXFSZ, &ignore, &old), 0);
	limit_files(100);
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -EFBIG);
	limit_files(RLIM_INFINITY);
	assert_string_equal(e.text, "cannot write the pod's file "
				    "\"cni.json\": File too large");
	check_undone(state, NULL);
	end();
	begin(state);
	int n = snprintf(result, sizeof(result), "{\"x\":\"%03000d\"}", 0);
	fixture_write(state, "result", result, (size_t)n);
	limit_files(3500);
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -EFBIG);
	limit_files(RLIM_INFINITY);
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), 0);
	check_undone(state, "ADD a eth0\nADD b eth0\nDEL b eth0\nDEL a eth0\n");
	end();
	begin(state);
	assert_int_equal(mkdirat(fixture_dir(state), POD_FILE_NET_INFO, 0755), 0);
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -EISDIR);
	assert_int_equal(unlinkat(fixture_dir(state), POD_FILE_NET_INFO, AT_REMOVEDIR), 0);
	assert_int_equal(sigaction(SIGXFSZ, &old, NULL), 0);
	end();
}

static void test_cancel(void **state)
{
	int fds[2];
	begin(state);
	struct cni_runtime rt = runtime();
	fixture_write(state, "hang-b-ADD", "", 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	cleanup_fd int in = fds[0];
	fd_close(fds[1]);
	rt.cancel_fd = in;
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -ECANCELED);
	rt.cancel_fd = -EBADF;
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), 0);
	check_file(state, CNI_STATE_FILE, NULL);
	end();
	begin(state);
	rt.add_ms = 3000;
	assert_int_equal(cni_add(&rt, &list, fixture_dir(state), &done, &e), -ETIMEDOUT);
	assert_string_equal(e.text, "network \"x\": plugin \"b\": does "
				    "not end within 3 s");
	assert_int_equal(cni_delete(&rt, fixture_dir(state), &e), 0);
	check_file(state, CNI_STATE_FILE, NULL);
	end();
}

/* A process that lives in a network namespace of its own. */
static pid_t make_netns(char path[64])
{
	int fds[2];
	char c;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(CLONE_NEWNET) < 0)
			_exit(1);
		(void)!write(fds[1], "x", 1);
		close(fds[1]);
		pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	snprintf(path, 64, "/proc/%d/ns/net", (int)pid);
	return pid;
}

/* From here on this process has a network, a /run and a /var/lib of its own. */
static bool enter_lab(void)
{
	static bool entered;
	const char *ci = getenv("CI");
	bool has_plugins = access(PLUGINS "/ptp", X_OK) == 0;
	if (!has_plugins && ci && strcmp(ci, "true") == 0)
		fail_msg("no plugins in " PLUGINS);
	if (geteuid() != 0 || !has_plugins) {
		print_message("not root, or no plugins in " PLUGINS "\n");
		return false;
	}
	if (entered)
		return true;
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("run", "/run", "tmpfs", 0, NULL) < 0 ||
	    mount("lib", "/var/lib", "tmpfs", 0, NULL) < 0) {
		print_message("no namespaces: %s\n", strerror(errno));
		return false;
	}
	entered = true;
	return true;
}

/* How many network interfaces there are but for bridges and lo. */
static int count_interfaces(void)
{
	int n = 0;
	struct if_nameindex *all = if_nameindex();
	assert_non_null(all);
	for (struct if_nameindex *at = all; at->if_name; at++)
		n += strcmp(at->if_name, "lo") != 0 && strcmp(at->if_name, "husk-br") != 0;
	if_freenameindex(all);
	return n;
}

/* What tells that interfaces come and go. */
static int watch_interfaces(void)
{
	const struct sockaddr_nl a = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* The kernel takes a namespace apart when it has time for that. */
static void wait_no_interfaces(int changes)
{
	char message[8192];
	struct pollfd p = { changes, POLLIN, 0 };
	while (count_interfaces() > 0) {
		assert_int_equal(poll(&p, 1, 60000), 1);
		assert_true(recv(changes, message, sizeof(message), 0) > 0);
	}
}

/* The exit code of a shell. */
static int shell(const char *script)
{
	char name[] = "sh", option[] = "-c", text[128];
	char *argv[] = { name, option, text, NULL };
	struct spawn_plan plan = { .program = "/bin/sh", .argv = argv };
	pid_t pid;
	int status;
	assert_int_equal(str_copy(text, sizeof(text), script), 0);
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	assert_int_equal(spawn_wait(pid, &status), 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whether something of the pod is left: leases, rules of iptables. */
static bool has_leases(void)
{
	return shell("grep -qr " POD " /var/lib/cni") == 0;
}

static bool has_rules(void)
{
	return shell("iptables-save | grep -q " POD) == 0;
}

/*
 * ADD, CHECK, DEL of all that is in @list. With ports there is no CHECK: portmap 1.1.1 wants rules
 * for IPv6, too, also if the pod has no such address.
 */
static void run_real(void **state, const char *ip, bool ports)
{
	struct pod_port port = { .port = 80, .host_port = 8080 };
	const struct pod_ports one = { &port, 1 };
	char netns[64];
	pid_t pid = make_netns(netns);
	struct cni_runtime rt = runtime();
	rt.ports = ports ? &one : NULL;
	rt.netns = netns;
	strv_init(&dirs, 1);
	assert_int_equal(strv_add(&dirs, PLUGINS), 0);
	if (cni_add(&rt, &list, fixture_dir(state), &done, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(done.nets.nets[0].ip, ip);
	assert_true(done.ports_forwarded && done.nets.nets[0].mac[0]);
	cni_done_deinit(&done);
	assert_true(count_interfaces() > 0 && has_leases() && has_rules());
	if (!ports && cni_check(&rt, fixture_dir(state), &asked, &n_nets, &e) < 0)
		fail_msg("%s", e.text);
	if (cni_delete(&rt, fixture_dir(state), &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(count_interfaces(), 0);
	assert_false(has_leases() || has_rules());
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	end();
}

static void test_bridge(void **state)
{
	if (!enter_lab())
		skip();
	for (int ports = 0; ports < 2; ports++) {
		add_network("br", "{\"name\":\"br\",\"cniVersion\":\"1.0.0\",\"plugins\":[{"
				  "\"type\":\"bridge\",\"bridge\":\"husk-br\",\"isGateway\":true,"
				  "\"ipMasq\":true,\"ipam\":{\"type\":\"host-local\",\"subnet\":"
				  "\"10.99.0.0/24\"}},{\"type\":\"portmap\",\"capabilities\":{"
				  "\"portMappings\":true}}]}");
		str_copy(list.v[0].args, sizeof(list.v[0].args),
			 "IP=10.99.0.77;MAC=02:00:5e:00:53:01");
		run_real(state, "10.99.0.77", ports);
	}
}

static void test_built_in(void **state)
{
	static const char *const ips[] = { "172.16.28.2", "172.31.0.2" };
	CLEANUP(cni_networks_deinit) struct cni_networks nets = { .v = NULL };
	if (!enter_lab())
		skip();
	assert_int_equal(cni_networks_add_built_in(&nets), 0);
	assert_int_equal(nets.n, ARRAY_SIZE(ips));
	for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
		cni_attachment_init(&list.v[0]);
		cni_config_share(&nets.v[i].config, &list.v[0].config);
		str_copy(list.v[0].if_name, sizeof(list.v[0].if_name), "eth0");
		list.n = 1;
		run_real(state, ips[i], true);
	}
}

/* The namespace went before, as with a host that was started again. */
static void test_netns_gone(void **state)
{
	char netns[64];
	CLEANUP(cni_networks_deinit) struct cni_networks nets = { .v = NULL };
	if (!enter_lab())
		skip();
	pid_t pid = make_netns(netns);
	struct cni_runtime rt = runtime();
	rt.netns = netns;
	strv_init(&dirs, 1);
	assert_int_equal(strv_add(&dirs, PLUGINS), 0);
	assert_int_equal(cni_networks_add_built_in(&nets), 0);
	cni_attachment_init(&list.v[0]);
	cni_config_share(&nets.v[0].config, &list.v[0].config);
	str_copy(list.v[0].if_name, sizeof(list.v[0].if_name), "eth0");
	list.n = 1;
	if (cni_add(&rt, &list, fixture_dir(state), &done, &e) < 0)
		fail_msg("%s", e.text);
	cni_done_deinit(&done);
	cleanup_fd int changes = watch_interfaces();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	rt.netns = "";
	if (cni_delete(&rt, fixture_dir(state), &e) < 0)
		fail_msg("%s", e.text);
	assert_false(has_leases());
	wait_no_interfaces(changes);
	/* Those of ptp, which does not know the addresses any more: see cni_delete(). */
	assert_true(has_rules());
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_add),          fixture_test(test_add_fails),
		fixture_test(test_undo_fails),   fixture_test(test_bad_results),
		fixture_test(test_delete_hangs), fixture_test(test_missing),
		fixture_test(test_disk_full),    fixture_test(test_cancel),
		fixture_test(test_bridge),       fixture_test(test_built_in),
		fixture_test(test_netns_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

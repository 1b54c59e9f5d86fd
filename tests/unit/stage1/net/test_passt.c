/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Its words; and programs in its place, which are ready, fail, or say nothing. That pods are
 * connected by it, tests/system/network-user.sh asks.
 */
#include "stage1/net/passt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static struct net net;
static struct net_dns dns;
static struct pod_ports ports;
static struct err e;

static int setup(void **state)
{
	(void)state;
	net_dns_init(&dns);
	return passt_describe(true, true, &net, &dns);
}

static int teardown(void **state)
{
	(void)state;
	net_dns_deinit(&dns);
	return 0;
}

/* The words, with blanks between them. */
static char *words(pid_t holder)
{
	CLEANUP(strv_deinit) struct strv argv;
	cleanup_buf struct buf b;
	strv_init(&argv, PASST_ARGS_MAX);
	buf_init(&b, 16384);
	assert_int_equal(passt_args(&ports, &net, holder, &argv, &e), 0);
	for (size_t i = 0; i < argv.n; i++)
		assert_int_equal(buf_printf(&b, "%s%s", i ? " " : "", argv.v[i]), 0);
	return buf_take_string(&b);
}

#define ALWAYS " --foreground --quiet --pid passt.ready --no-map-gw --no-dhcp --no-dhcpv6 --no-ra"
#define V4     " --address=10.0.2.15 --netmask=24 --gateway=10.0.2.2 --dns-forward=10.0.2.3"
#define V6     " --address=fd68:7573:6b::15 --gateway=fe80::2 --dns-forward=fd68:7573:6b::3"

static void test_words(void **state)
{
	(void)state;
	struct pod_port tcp = { .port = 80, .host_port = 8080, .host_ip = "127.0.0.1" };
	struct pod_port udp = { .protocol = PORT_UDP, .port = 53, .host_port = 5353 };
	struct pod_port sctp = { .protocol = PORT_SCTP, .port = 9, .host_port = 9 };
	cleanup_free char *vm = words(0);
	assert_string_equal(vm,
			    "passt" ALWAYS " --fd=3" V4 V6 " --tcp-ports=none --udp-ports=none");
	assert_int_equal(pod_ports_add(&ports, &tcp), 0);
	assert_int_equal(pod_ports_add(&ports, &udp), 0);
	cleanup_free char *ns = words(4711);
	assert_string_equal(ns, "pasta" ALWAYS " --config-net --ns-ifname eth0 -T none -U none "
				"--ns-mac-addr=02:68:75:73:6b:01" V4 V6
				" --tcp-ports=127.0.0.1/8080:80 --udp-ports=5353:53 4711");
	assert_int_equal(pod_ports_add(&ports, &sctp), 0);
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, PASST_ARGS_MAX);
	assert_int_equal(passt_args(&ports, &net, 0, &argv, &e), -EOPNOTSUPP);
	assert_string_equal(e.text, "port 9: passt forwards no SCTP");
	pod_ports_deinit(&ports);
}

static void test_all_ports(void **state)
{
	(void)state;
	for (uint16_t n = 1; n <= POD_PORTS_MAX; n++) {
		struct pod_port one = { .port = n, .host_port = (uint16_t)(1000 + n) };
		assert_int_equal(pod_ports_add(&ports, &one), 0);
	}
	cleanup_free char *ns = words(4711);
	assert_non_null(strstr(ns, " --tcp-ports=1256:256 --udp-ports=none 4711"));
	pod_ports_deinit(&ports);
}

static void test_one_family(void **state)
{
	struct net_dns other;
	(void)state;
	net_dns_init(&other);
	assert_int_equal(passt_describe(false, true, &net, &other), 0);
	cleanup_free char *v6 = words(0);
	assert_string_equal(v6,
			    "passt" ALWAYS " --fd=3 -6" V6 " --tcp-ports=none --udp-ports=none");
	assert_int_equal(other.nameservers.n, 1);
	assert_string_equal(other.nameservers.v[0], "fd68:7573:6b::3");
	net_dns_deinit(&other);
	assert_int_equal(passt_describe(true, true, &net, &dns), 0);
}

/* A program that does what @script says, started as passt for a VM. */
static int start(void **state, const char *script, int cancel_fd, struct passt *p)
{
	char program[PATH_MAX], text[256];
	int n = snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", script);
	fixture_write(state, "program", text, (size_t)n);
	assert_int_equal(fchmodat(fixture_dir(state), "program", 0755, 0), 0);
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	snprintf(program, sizeof(program), "%s/program", fixture_path(state));
	const struct passt_input in = { program, &ports, -EBADF, cancel_fd };
	*p = PASST_INIT;
	e = ERR_INIT;
	int r = passt_start(&in, &net, p, &e);
	assert_int_equal(faccessat(fixture_dir(state), PASST_FIFO, F_OK, 0), -1);
	return r;
}

/* It has the other end of the stream; when it is stopped it is gone. */
static void test_ready(void **state)
{
	struct passt p;
	char word[4] = "";
	assert_int_equal(start(state, "echo $$ >passt.ready; echo end >&3; exec tail -f /dev/null",
			       -EBADF, &p),
			 0);
	assert_int_equal(read(p.stream, word, sizeof(word)), 4);
	assert_memory_equal(word, "end\n", 4);
	pid_t pid = p.pid;
	struct pollfd end = { p.pidfd, POLLIN, 0 };
	assert_int_equal(poll(&end, 1, 0), 0);
	passt_stop(&p);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(p.pid, 0);
	assert_int_equal(p.stream, -EBADF);
	passt_stop(&p);
}

static void test_fails(void **state)
{
	struct passt p;
	assert_int_equal(
		start(state,
		      "echo 'Port 80: denied' >&2; echo 'Failed to send 9 bytes' >&2; exit 1",
		      -EBADF, &p),
		-EIO);
	assert_string_equal(e.text, "passt: Port 80: denied");
	passt_stop(&p);
	assert_int_equal(start(state, "exit 1", -EBADF, &p), -EIO);
	assert_string_equal(e.text, "passt: it ended without a word");
	passt_stop(&p);
	assert_int_equal(start(state, "echo warning >&2", -EBADF, &p), -EIO);
	assert_string_equal(e.text, "passt: exit code 0");
	passt_stop(&p);
	/* More than a pipe has room for, and than is looked at. */
	assert_int_equal(start(state, "yes too much >&2 2>/dev/null | head -c 200000 >&2; exit 1",
			       -EBADF, &p),
			 -EIO);
	passt_stop(&p);
}

/* Behind its start, by a signal or by itself. */
static void test_ends(void **state)
{
	struct passt p;
	assert_int_equal(start(state, "echo $$ >passt.ready; kill -9 $$", -EBADF, &p), 0);
	struct pollfd end = { p.pidfd, POLLIN, 0 };
	assert_int_equal(poll(&end, 1, -1), 1);
	assert_int_equal(passt_ended(&p, &e), -EIO);
	assert_string_equal(e.text, "passt: killed by signal 9");
	assert_int_equal(p.pid, 0);
	passt_stop(&p);
	assert_int_equal(
		start(state, "echo $$ >passt.ready; echo 'no more' >&2; exit 1", -EBADF, &p), 0);
	assert_int_equal(passt_ended(&p, &e), -EIO);
	assert_string_equal(e.text, "passt: no more");
	passt_stop(&p);
}

/* What it closes early is neither its end nor a reason to look again and again. */
static void test_closes_early(void **state)
{
	struct passt p;
	struct timespec before, behind;
	assert_int_equal(start(state,
			       "exec 2>&-; echo $$ >passt.ready; exec 3>&-; exec tail -f /dev/null",
			       -EBADF, &p),
			 0);
	passt_stop(&p);
	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before), 0);
	assert_int_equal(
		start(state,
		      ": >passt.ready; sleep 1; echo 'Port 80: denied' >&2; exec 2>&-; exit 1",
		      -EBADF, &p),
		-EIO);
	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &behind), 0);
	assert_string_equal(e.text, "passt: Port 80: denied");
	assert_true(behind.tv_sec * 1000 + behind.tv_nsec / 1000000 <
		    before.tv_sec * 1000 + before.tv_nsec / 1000000 + 500);
	passt_stop(&p);
}

static void test_cancelled(void **state)
{
	int pair[2];
	struct passt p;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	close(pair[1]);
	assert_int_equal(start(state, "exec tail -f /dev/null", pair[0], &p), -ECANCELED);
	passt_stop(&p);
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),      cmocka_unit_test(test_all_ports),
		cmocka_unit_test(test_one_family), fixture_test(test_ready),
		fixture_test(test_fails),          fixture_test(test_ends),
		fixture_test(test_closes_early),   fixture_test(test_cancelled),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What an app finds beside its image, and what it does not: a real agent and its apps. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/client.h"

/* An app can make nodes of disks, and open none. */
static void test_devices(void **state)
{
	(void)state;
	const char *out = run("a", (struct how){ .argv = { "/bin/app", "disk", "/dev/sda", "disk",
							   "/sda", "disk", "/dev/shm/sda" } });
	assert_string_equal(out, "/dev/sda EACCES\n/sda EACCES\n/dev/shm/sda EACCES\n");
	out = run("b", (struct how){ .argv = { "/bin/app", "disk", "/dev/mqueue/sda", "disk",
					       "/dev/net/sda", "disk", "/dev/pts/sda" } });
	assert_null(strstr(out, " ok\n"));
	out = run("c", (struct how){ .argv = { "/bin/app", "openw", "/dev/null", "open",
					       "/dev/zero", "open", "/dev/urandom" } });
	assert_string_equal(out, "/dev/null ok\n/dev/zero ok\n/dev/urandom ok\n");
	/*
	 * Opening it fails only where there is no such device; without the right node, with EACCES.
	 */
	out = run("d", (struct how){ .argv = { "/bin/app", "open", "/dev/net/tun" } });
	assert_null(strstr(out, "EACCES"));
	add_and_start("e", (struct how){ .argv = { "/bin/app", "open", "/dev/console" },
					 .with_tty = true });
	cleanup_fd int tty = attach("e", AGENT_STREAM_TTY);
	assert_string_equal(read_line(tty), "/dev/console ok\r\n");
}

static void test_hidden_paths(void **state)
{
	static const char *const paths[] = {
		"/proc/kcore",         "/proc/keys",        "/proc/timer_list",
		"/proc/kallsyms",      "/proc/config.gz",   "/sys/fs/cgroup",
		"/sys/module/overlay", "/sys/power/state",  "/proc/acpi/wakeup",
		"/proc/scsi/scsi",     "/proc/vmallocinfo", "/proc/slabinfo",
		"/proc/iomem",         "/proc/ioports",     "/proc/kpageflags",
		"/proc/pagetypeinfo",  "/sys/kernel/notes", "/sys/kernel/vmcoreinfo"
	};
	(void)state;
	char name[8];
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		snprintf(name, sizeof(name), "a%zu", i);
		/* What is hidden is empty or cannot be opened. */
		add_and_start(name, (struct how){ .argv = { "/bin/app", "read", paths[i] } });
		assert_string_equal(output(name, AGENT_STREAM_STDOUT), "");
	}
}

/* Files that the kernel would let root write, in /proc and /sys each. */
static const char *const writable_paths[] = {
	"/proc/sys/fs/file-max",
	"/proc/sys/fs/suid_dumpable",
	"/proc/sys/kernel/core_pattern",
	"/proc/sys/kernel/shmmax",
	"/proc/sys/net/ipv4/ip_forward",
	"/proc/sys/vm/panic_on_oom",
	"/proc/irq/default_smp_affinity",
	"/proc/sysrq-trigger",
	"/sys/kernel/mm/transparent_hugepage/enabled",
	"/sys/kernel/rcu_expedited",
	"/sys/bus/cpu/drivers_autoprobe",
};

/* What an app gets that opens @path for writing, and must close it again at once. */
static const char *open_for_writing(size_t i, bool open_paths)
{
	char name[8];
	snprintf(name, sizeof(name), "%c%zu", open_paths ? 'o' : 'a', i);
	return run(name, (struct how){ .argv = { "/bin/app", "openw", writable_paths[i] },
				       .open_paths = open_paths });
}

static void test_read_only_paths(void **state)
{
	(void)state;
	size_t seen = 0;
	for (size_t i = 0; i < ARRAY_SIZE(writable_paths); i++) {
		const char *path = writable_paths[i];
		char want[128];
		if (access(path, W_OK) < 0) /* this kernel has none, or nobody may write it */
			continue;
		snprintf(want, sizeof(want), "%s EROFS\n", path);
		assert_string_equal(open_for_writing(i, false), want);
		snprintf(want, sizeof(want), "%s ok\n", path);
		assert_string_equal(open_for_writing(i, true), want);
		seen |= path[1] == 's' ? 2 : 1;
	}
	assert_int_equal(seen, 3);
}

/* What mountinfo says of the mounts that have to be read-only, and of the root, which has not. */
static void test_mount_flags(void **state)
{
	(void)state;
	static const char *const wanted[] = { "/sys", "/sys/fs", "/proc/bus", "/proc/sys",
					      "/proc/sysrq-trigger" };
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "read", "/proc/self/mountinfo" } });
	char text[64];
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (access(wanted[i], F_OK) < 0)
			continue;
		snprintf(text, sizeof(text), " %s ro,", wanted[i]);
		assert_non_null(strstr(out, text));
	}
	assert_non_null(strstr(out, " / rw,"));
}

static void test_open_paths(void **state)
{
	(void)state;
	/*
	 * The first is never empty; a hidden directory cannot be opened by who may not search it.
	 */
	const char *out = run("a", (struct how){ .argv = { "/bin/app", "read", "/proc/timer_list" },
						 .open_paths = true });
	assert_true(strlen(out) > 0 || access("/proc/timer_list", R_OK) < 0);
	out = run("b", (struct how){ .argv = { "/bin/app", "mode", "/sys/module" },
				     .open_paths = true });
	assert_string_equal(out, "/sys/module 40755 0:0\n");
	out = run("c", (struct how){ .argv = { "/bin/app", "mode", "/sys/module" } });
	assert_string_equal(out, "/sys/module 40000 0:0\n");
}

/* The app @name has a link to @target where /@name is to be. */
static void check_link(int dir, const char *name, const char *target)
{
	char path[16], want[128];
	snprintf(path, sizeof(path), "image/%s", name);
	snprintf(want, sizeof(want),
		 "cannot mount /%s: the image has a symbolic link there (make it a directory)",
		 name);
	assert_int_equal(symlinkat(target, dir, path), 0);
	add_and_start(name, (struct how){ .argv = { "/bin/app", "read", "/place/self/status" } });
	const struct agent_app_exited *m = wait_exit(&host, name);
	assert_int_equal(m->code, 203);
	assert_string_equal(m->message, want);
	assert_int_equal(unlinkat(dir, path, 0), 0);
}

/*
 * dev/d is gone as soon as /dev is mounted, and with it what such a link leads to: /proc would be
 * at /place, and nothing would be found in it to be protected.
 */
static void test_links(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "image/place", 0755), 0);
	assert_int_equal(mkdirat(dir, "image/dev", 0755), 0);
	assert_int_equal(mkdirat(dir, "image/dev/d", 0755), 0);
	check_link(dir, "proc", "dev/d/../../place");
	check_link(dir, "sys", "dev/d/../../place");
	assert_int_equal(unlinkat(dir, "image/dev/d", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir, "image/dev", AT_REMOVEDIR), 0);
	check_link(dir, "dev", "place");
}

int main(void)
{
	if (geteuid() != 0) {
		puts("SKIP: namespaces and mounts need root");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		TEST(test_devices),     TEST(test_hidden_paths), TEST(test_read_only_paths),
		TEST(test_mount_flags), TEST(test_open_paths),   TEST(test_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

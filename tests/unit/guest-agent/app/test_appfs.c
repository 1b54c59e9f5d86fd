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

/* What whoever runs the app wants protected, of its image and beside what always is. */
static void test_more_paths(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "image/place", 0755), 0);
	assert_int_equal(close(openat(dir, "image/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), 0);
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "mode", "/place", "openw", "/file",
						 "openw", "/proc/sys/fs/file-max" },
				       .masked = { "/place", "/nothing", "/file/x" },
				       .read_only = { "/file", "/proc/sys", "/nothing" } });
	assert_string_equal(out, "/place 40000 0:0\n/file EROFS\n/proc/sys/fs/file-max EROFS\n");
	/* Nothing but these. */
	out = run("b", (struct how){ .argv = { "/bin/app", "read", "/file", "create", "/place/x",
					       "openw", "/proc/sys/fs/file-max" },
				     .open_paths = true,
				     .masked = { "/file" },
				     .read_only = { "/place", "/proc/sys" } });
	assert_string_equal(out, "/place/x EROFS\n/proc/sys/fs/file-max EROFS\n");
	/* In the directory that the app starts in, too. */
	out = run("c", (struct how){ .argv = { "/bin/app", "create", "x" },
				     .cwd = "/place",
				     .read_only = { "/place" } });
	assert_string_equal(out, "x EROFS\n");
	assert_int_equal(unlinkat(dir, "image/place", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir, "image/file", 0), 0);
}

/* What one protects another does not uncover, whatever leads there. */
static void test_protected_in_protected(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "image/place", 0755), 0);
	assert_int_equal(mkdirat(dir, "image/place/in", 0755), 0);
	fixture_write(state, "image/place/file", "secret\n", 7);
	assert_int_equal(symlinkat("/proc", dir, "image/kernel"), 0);
	assert_int_equal(symlinkat("/dev", dir, "image/devices"), 0);
	assert_int_equal(symlinkat("/", dir, "image/all"), 0);
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "read", "/place/file", "openw",
						 "/place/file", "mode", "/place/in" },
				       .masked = { "/place/file", "/place/in" },
				       .read_only = { "/place", "/place/in" } });
	assert_string_equal(out, "/place/file ok\n/place/in 40000 0:0\n");
	/* What is hidden stays so behind a link of the image's, and on the way itself. */
	out = run("b", (struct how){ .argv = { "/bin/app", "read", "/proc/timer_list", "read",
					       "/proc/kallsyms", "mode", "/sys/module" },
				     .read_only = { "/kernel", "/sys", "/dev" } });
	assert_string_equal(out, "/sys/module 40000 0:0\n");
	out = run("c",
		  (struct how){ .argv = { "/bin/app", "openw", "/dev/null", "open", "/dev/shm" },
				.read_only = { "/dev" } });
	assert_string_equal(out, "/dev/null ok\n/dev/shm ok\n");
	/* What covers files is there when /dev is not. */
	out = run("d", (struct how){ .argv = { "/bin/app", "read", "/place/file", "mode", "/dev" },
				     .masked = { "/devices", "/place/file" } });
	assert_string_equal(out, "/dev 40000 0:0\n");
	add_and_start("e", (struct how){ .argv = { "/bin/app" }, .masked = { "/all" } });
	assert_int_equal(wait_exit(&host, "e")->code, 203);
	assert_string_equal(wait_exit(&host, "e")->message,
			    "cannot protect /all: it is the root directory");
	/* The working directory is made before. */
	out = run("f", (struct how){ .argv = { "/bin/app", "create", "x" },
				     .cwd = "/place/made",
				     .read_only = { "/place" } });
	assert_string_equal(out, "x EROFS\n");
	assert_int_equal(unlinkat(dir, "image/all", 0), 0);
	assert_int_equal(unlinkat(dir, "image/kernel", 0), 0);
	assert_int_equal(unlinkat(dir, "image/devices", 0), 0);
	assert_int_equal(unlinkat(dir, "image/place/file", 0), 0);
	assert_int_equal(unlinkat(dir, "image/place/in", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir, "image/place", AT_REMOVEDIR), 0);
}

static void test_umask(void **state)
{
	(void)state;
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "create", "/f", "mode", "/f" } });
	assert_string_equal(out, "/f ok\n/f 100644 0:0\n");
	out = run("b", (struct how){ .argv = { "/bin/app", "create", "/f", "mode", "/f" },
				     .umask = 0137 });
	assert_string_equal(out, "/f ok\n/f 100640 0:0\n");
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
		TEST(test_more_paths),  TEST(test_umask),        TEST(test_protected_in_protected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

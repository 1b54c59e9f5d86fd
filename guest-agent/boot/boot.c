/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/boot/boot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest-agent/log.h"
#include "guest-agent/serve/server.h"
#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

#define SECRET_PATH "/sys/firmware/qemu_fw_cfg/by_name/" AGENT_SECRET_FW_CFG "/raw"
#define NEW_ROOT    "/run"
#define BACKLOG     SERVER_NEW_MAX /* what waits in the kernel is no different from what was accepted */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The kernel's command line reaches built-in modules only. */
static const char *module_options(const char *name)
{
	return str_ends(name, "-scsi_mod.ko") ? "scan=manual" : "";
}

static int load_module(int dir, const char *name, struct err *e)
{
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "module %s", name);
	if (syscall(SYS_finit_module, fd, module_options(name), 0) < 0 && errno != EEXIST)
		return err_sys(e, -errno, "module %s", name);
	unlinkat(dir, name, 0); /* its memory is the guest's */
	return 0;
}

static int load_modules(struct err *e)
{
	cleanup_dir DIR *dir = opendir(BOOT_MODULES_DIR);
	if (!dir)
		return 0;
	cleanup_strv struct strv names;
	strv_init(&names, BOOT_MODULES_MAX);
	for (struct dirent *d; (d = readdir(dir));) {
		int r = str_ends(d->d_name, ".ko") ? strv_add(&names, d->d_name) : 0;
		if (r < 0)
			return err_sys(e, r, "%s: at most %d modules", BOOT_MODULES_DIR,
				       BOOT_MODULES_MAX);
	}
	if (names.n > 0)
		qsort(names.v, names.n, sizeof(names.v[0]), by_name);
	for (size_t i = 0; i < names.n; i++) {
		int r = load_module(dirfd(dir), names.v[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int mount_or_fail(const char *type, const char *target, unsigned long flags,
			 const char *options, struct err *e)
{
	if (mkdir(target, 0755) < 0 && errno != EEXIST)
		return err_sys(e, -errno, "cannot create %s", target);
	if (mount(type, target, type, flags, options) < 0)
		return err_sys(e, -errno, "cannot mount %s on %s", type, target);
	return 0;
}

/* Moves everything below NEW_ROOT, then makes that the root. */
static int change_root(struct err *e)
{
	int r = mount_or_fail("tmpfs", NEW_ROOT, MS_NOSUID | MS_NODEV, "mode=0755,size=1m", e);
	if (r == 0)
		r = mount_or_fail("proc", NEW_ROOT "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL,
				  e);
	if (r == 0)
		r = mount_or_fail("sysfs", NEW_ROOT "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL,
				  e);
	if (r < 0)
		return r;
	if (mkdir(NEW_ROOT "/apps", 0755) < 0 || mkdir(NEW_ROOT "/dev", 0755) < 0 ||
	    mount("/dev", NEW_ROOT "/dev", NULL, MS_MOVE, NULL) < 0 || chdir(NEW_ROOT) < 0 ||
	    mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return err_sys(e, -errno, "cannot change the root directory");
	return 0;
}

int boot_mount(struct err *e)
{
	umask(022);
	int r = mount_or_fail("devtmpfs", "/dev", MS_NOSUID | MS_NOEXEC, "mode=0755", e);
	if (r < 0)
		return r;
	r = fd_fill_stdio();
	if (r < 0)
		return err_sys(e, r, "/dev/null");
	log_open_kmsg();
	r = load_modules(e);
	return r < 0 ? r : change_root(e);
}

int boot_read_secret(char ret[AGENT_SECRET_LEN + 1], struct err *e)
{
	size_t len;
	cleanup_fd int fd = open(SECRET_PATH, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "%s: no pod secret", SECRET_PATH);
	int r = fd_read_full(fd, ret, AGENT_SECRET_LEN, &len);
	if (r < 0)
		return err_sys(e, r, "%s", SECRET_PATH);
	ret[len] = '\0';
	if (!hex_is_valid(ret, AGENT_SECRET_LEN))
		return err_set(e, -EBADMSG, "%s: not %d hexadecimal digits", SECRET_PATH,
			       AGENT_SECRET_LEN);
	return 0;
}

int boot_listen(struct err *e)
{
	struct sockaddr_vm addr = {
		.svm_family = AF_VSOCK,
		.svm_port = AGENT_PORT,
		.svm_cid = VMADDR_CID_ANY,
	};
	cleanup_fd int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return err_sys(e, -errno, "vsock port %d", AGENT_PORT);
	return TAKE_FD(fd);
}

void boot_power_off(void)
{
	for (;;) {
		reboot(RB_POWER_OFF);
		pause(); /* does not happen; PID 1 must not end */
	}
}

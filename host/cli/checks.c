/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "host/cli/cli.h"
#include "host/cli/data_dir.h"
#include "images/images.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "lib/os/rmtree.h"

#define PROBE_DIR  ".husk-doctor-XXXXXX"
#define SHIM       "containerd-shim-husk-v2"
#define TOOLS_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* File systems that people keep data on, by the magic number of statfs(2). */
static const struct {
	long magic;
	const char *name;
} file_systems[] = {
	{ 0xef53, "ext4" },         { 0x58465342, "xfs" },       { 0x9123683e, "btrfs" },
	{ 0x01021994, "tmpfs" },    { 0x794c7630, "overlayfs" }, { 0x2fc12fc1, "zfs" },
	{ 0x6969, "nfs" },          { 0x65735546, "fuse" },      { 0xf2f52010, "f2fs" },
	{ 0xca451a4e, "bcachefs" },
};

/* Name and free space of the file system of @fd. */
static void describe_fs(int fd, char *out, size_t size)
{
	struct statfs st;
	const char *name = "unknown";
	if (fstatfs(fd, &st) < 0) {
		snprintf(out, size, "unknown");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(file_systems); i++)
		if ((unsigned long)st.f_type == (unsigned long)file_systems[i].magic)
			name = file_systems[i].name;
	snprintf(out, size, "%s, %lld MiB free", name,
		 (long long)st.f_bavail * (long long)st.f_bsize / (1024LL * 1024));
}

/* Two names for one file. 0 or -errno. */
static int try_hard_link(int dirfd)
{
	cleanup_fd int fd = openat(dirfd, "a", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	return linkat(dirfd, "a", dirfd, "b", 0) < 0 ? -errno : 0;
}

/* A lock on a directory that a second description of it cannot have. 0 or -errno. */
static int try_flock(int dirfd)
{
	cleanup_fd int other = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (other < 0)
		return -errno;
	int r = lock_try_exclusive(dirfd);
	if (r != 0)
		return r < 0 ? r : -EBUSY;
	r = lock_try_shared(other);
	return r == 0 ? -ENOLCK : r < 0 ? r : 0;
}

/* Adds the result of one of the probes above. */
static int add_probe(struct doctor *d, const char *name, int result, const char *detail,
		     const char *remedy, bool *ok)
{
	if (result < 0)
		*ok = false;
	return doctor_add(d, name, result == 0, result < 0 ? strerror(-result) : "works", detail,
			  remedy);
}

/* Probes hard links and locks in a directory that exists only for that. */
static int add_dir_probes(struct doctor *d, int probe_fd, bool *ok)
{
	int r = add_probe(d, "hard-links", try_hard_link(probe_fd), "pods share rendered images",
			  "choose a data directory on a file system with hard links: --dir=DIR",
			  ok);
	if (r == 0)
		r = add_probe(d, "flock", try_flock(probe_fd), "locks tell running pods from ended",
			      "choose a data directory on a local file system: --dir=DIR", ok);
	return r;
}

static int add_data_dir(const struct cli *c, struct doctor *d, bool *ok)
{
	struct err e = ERR_INIT;
	char path[PATH_MAX], value[DOCTOR_TEXT_MAX + 1], probe[] = PROBE_DIR;
	int r = cli_data_dir(c, path, &e);
	cleanup_fd int fd = r < 0 ? r : cli_open_data_dir(c, true, &e);
	/* mkdtemp() knows no directory descriptor, but it runs in this one-threaded process. */
	if (fd >= 0 && (fchdir(fd) < 0 || !mkdtemp(probe)))
		r = err_sys(&e, -errno, "cannot write to data directory \"%s\"", path);
	if (fd < 0 || r < 0) {
		*ok = false;
		return doctor_add(d, "data-directory", false, e.text, NULL,
				  "make it writable, or choose another one: --dir=DIR");
	}
	describe_fs(fd, value, sizeof(value));
	cleanup_fd int probe_fd = openat(fd, probe, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = doctor_add(d, "data-directory", true, value, path, NULL);
	if (r == 0)
		r = add_dir_probes(d, probe_fd, ok);
	rmtree(fd, probe);
	return r;
}

/* The other half of this program. */
static int add_images_module(struct doctor *d, bool *ok)
{
	struct err e = ERR_INIT;
	int r = images_check_module(&e);
	if (r < 0)
		*ok = false;
	return doctor_add(d, "husk-images", r == 0, r == 0 ? "loads" : "does not load",
			  r == 0 ? "fetches, reads and writes images" : e.text,
			  "install husk again");
}

/* A tool for images that running those which are there does not need. */
static int add_tool(struct doctor *d, const char *name, const char *purpose)
{
	char path[PATH_MAX], remedy[128];
	const char *list = getenv("PATH");
	int r = path_find_program(name, list ? list : TOOLS_PATH, path, sizeof(path));
	snprintf(remedy, sizeof(remedy), "optional: apt-get install %s", name);
	return doctor_add(d, name, r == 0, r == 0 ? path : "not installed", purpose, remedy);
}

/* containerd looks for it in its own PATH, which is likely to be like this one. */
static int add_shim(struct doctor *d)
{
	char path[PATH_MAX];
	const char *list = getenv("PATH");
	int r = path_find_program(SHIM, list ? list : TOOLS_PATH, path, sizeof(path));
	return doctor_add(d, SHIM, r == 0, r == 0 ? path : "not in PATH",
			  "runs containers of containerd as pods",
			  "optional: make a link to it in /usr/local/bin");
}

int checks_add(const struct cli *c, struct doctor *d, bool *ret_ok)
{
	bool ok = true;
	int r = add_data_dir(c, d, &ok);
	if (r == 0)
		r = add_images_module(d, &ok);
	if (r == 0)
		r = add_tool(d, "skopeo", "fetches images from registries");
	if (r == 0)
		r = add_tool(d, "gpg", "checks the signatures of appc images");
	if (r == 0)
		r = add_tool(d, "umoci", "makes and changes OCI layouts");
	if (r == 0)
		r = add_shim(d);
	if (r == 0)
		*ret_ok = ok;
	return r;
}

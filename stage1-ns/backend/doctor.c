/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor entrypoint of stage1-ns (docs/protocol-stage1.md). */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/os/fd.h"
#include "lib/os/image_mount.h"
#include "lib/os/userns.h"
#include "stage1-ns/backend/data_dir.h"
#include "stage1/entry/doctor.h"

static bool check_users(struct doctor *d)
{
	struct err e = ERR_INIT;
	bool ok = userns_check(&e) == 0;
	doctor_add(d,
		   &(struct doctor_check){ .name = "user-namespaces",
					   .ok = ok,
					   .needed = true,
					   .value = ok ? "yes" : "no",
					   .detail = ok ? "root of a pod is another user" : e.text,
					   .remedy = "see what it says" });
	return ok;
}

/* Root of a pod opens the device, who is nobody on the host unless somebody wants it otherwise. */
static bool have_fuse(struct err *e)
{
	struct stat st;
	if (image_check_fuse(e) < 0)
		return false;
	if (geteuid() != 0 || (stat("/dev/fuse", &st) == 0 && (st.st_mode & 06) == 06))
		return true;
	err_set(e, -EACCES, "image: /dev/fuse, which root of a pod opens (chmod 666)");
	return false;
}

/* As a pod's images are mounted: root makes do with squashfuse where there are no loop devices. */
static void check_images(struct doctor *d)
{
	struct err e = ERR_INIT;
	bool is_root = geteuid() == 0;
	cleanup_fd int loop = is_root ? open("/dev/loop-control", O_RDWR | O_CLOEXEC) : -EBADF;
	bool ok = loop >= 0 || have_fuse(&e);
	doctor_add(d,
		   &(struct doctor_check){
			   .name = "images",
			   .ok = ok,
			   .needed = true,
			   .value = is_root && (loop >= 0 || !ok) ? "loop devices" : "squashfuse",
			   .detail = e.text,
			   .remedy = is_root ? "modprobe loop" : "see what it says" });
}

/*
 * The kernel is asked instead of the name of the file system: which ones can do what pods need
 * changes with its version.
 */
static void check_data_dir(struct doctor *d)
{
	struct err e = ERR_INIT;
	bool ok = data_dir_check(&e) == 0;
	doctor_add(d,
		   &(struct doctor_check){
			   .name = "changes",
			   .ok = ok,
			   .needed = true,
			   .value = ok ? "yes" : "no",
			   .detail = ok ? "the data directory can hold what apps change" : e.text,
			   .remedy = "choose a data directory on another file system, such as "
				     "ext4, xfs or tmpfs: --dir=DIR" });
}

int main(int argc, char **argv)
{
	struct doctor d;
	int code;
	if (doctor_asked_of_pod(argc, argv, &code))
		return code;
	doctor_init(&d);
	bool have_users = check_users(&d);
	check_images(&d);
	if (have_users) /* in which it is tried */
		check_data_dir(&d);
	doctor_add_cgroups(&d, "apps");
	doctor_add_user(&d, "root of a pod is nobody on the host, but for --userns=host");
	return doctor_finish(&d);
}

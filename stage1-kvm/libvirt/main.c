/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-libvirt: the process that talks to libvirt for a pod whose VM is a domain. It alone is
 * linked with libvirt, so hosts without it install nothing and other pods pay nothing; and what
 * libvirt runs in a client, threads and for qemu:///embed a whole driver, stays out of the
 * supervisor.
 *
 * It is started with the descriptors of stage1-kvm/vmm/libvirt/message.h and creates the domain,
 * reports that it runs, plugs and unplugs disks, and ends with the domain or with the supervisor.
 * With --check it only connects, and says on standard error why it could not.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/unix.h"
#include "stage1-kvm/libvirt/domain.h"
#include "stage1-kvm/libvirt/namespace.h"
#include "stage1-kvm/vmm/libvirt/domain_dir.h"
#include "stage1-kvm/vmm/libvirt/domain_xml.h"
#include "stage1-kvm/vmm/libvirt/message.h"
#include "stage1-kvm/vmm/libvirt/uri.h"

#define SECRET_MAX ((size_t)4096) /* it has 64 bytes */

/* What comes with the start beside the disks. */
enum boot_file {
	BOOT_KERNEL,
	BOOT_INITRD,
	BOOT_FILES,
};

struct arguments {
	const char *uri;
	const char *dir;
	const char *cache_dir;
	struct vm_disk disks[VM_DISKS_MAX];
	char paths[BOOT_FILES + VM_DISKS_MAX]
		  [PATH_MAX]; /* of the files, as the supervisor sees them */
	size_t n_disks;
	struct vm_nic nics[NET_INTERFACES_MAX];
	size_t n_nics;
	uint64_t uid;
	bool kvm;
	bool check;
};

static struct arguments arguments; /* of the process; what its end undoes is in there */

static bool is_embedded(const struct arguments *a)
{
	return strcmp(a->uri, LIBVIRT_URI_EMBED) == 0;
}

/* "LUN:ro" or "LUN:rw". */
static int take_disk(struct arguments *a, char *text)
{
	uint64_t lun;
	char *mode = strchr(text, ':');
	if (!mode || a->n_disks == VM_DISKS_MAX)
		return -EINVAL;
	*mode++ = '\0';
	if (num_parse_u64(text, AGENT_LUN_MAX, &lun) < 0)
		return -EINVAL;
	a->disks[a->n_disks++] =
		(struct vm_disk){ .lun = (int)lun, .read_only = strcmp(mode, "ro") == 0 };
	return 0;
}

/* "MAC/MTU/QUEUES/VHOST/STREAM". */
static int take_nic(struct arguments *a, char *text)
{
	uint64_t numbers[4] = { 0 }; /* MTU, queues, vhost, stream */
	static const uint64_t max[] = { NET_MTU_MAX, VM_QUEUES_MAX, 1, 1 };
	char *rest = text, *mac = strsep(&rest, "/");
	if (a->n_nics == NET_INTERFACES_MAX)
		return -E2BIG;
	struct vm_nic *nic = &a->nics[a->n_nics++];
	int r = net_mac_parse(mac, nic->mac);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++) {
		char *number = strsep(&rest, "/");
		r = number ? num_parse_u64(number, max[i], &numbers[i]) : -EINVAL;
	}
	if (r < 0)
		return r;
	nic->mtu = (uint32_t)numbers[0];
	nic->n_queues = numbers[1];
	nic->vhost = numbers[2];
	nic->stream = numbers[3];
	return 0;
}

static int take_option(struct arguments *a, int option, char *value)
{
	switch (option) {
	case 'u':
		a->uri = value;
		return libvirt_uri_is_known(value) ? 0 : -EINVAL;
	case 'd':
		a->dir = value;
		return 0;
	case 'c':
		a->cache_dir = value;
		return 0;
	case 'e': /* NAME=VALUE */
		return putenv(value) == 0 ? 0 : -ENOMEM;
	case 'i':
		return num_parse_u64(value, UINT32_MAX - 1, &a->uid);
	case 'k':
		a->kvm = true;
		return 0;
	case 'n':
		a->check = true;
		return 0;
	case 'D':
		return take_disk(a, value);
	case 'N':
		return take_nic(a, value);
	default:
		return -EINVAL;
	}
}

static int parse_arguments(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
		{ "uri", required_argument, NULL, 'u' },   { "dir", required_argument, NULL, 'd' },
		{ "cache", required_argument, NULL, 'c' }, { "uid", required_argument, NULL, 'i' },
		{ "disk", required_argument, NULL, 'D' },  { "nic", required_argument, NULL, 'N' },
		{ "kvm", no_argument, NULL, 'k' },         { "check", no_argument, NULL, 'n' },
		{ "env", required_argument, NULL, 'e' },   { 0 },
	};
	int r = 0;
	for (int c; r == 0 && (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		r = take_option(ret, c, optarg);
	return r == 0 && ret->uri && optind == argc && (ret->check || ret->dir) ? 0 : -EINVAL;
}

/* ---- files of the domain ---- */

static int put_secret(const char *dir)
{
	size_t len;
	cleanup_free char *secret = NULL;
	if (lseek(HELPER_FD_SECRET, 0, SEEK_SET) < 0)
		return -errno;
	int r = file_read_fd(HELPER_FD_SECRET, SECRET_MAX, &secret, &len);
	return r < 0 ? r : domain_dir_write(dir, DOMAIN_FILE_SECRET, secret, len);
}

/* Before we are in another mount namespace, where they would be others. */
static int find_paths(struct arguments *a)
{
	int r = domain_dir_path_of(HELPER_FD_KERNEL, a->paths[BOOT_KERNEL]);
	if (r == 0)
		r = domain_dir_path_of(HELPER_FD_INITRD, a->paths[BOOT_INITRD]);
	for (size_t i = 0; r == 0 && i < a->n_disks; i++)
		r = domain_dir_path_of(HELPER_FD_DISK0 + (int)i, a->paths[BOOT_FILES + i]);
	return r;
}

static int put_disk(const char *dir, const struct vm_disk *disk, int fd, const char *path)
{
	char name[32];
	snprintf(name, sizeof(name), DOMAIN_FILE_DISK, disk->lun);
	return domain_dir_put(dir, name, fd, path, disk->read_only);
}

static int put_files(const struct arguments *a, struct err *e)
{
	int r = domain_dir_put(a->dir, DOMAIN_FILE_KERNEL, HELPER_FD_KERNEL, a->paths[BOOT_KERNEL],
			       true);
	if (r == 0)
		r = domain_dir_put(a->dir, DOMAIN_FILE_INITRD, HELPER_FD_INITRD,
				   a->paths[BOOT_INITRD], true);
	if (r == 0)
		r = put_secret(a->dir);
	for (size_t i = 0; r == 0 && i < a->n_disks; i++)
		r = put_disk(a->dir, &a->disks[i], HELPER_FD_DISK0 + (int)i,
			     a->paths[BOOT_FILES + i]);
	return r < 0 ? err_sys(e, r, "libvirt: cannot put the VM's files into \"%s\"", a->dir) : 0;
}

/*
 * Lets QEMU, as which user it will run, get to the files; and to the socket that it connects to on
 * our word alone: libvirt does not know of it. The others libvirt gives to that user itself.
 */
static int let_in(const struct arguments *a, uid_t uid, struct err *e)
{
	char path[PATH_MAX];
	if (uid == UINT32_MAX || uid == geteuid())
		return 0;
	snprintf(path, sizeof(path), "%s/" DOMAIN_FILE_VSOCK, a->dir);
	int r = domain_dir_open_to(a->dir, uid);
	if (r < 0)
		return err_sys(e, r, "libvirt: cannot let user %u into \"%s\"", (unsigned)uid,
			       a->dir);
	if (lchown(path, uid, (gid_t)-1) < 0 && errno != ENOENT)
		return err_sys(e, -errno, "libvirt: \"%s\"", path);
	return 0;
}

/* ---- life ---- */

static int plug_disk(const struct arguments *a, struct domain *d, const struct message *m, int fd,
		     bool *ret_left, struct err *e)
{
	const struct domain_names names = { .dir = a->dir, .labels = geteuid() == 0 };
	const struct vm_disk disk = { .lun = m->lun, .read_only = true };
	cleanup_buf struct buf xml;
	buf_init(&xml, DOMAIN_XML_MAX);
	int r = domain_disk_xml(&disk, &names, &xml, e);
	if (r < 0)
		return r;
	cleanup_free char *text = buf_take_string(&xml);
	if (!text)
		return err_sys(e, -ENOMEM, "libvirt");
	if (fd < 0)
		return domain_detach(d, text, ret_left, e);
	r = put_disk(a->dir, &disk, fd, m->text);
	if (r < 0)
		err_sys(e, r, "libvirt: cannot put the image into \"%s\"", a->dir);
	else
		r = domain_attach(d, text, ret_left, e);
	char name[32];
	snprintf(name, sizeof(name), DOMAIN_FILE_DISK, m->lun);
	domain_dir_take(a->dir, name);
	return r;
}

static void carry_out(const struct arguments *a, struct domain *d, const struct message *m, int fd)
{
	struct message reply = { .kind = MESSAGE_DONE, .lun = m->lun };
	struct err e = ERR_INIT;
	bool left = false;
	if (plug_disk(a, d, m, m->kind == MESSAGE_PLUG ? fd : -EBADF, &left, &e) < 0) {
		str_copy_text(reply.text, sizeof(reply.text), e.text);
		reply.left = left;
	}
	send(HELPER_FD_SOCKET, &reply, sizeof(reply), MSG_NOSIGNAL);
}

/* Until the supervisor is gone; the domain's end ends the process from within its events. */
static void serve(const struct arguments *a, struct domain *d)
{
	for (;;) {
		struct message m;
		int fds[UNIX_FDS_MAX];
		size_t len = 0, n_fds = 0;
		int r = unix_recv_fds(HELPER_FD_SOCKET, &m, sizeof(m), fds, &len, &n_fds);
		if (r == -EINTR)
			continue;
		if (r < 0 || len != sizeof(m))
			return;
		m.text[MESSAGE_TEXT_MAX] = '\0';
		carry_out(a, d, &m, n_fds > 0 ? fds[0] : -EBADF);
		for (size_t i = 0; i < n_fds; i++)
			fd_close(fds[i]);
	}
}

/* What else libvirt needs of an environment; husk gives none to its helpers. */
static void set_environment(void)
{
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("LC_ALL", "C", 1); /* its messages are part of ours */
}

/*
 * Nothing is in the directory but while QEMU opens it. What is plugged in at the moment goes, too:
 * either QEMU has it, or we end.
 */
static void empty_directory(void)
{
	domain_dir_empty(arguments.dir);
}

static int connect_libvirt(struct arguments *a, struct domain **ret, struct err *e)
{
	bool embedded = is_embedded(a);
	const struct namespace_input in = {
		.dir = a->dir, .cache_dir = a->cache_dir, .uid = (uid_t)a->uid, .kvm = a->kvm
	};
	int r = find_paths(a);
	if (r < 0)
		return err_sys(e, r, "libvirt: files of the VM");
	r = embedded ? namespace_enter(&in, e) : 0;
	if (r == 0)
		r = domain_connect(embedded ? LIBVIRT_URI_EMBED "?root=" NAMESPACE_LIBVIRT_ROOT
					    : a->uri,
				   HELPER_FD_SOCKET, empty_directory, ret, e);
	if (r < 0 || geteuid() != 0)
		return r;
	return let_in(a, embedded ? in.uid : domain_user(*ret), e);
}

static int create_domain(struct arguments *a, struct domain **ret, struct err *e)
{
	size_t len;
	cleanup_free char *xml = NULL;
	int r = connect_libvirt(a, ret, e);
	if (r == 0)
		r = put_files(a, e);
	if (r < 0)
		return r;
	r = lseek(HELPER_FD_XML, 0, SEEK_SET) < 0
		    ? -errno
		    : file_read_fd(HELPER_FD_XML, DOMAIN_XML_MAX, &xml, &len);
	return r < 0 ? err_sys(e, r, "libvirt: domain")
		     : domain_create(*ret, xml, is_embedded(a), a->nics, a->n_nics, e);
}

static int run_domain(struct arguments *a)
{
	struct err e = ERR_INIT;
	struct domain *d = NULL;
	const struct message up = { .kind = MESSAGE_UP, .lun = -1 };
	if (create_domain(a, &d, &e) < 0)
		domain_report_end(HELPER_FD_SOCKET, empty_directory, e.text);
	empty_directory();
	send(HELPER_FD_SOCKET, &up, sizeof(up), MSG_NOSIGNAL);
	serve(a, d);
	return 0;
}

static int check_connection(const struct arguments *a)
{
	struct err e = ERR_INIT;
	struct domain *d = NULL;
	/*
	 * The embedded driver would look at every QEMU of the host; that libvirt is there is all.
	 */
	if (is_embedded(a) || domain_connect(a->uri, -EBADF, NULL, &d, &e) == 0)
		return 0;
	fprintf(stderr, "%s\n", e.text);
	return 1;
}

int main(int argc, char **argv)
{
	struct arguments *a = &arguments;
	if (parse_arguments(argc, argv, a) < 0) {
		fprintf(stderr, "husk-libvirt: it is started by husk's stage1 only\n");
		return 2;
	}
	set_environment();
	return a->check ? check_connection(a) : run_domain(a);
}

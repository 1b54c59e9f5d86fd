/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/trusted.h"
#include "stage1/net/cni/document.h"

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_configuration(const char *name)
{
	return name[0] != '.' &&
	       (str_ends(name, ".conf") || str_ends(name, ".conflist") || str_ends(name, ".json"));
}

/* The names of the directory's configurations, ordered. */
static int list_names(int dirfd, struct strv *names)
{
	cleanup_dir DIR *dir = fd_open_dir(fcntl(dirfd, F_DUPFD_CLOEXEC, 0));
	if (!dir)
		return -errno;
	struct dirent *de;
	while (errno = 0, (de = readdir(dir))) {
		int r = is_configuration(de->d_name) ? strv_add(names, de->d_name) : 0;
		if (r < 0)
			return r;
	}
	if (errno != 0)
		return -errno;
	if (names->n > 0)
		qsort(names->v, names->n, sizeof(names->v[0]), compare_names);
	return 0;
}

/* Reads the file @name of the directory into @c, whose path is set. */
static int read_file(int dirfd, const char *name, struct cni_config *c, struct err *e)
{
	cleanup_free char *text = NULL;
	char path[NET_INFO_TEXT_MAX + 1];
	size_t len;
	memcpy(path, c->path, sizeof(path));
	int r = trusted_path(path, geteuid(), e);
	if (r < 0)
		return r;
	r = file_read_at(dirfd, name, CNI_DOCUMENT_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "\"%s\"", path);
	r = cni_config_parse(text, len, c, e);
	memcpy(c->path, path, sizeof(path));
	return r < 0 ? err_context(e, "\"%s\"", path) : 0;
}

static int load_file(int dirfd, const char *dir, const char *name, size_t layer,
		     struct cni_networks *nets, struct err *e)
{
	struct cni_config c = { .name = "" };
	struct err why = ERR_INIT;
	int n = snprintf(c.path, sizeof(c.path), "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(c.path))
		return err_set(e, -ENAMETOOLONG, "\"%s/%s\": a path of at most %d bytes is allowed",
			       dir, name, NET_INFO_TEXT_MAX);
	int r = read_file(dirfd, name, &c, &why);
	r = cni_networks_add(nets, &c, layer, r < 0 ? why.text : NULL);
	return r < 0 ? err_sys(e, r, "at most %d networks", CNI_NETWORKS_MAX) : 0;
}

static int load_dir(const char *dir, size_t layer, struct cni_networks *nets, struct err *e)
{
	cleanup_strv struct strv names;
	strv_init(&names, CNI_FILES_MAX);
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	int r = fd < 0 ? -errno : 0;
	if (r == 0)
		r = list_names(fd, &names);
	if (r < 0)
		return err_sys(e, r, "\"%s\"", dir);
	r = trusted_path(dir, geteuid(), e);
	for (size_t i = 0; r == 0 && i < names.n; i++)
		r = load_file(fd, dir, names.v[i], layer, nets, e);
	return r;
}

int cni_dir_load(const struct strv *dirs, struct cni_networks *ret, struct err *e)
{
	CLEANUP(cni_networks_deinit) struct cni_networks nets = { .v = NULL };
	int r = cni_networks_add_built_in(&nets);
	if (r < 0)
		return err_set(e, r, "out of memory");
	for (size_t i = 0; i < dirs->n; i++) {
		r = load_dir(dirs->v[i], i + 1, &nets, e);
		if (r < 0)
			return r;
	}
	cni_networks_sort(&nets);
	*ret = nets;
	nets = (struct cni_networks){ .v = NULL };
	return 0;
}

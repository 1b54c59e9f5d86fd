/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/volumes/host_volume.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "lib/os/fd.h"
#include "lib/os/volume_source.h"
#include "stage1/volumes/volume_key.h"

int host_volumes_args(const struct pod_manifest *m, const char *prefix, struct strv *argv)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < m->volumes.n; i++) {
		const struct volume *v = &m->volumes.v[i];
		if (v->kind == VOLUME_HOST && pod_manifest_uses_volume(m, v))
			r = strv_addf(argv, "%s%zu:%s:%s:%s", prefix, i,
				      pod_manifest_only_reads_volume(m, v) ? "ro" : "rw",
				      v->recursive ? "all" : "one", v->source);
	}
	return r;
}

/* Whether @app, which alone has it, may not write to its volume @v. */
static bool only_reads(const struct pod_app *app, const struct volume *v)
{
	for (size_t i = 0; i < app->mounts.n; i++)
		if (!app->mounts.v[i].read_only && strcmp(app->mounts.v[i].volume, v->name) == 0)
			return v->read_only;
	return true;
}

size_t host_volumes_of_app(const struct pod_app *app, struct host_volume ret[AGENT_VOLUME_SLOTS])
{
	size_t n = 0;
	for (size_t i = 0; i < app->volumes.n; i++) {
		const struct volume *v = &app->volumes.v[i];
		if (v->kind != VOLUME_HOST)
			continue;
		ret[n] = (struct host_volume){ .read_only = only_reads(app, v),
					       .recursive = v->recursive,
					       .path = v->source };
		snprintf(ret[n++].name, sizeof(ret->name), "%hhu", (unsigned char)i);
	}
	return n;
}

/* Takes the word @yes or @no and a colon off *@text. */
static int take_choice(const char **text, const char *yes, const char *no, bool *ret)
{
	size_t n = strcspn(*text, ":");
	*ret = strlen(yes) == n && strncmp(*text, yes, n) == 0;
	if ((!*ret && (strlen(no) != n || strncmp(*text, no, n) != 0)) || (*text)[n] != ':')
		return -EINVAL;
	*text += n + 1;
	return 0;
}

int host_volume_parse(const char *text, struct host_volume *ret)
{
	size_t n = strspn(text, "0123456789");
	if (n == 0 || n > HOST_VOLUME_NAME_MAX || text[n] != ':')
		return -EINVAL;
	memcpy(ret->name, text, n);
	ret->name[n] = '\0';
	text += n + 1;
	if (take_choice(&text, "ro", "rw", &ret->read_only) < 0 ||
	    take_choice(&text, "all", "one", &ret->recursive) < 0 || text[0] != '/')
		return -EINVAL;
	ret->path = text;
	return 0;
}

int host_volume_mount(const struct host_volume *v, char *ret_key, struct err *e)
{
	cleanup_fd int found = volume_source_find(v->path);
	int r = MIN(found, 0);
	if (r == 0 && ret_key)
		r = volume_key(found, v->read_only, v->recursive, ret_key);
	int fd = r < 0 ? r : volume_source_mount(found, v->read_only, v->recursive);
	if (fd == -EINVAL && !v->recursive)
		return err_set(
			e, fd,
			"volume of \"%s\": what is mounted below cannot be left out by others "
			"than root (leave recursive=false away)",
			v->path);
	return fd < 0 ? err_sys(e, fd, "volume of \"%s\"", v->path) : fd;
}

int host_volume_map_ids(int mount, const struct host_volume *v, int userns, const char *without,
			struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)userns };
	unsigned below = v->recursive ? AT_RECURSIVE : 0;
	if (mount_setattr(mount, "", AT_EMPTY_PATH | below, &attr, sizeof(attr)) == 0)
		return 0;
	if (errno != EINVAL)
		return err_sys(e, -errno, "volume of \"%s\": cannot map its ids", v->path);
	return err_set(e, -EOPNOTSUPP,
		       "volume of \"%s\": its file system%s cannot map ids, as this pod needs it "
		       "(use another one, or start the pod with %s)",
		       v->path, v->recursive ? ", or one that is mounted below," : "", without);
}

int host_volume_make_place(int mount, int dir, const char *name)
{
	struct stat st;
	if (fstat(mount, &st) < 0)
		return -errno;
	return (S_ISDIR(st.st_mode) ? mkdirat(dir, name, 0755)
				    : mknodat(dir, name, S_IFREG | 0644, 0)) < 0
		       ? -errno
		       : 0;
}

int host_volume_attach(int mount, int dir, const char *name)
{
	return move_mount(mount, "", dir, name, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

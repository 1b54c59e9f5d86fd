/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/volumes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

#define KIND_MAX     ((size_t)16) /* "empty", "memory", "qcow2": the longest are shorter */
#define MODE_MAX     ((size_t)5)  /* "01777" */
#define MODE_DEFAULT 0755

/* ---- paths ---- */

/* Takes the last component off @path of *@len bytes, if there is one. */
static void drop_component(const char *path, size_t *len)
{
	while (*len > 0 && path[--*len] != '/')
		;
}

/* Writes the components of @path to @out, which has room for one byte more and a NUL. */
static void write_clean(const char *path, char *out)
{
	size_t len = 0;
	while (*path) {
		size_t n = strcspn(path, "/");
		if (n == 2 && strncmp(path, "..", 2) == 0) {
			drop_component(out, &len);
		} else if (n > 0 && !(n == 1 && *path == '.')) {
			out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		path += n;
		path += *path == '/';
	}
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
}

/* What the pod mounts itself. Others may be in its /dev, as a file for an app's last words. */
static bool is_reserved(const char *path)
{
	return strcmp(path, "/dev") == 0 || str_is_path_in(path, "/proc") ||
	       str_is_path_in(path, "/sys");
}

int volume_path_clean(const char *path, char **ret)
{
	if (path[0] != '/' || strlen(path) > AGENT_PATH_MAX || !str_is_utf8(path))
		return -EINVAL;
	cleanup_free char *out = calloc(1, strlen(path) + 2);
	if (!out)
		return -ENOMEM;
	write_clean(path, out);
	if (is_reserved(out))
		return -EPERM;
	*ret = TAKE_PTR(out);
	return 0;
}

bool volume_path_is_root(const char *path)
{
	return strcmp(path, "/") == 0;
}

/* ---- lists ---- */

void volume_init(struct volume *v)
{
	*v = (struct volume){ .mode = MODE_DEFAULT, .recursive = true };
}

void volume_deinit(struct volume *v)
{
	free(v->source);
	v->source = NULL;
}

bool volume_has_source(const struct volume *v)
{
	return v->kind == VOLUME_HOST || v->kind == VOLUME_BLOCK;
}

int volume_set_source(struct volume *v, const char *path)
{
	if (path[0] != '/' || strlen(path) > AGENT_PATH_MAX || !str_is_utf8(path))
		return -EINVAL;
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	volume_deinit(v);
	v->source = copy;
	return 0;
}

void volumes_deinit(struct volumes *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->n; i++)
		volume_deinit(&v->v[i]);
	free(v->v);
	*v = (struct volumes){ 0 };
}

const struct volume *volumes_find(const struct volumes *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->v[i].name, name) == 0)
			return &v->v[i];
	return NULL;
}

bool volumes_have(const struct volumes *v, enum volume_kind kind)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].kind == kind)
			return true;
	return false;
}

int volumes_add(struct volumes *v, const struct volume *volume)
{
	if (volumes_find(v, volume->name))
		return -EEXIST;
	if (v->n >= VOLUMES_MAX)
		return -E2BIG;
	if (!GROW(v->v, v->n))
		return -ENOMEM;
	struct volume copy = *volume;
	copy.source = NULL;
	int r = volume->source ? volume_set_source(&copy, volume->source) : 0;
	if (r == 0)
		v->v[v->n++] = copy;
	return r;
}

int volumes_copy(struct volumes *v, const struct volumes *from)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = volumes_add(v, &from->v[i]);
	return r;
}

void volume_mounts_deinit(struct volume_mounts *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].path);
	free(m->v);
	*m = (struct volume_mounts){ 0 };
}

const struct volume_mount *volume_mounts_find(const struct volume_mounts *m, const char *path)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->v[i].path, path) == 0)
			return &m->v[i];
	return NULL;
}

const struct volume_mount *volume_mounts_root(const struct volume_mounts *m)
{
	return volume_mounts_find(m, "/");
}

static int add_mount(struct volume_mounts *m, const char *volume, const char *path, bool read_only,
		     bool of_image)
{
	struct volume_mount mount = { .read_only = read_only };
	cleanup_free char *clean = NULL;
	int r = volume_path_clean(path, &clean);
	if (r == 0 && of_image && (volume_path_is_root(clean) || str_is_path_in(clean, "/dev")))
		return -EPERM;
	if (r == 0 && str_copy(mount.volume, sizeof(mount.volume), volume) < 0)
		r = -EINVAL;
	if (r < 0)
		return r;
	if (volume_mounts_find(m, clean))
		return -EEXIST;
	if (m->n >= AGENT_MOUNTS_MAX)
		return -E2BIG;
	if (!GROW(m->v, m->n))
		return -ENOMEM;
	mount.path = TAKE_PTR(clean);
	m->v[m->n++] = mount;
	return 0;
}

int volume_mounts_add(struct volume_mounts *m, const char *volume, const char *path, bool read_only)
{
	return add_mount(m, volume, path, read_only, false);
}

int volume_points_add(struct volume_mounts *m, const char *volume, const char *path, bool read_only)
{
	return add_mount(m, volume, path, read_only, true);
}

int volume_mounts_copy(struct volume_mounts *m, const struct volume_mounts *from)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct volume_mount *one = &from->v[i];
		int r = volume_mounts_add(m, one->volume, one->path, one->read_only);
		if (r < 0 && r != -EEXIST)
			return r;
		if (r < 0)
			continue;
		m->v[m->n - 1].no_exec = one->no_exec;
		m->v[m->n - 1].no_suid = one->no_suid;
	}
	return 0;
}

/* ---- texts ---- */

static const struct {
	const char *kind, *medium;
} kinds[] = {
	[VOLUME_EMPTY] = { "empty", "" },      [VOLUME_MEMORY] = { "empty", "memory" },
	[VOLUME_IMAGE] = { "empty", "image" }, [VOLUME_HOST] = { "host", "" },
	[VOLUME_BLOCK] = { "block", "" },
};

int volume_kind_parse(const char *kind, const char *medium, enum volume_kind *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kind, kinds[i].kind) != 0 || strcmp(medium, kinds[i].medium) != 0)
			continue;
		*ret = (enum volume_kind)i;
		return 0;
	}
	return -EINVAL;
}

static const char *const formats[] = { [VOLUME_RAW] = "raw", [VOLUME_QCOW2] = "qcow2" };

int volume_format_parse(const char *s, enum volume_format *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (strcmp(s, formats[i]) != 0)
			continue;
		*ret = (enum volume_format)i;
		return 0;
	}
	return -EINVAL;
}

int volume_mode_parse(const char *s, int64_t *ret)
{
	size_t n = strnlen(s, MODE_MAX + 1);
	int64_t mode = 0;
	if (n == 0 || n > MODE_MAX || strspn(s, "01234567") != n)
		return -EINVAL;
	for (; *s; s++)
		mode = 8 * mode + (*s - '0');
	if (mode > AGENT_MODE_MAX)
		return -EINVAL;
	*ret = mode;
	return 0;
}

/* ---- JSON ---- */

static int put_source(struct json_object *obj, const struct volume *v)
{
	if (json_put_str(obj, "source", v->source) < 0 ||
	    (v->kind == VOLUME_HOST && !v->recursive &&
	     json_put_bool(obj, "recursive", false) < 0) ||
	    (v->no_cache && json_put_str(obj, "cache", "never") < 0) ||
	    (v->kind == VOLUME_BLOCK && json_put_str(obj, "format", formats[v->format]) < 0))
		return -ENOMEM;
	return 0;
}

static int put_directory(struct json_object *obj, const struct volume *v)
{
	char mode[MODE_MAX + 1];
	snprintf(mode, sizeof(mode), "%04o", (unsigned)v->mode & AGENT_MODE_MAX);
	if (json_put_str(obj, "mode", mode) < 0 || json_put_int(obj, "uid", v->uid) < 0 ||
	    json_put_int(obj, "gid", v->gid) < 0 ||
	    (v->size > 0 && json_put_int(obj, "size", v->size) < 0))
		return -ENOMEM;
	return 0;
}

/* A new object, NULL if memory is short. */
static struct json_object *make_volume(const struct volume *v)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	const char *medium = kinds[v->kind].medium;
	if (json_put_str(obj, "name", v->name) < 0 ||
	    json_put_str(obj, "kind", kinds[v->kind].kind) < 0 ||
	    (medium[0] && json_put_str(obj, "medium", medium) < 0) ||
	    (v->says_read_only && json_put_bool(obj, "readOnly", v->read_only) < 0) ||
	    (volume_has_source(v) ? put_source(obj, v) : put_directory(obj, v)) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

int volumes_write(const struct volumes *v, struct json_object *pod)
{
	if (v->n == 0)
		return 0;
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < v->n; i++)
		if (json_append(list, make_volume(&v->v[i])) < 0)
			return -ENOMEM;
	return json_put(pod, "volumes", TAKE_PTR(list));
}

static int read_name(struct json_object *obj, const char *key, char ret[AGENT_VOLUME_NAME_MAX + 1],
		     struct err *e)
{
	const char *name;
	if (json_get_str(obj, key, AGENT_VOLUME_NAME_MAX, &name) < 0 ||
	    !agent_volume_is_valid(name))
		return err_set(e, -EBADMSG,
			       "\"%s\" is not a name of a volume (1 to %d of a-z, 0-9 and dashes "
			       "inside)",
			       key, AGENT_VOLUME_NAME_MAX);
	return str_copy(ret, AGENT_VOLUME_NAME_MAX + 1, name);
}

static int read_bool(struct json_object *obj, const char *key, bool *ret, bool *ret_there,
		     struct err *e)
{
	int r = json_get_bool(obj, key, ret);
	if (ret_there)
		*ret_there = r == 0;
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"%s\" is neither true nor false", key);
	return 0;
}

static int read_kind(struct json_object *obj, enum volume_kind *ret, struct err *e)
{
	const char *kind = "", *medium = "";
	int r = json_get_str(obj, "medium", KIND_MAX, &medium);
	if ((r < 0 && r != -ENOENT) || json_get_str(obj, "kind", KIND_MAX, &kind) < 0 ||
	    volume_kind_parse(kind, medium, ret) < 0)
		return err_set(e, -EBADMSG,
			       "\"kind\" and \"medium\" are \"%s\" and \"%s\", which is none that "
			       "this version has",
			       kind, medium);
	return 0;
}

static int read_mode(struct json_object *obj, int64_t *ret, struct err *e)
{
	const char *mode = NULL;
	int r = json_get_str(obj, "mode", MODE_MAX, &mode);
	if ((r < 0 && r != -ENOENT) || (mode && volume_mode_parse(mode, ret) < 0))
		return err_set(e, -EBADMSG, "\"mode\" is not a text of octal digits like 0755");
	return 0;
}

static int read_number(struct json_object *obj, const char *key, int64_t max, int64_t *ret,
		       struct err *e)
{
	int r = json_get_int(obj, key, 0, max, ret);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"%s\" is not a number from 0 to %lld", key,
			       (long long)max);
	return 0;
}

static int read_format(struct json_object *obj, enum volume_format *ret, struct err *e)
{
	const char *format = "raw";
	int r = json_get_str(obj, "format", KIND_MAX, &format);
	if ((r < 0 && r != -ENOENT) || volume_format_parse(format, ret) < 0)
		return err_set(e, -EBADMSG, "\"format\" is neither \"raw\" nor \"qcow2\"");
	return 0;
}

static int read_cache(struct json_object *obj, bool *ret, struct err *e)
{
	const char *cache = "auto";
	int r = json_get_str(obj, "cache", KIND_MAX, &cache);
	*ret = strcmp(cache, "never") == 0;
	if ((r < 0 && r != -ENOENT) || (!*ret && strcmp(cache, "auto") != 0))
		return err_set(e, -EBADMSG, "\"cache\" is neither \"auto\" nor \"never\"");
	return 0;
}

static int read_source(struct json_object *obj, struct volume *v, struct err *e)
{
	const char *path = "";
	int r = json_get_str(obj, "source", AGENT_PATH_MAX, &path);
	if (r == 0)
		r = volume_set_source(v, path);
	if (r == -ENOMEM)
		return err_sys(e, r, "\"source\"");
	if (r < 0)
		return err_set(e, -EBADMSG, "\"source\" is no absolute path of at most %d bytes",
			       AGENT_PATH_MAX);
	r = read_bool(obj, "recursive", &v->recursive, NULL, e);
	if (r == 0)
		r = read_cache(obj, &v->no_cache, e);
	return r == 0 && v->kind == VOLUME_BLOCK ? read_format(obj, &v->format, e) : r;
}

static int read_volume(struct json_object *obj, struct volume *v, struct err *e)
{
	int r = read_name(obj, "name", v->name, e);
	if (r == 0)
		r = read_kind(obj, &v->kind, e);
	if (r == 0)
		r = read_bool(obj, "readOnly", &v->read_only, &v->says_read_only, e);
	if (r < 0 || volume_has_source(v))
		return r < 0 ? r : read_source(obj, v, e);
	r = read_mode(obj, &v->mode, e);
	if (r == 0)
		r = read_number(obj, "uid", AGENT_ID_MAX, &v->uid, e);
	if (r == 0)
		r = read_number(obj, "gid", AGENT_ID_MAX, &v->gid, e);
	return r < 0 ? r : read_number(obj, "size", INT64_MAX, &v->size, e);
}

/* Reads @obj and adds it. 0, or -errno and @e. */
static int take_volume(struct json_object *obj, struct volumes *list, struct err *e)
{
	CLEANUP(volume_deinit) struct volume v;
	volume_init(&v);
	int r = read_volume(obj, &v, e);
	if (r < 0)
		return r;
	r = volumes_add(list, &v);
	if (r == -EEXIST)
		return err_set(e, r, "duplicate volume name \"%s\"", v.name);
	return r < 0 ? err_sys(e, r, "at most %zu volumes", VOLUMES_MAX) : 0;
}

/* The member @key, NULL if there is none. 0, or -EBADMSG and @e. */
static int find_list(struct json_object *obj, const char *key, struct json_object **ret,
		     struct err *e)
{
	*ret = json_member(obj, key);
	if (*ret && !json_object_is_type(*ret, json_type_array))
		return err_set(e, -EBADMSG, "\"%s\" is not a list", key);
	return 0;
}

int volumes_read(struct json_object *pod, struct volumes *v, struct err *e)
{
	struct json_object *list;
	int r = find_list(pod, "volumes", &list, e);
	for (size_t i = 0; r == 0 && list && i < json_object_array_length(list); i++) {
		r = take_volume(json_object_array_get_idx(list, i), v, e);
		if (r < 0)
			err_context(e, "\"volumes\" member %zu", i);
	}
	return r;
}

/* A new object with the name under @key; NULL if memory is short. */
static struct json_object *make_mount(const struct volume_mount *m, const char *key)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, key, m->volume) < 0 || json_put_str(obj, "path", m->path) < 0 ||
	    (m->read_only && json_put_bool(obj, "readOnly", true) < 0) ||
	    (m->no_exec && json_put_bool(obj, "noExec", true) < 0) ||
	    (m->no_suid && json_put_bool(obj, "noSuid", true) < 0))
		return NULL;
	return TAKE_PTR(obj);
}

static int write_mounts(const struct volume_mounts *m, const char *key, const char *member,
			const struct volumes *own, struct json_object *obj)
{
	if (m->n == 0)
		return 0;
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < m->n; i++) {
		const struct volume *v = own ? volumes_find(own, m->v[i].volume) : NULL;
		cleanup_json struct json_object *one = make_mount(&m->v[i], member);
		if (!one || (v && json_put(one, "appVolume", make_volume(v)) < 0) ||
		    json_append(list, TAKE_PTR(one)) < 0)
			return -ENOMEM;
	}
	return json_put(obj, key, TAKE_PTR(list));
}

int app_mounts_write(const struct volume_mounts *m, const struct volumes *own,
		     struct json_object *entry)
{
	return write_mounts(m, "mounts", "volume", own, entry);
}

int mount_points_write(const struct volume_mounts *m, struct json_object *run)
{
	return write_mounts(m, "mountPoints", "name", NULL, run);
}

/* Reads @obj, whose name is under @member, and adds it. */
static int take_mount(struct json_object *obj, const char *member, bool of_image,
		      struct volume_mounts *m, struct err *e)
{
	char name[AGENT_VOLUME_NAME_MAX + 1];
	bool read_only = false;
	const char *path;
	int r = read_name(obj, member, name, e);
	if (r == 0)
		r = read_bool(obj, "readOnly", &read_only, NULL, e);
	if (r < 0)
		return r;
	if (json_get_str(obj, "path", AGENT_PATH_MAX, &path) < 0)
		return err_set(e, -EBADMSG, "\"path\" is missing or no text");
	r = add_mount(m, name, path, read_only, of_image);
	return r < 0 ? err_sys(e, r, "\"%s\"", path) : 0;
}

static int take_app_mount(struct json_object *obj, struct volume_mounts *m, struct volumes *own,
			  struct err *e)
{
	struct json_object *inside = json_member(obj, "appVolume");
	int r = take_mount(obj, "volume", false, m, e);
	if (r == 0)
		r = read_bool(obj, "noExec", &m->v[m->n - 1].no_exec, NULL, e);
	if (r == 0)
		r = read_bool(obj, "noSuid", &m->v[m->n - 1].no_suid, NULL, e);
	if (r < 0 || !inside)
		return r;
	if (volumes_find(own, m->v[m->n - 1].volume))
		return 0; /* mounted in two places, and said in both */
	r = take_volume(inside, own, e);
	if (r == 0 && strcmp(own->v[own->n - 1].name, m->v[m->n - 1].volume) != 0)
		r = err_set(e, -EBADMSG, "\"appVolume\" has another name than \"volume\"");
	return r;
}

int app_mounts_read(struct json_object *entry, struct volume_mounts *m, struct volumes *own,
		    struct err *e)
{
	struct json_object *list;
	int r = find_list(entry, "mounts", &list, e);
	for (size_t i = 0; r == 0 && list && i < json_object_array_length(list); i++) {
		r = take_app_mount(json_object_array_get_idx(list, i), m, own, e);
		if (r < 0)
			err_context(e, "\"mounts\" member %zu", i);
	}
	return r;
}

int mount_points_read(struct json_object *run, struct volume_mounts *m, struct err *e)
{
	struct json_object *list;
	int r = find_list(run, "mountPoints", &list, e);
	for (size_t i = 0; r == 0 && list && i < json_object_array_length(list); i++) {
		struct err why = ERR_INIT;
		r = take_mount(json_object_array_get_idx(list, i), "name", true, m, &why);
		if (r == -EPERM || r == -EEXIST)
			r = 0;
		if (r < 0)
			err_set(e, r, "\"mountPoints\" member %zu: %s", i, why.text);
	}
	return r;
}

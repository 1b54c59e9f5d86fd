/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/volumes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/num.h"
#include "lib/base/quantity.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/volume_source.h"

#define TEXT_MAX ((size_t)2 * AGENT_PATH_MAX) /* a path, names and numbers; more is no volume */

/* What a text says, member for member; NULL: nothing. The strings are of the text. */
struct sayings {
	const char *name, *kind, *medium, *size, *read_only, *mode, *uid, *gid, *volume, *target;
	const char *source, *recursive, *format, *cache, *no_exec, *no_suid;
};

static const struct {
	const char *key;
	size_t offset;
} keys[] = {
	{ "name", offsetof(struct sayings, name) },
	{ "kind", offsetof(struct sayings, kind) },
	{ "medium", offsetof(struct sayings, medium) },
	{ "size", offsetof(struct sayings, size) },
	{ "readOnly", offsetof(struct sayings, read_only) },
	{ "mode", offsetof(struct sayings, mode) },
	{ "uid", offsetof(struct sayings, uid) },
	{ "gid", offsetof(struct sayings, gid) },
	{ "volume", offsetof(struct sayings, volume) },
	{ "target", offsetof(struct sayings, target) },
	{ "source", offsetof(struct sayings, source) },
	{ "recursive", offsetof(struct sayings, recursive) },
	{ "format", offsetof(struct sayings, format) },
	{ "cache", offsetof(struct sayings, cache) },
	{ "noExec", offsetof(struct sayings, no_exec) },
	{ "noSuid", offsetof(struct sayings, no_suid) },
};

static const char **find_saying(struct sayings *s, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(keys[i].key, key) == 0)
			return (const char **)(void *)((char *)s + keys[i].offset);
	return NULL;
}

/* The byte that the two hex digits @s are; 0 if they are none, or that. */
static char decode_byte(const char *s)
{
	unsigned char byte = 0;
	char digits[] = { (char)tolower((unsigned char)s[0]), '\0', '\0' };
	if (s[0])
		digits[1] = (char)tolower((unsigned char)s[1]);
	return hex_decode(digits, &byte, 1) == 0 ? (char)byte : '\0';
}

/* Replaces each %XX by its byte, which is not NUL. 0 or -EINVAL. */
static int decode_percent(char *text)
{
	char *to = text;
	for (const char *from = text; *from; to++) {
		bool is_coded = *from == '%';
		*to = is_coded ? decode_byte(from + 1) : *from;
		if (!*to)
			return -EINVAL;
		from += is_coded ? 3 : 1;
	}
	*to = '\0';
	return 0;
}

/* Takes "KEY=VALUE" apart. 0, or -EINVAL and @e. */
static int take_pair(char *pair, struct sayings *s, struct err *e)
{
	char *value = strchr(pair, '=');
	if (!value)
		return err_set(e, -EINVAL, "\"%.80s\" is not of the form KEY=VALUE", pair);
	*value++ = '\0';
	const char **slot = find_saying(s, pair);
	if (!slot)
		return err_set(e, -EINVAL, "there is no key \"%.80s\"", pair);
	if (*slot)
		return err_set(e, -EINVAL, "\"%s\" is given twice", pair);
	if (decode_percent(value) < 0)
		return err_set(e, -EINVAL, "\"%s\": a %% without two hex digits behind it", pair);
	*slot = value;
	return 0;
}

/* @copy is the caller's to free and holds what @s borrows. 0, or -EINVAL, -ENOMEM and @e. */
static int take_pairs(const char *text, struct sayings *s, char **copy, struct err *e)
{
	int r = 0;
	if (strlen(text) > TEXT_MAX || !str_is_utf8(text))
		return err_set(e, -EINVAL, "no UTF-8 text of at most %zu bytes", TEXT_MAX);
	*copy = strdup(text);
	if (!*copy)
		return err_sys(e, -ENOMEM, "\"%.80s\"", text);
	for (char *rest = *copy, *pair; r == 0 && (pair = strsep(&rest, ","));)
		r = take_pair(pair, s, e);
	return r;
}

/* Without a @text *ret stays. */
static int take_bool(const char *key, const char *text, bool *ret, struct err *e)
{
	if (!text)
		return 0;
	*ret = strcmp(text, "true") == 0;
	if (!*ret && strcmp(text, "false") != 0)
		return err_set(e, -EINVAL, "%s=%.80s is neither true nor false", key, text);
	return 0;
}

static int take_id(const char *key, const char *text, int64_t *ret, struct err *e)
{
	uint64_t id = 0;
	if (text && num_parse_u64(text, AGENT_ID_MAX, &id) < 0)
		return err_set(e, -EINVAL, "%s=%.80s is not a number of a user or group", key,
			       text);
	*ret = (int64_t)id;
	return 0;
}

static int take_name(const char *name, char ret[AGENT_VOLUME_NAME_MAX + 1], struct err *e)
{
	if (!name || !agent_volume_is_valid(name))
		return err_set(e, -EINVAL,
			       "\"%.80s\" is not a name of a volume (1 to %d of a-z, 0-9 and "
			       "dashes inside)",
			       name ? name : "", AGENT_VOLUME_NAME_MAX);
	return str_copy(ret, AGENT_VOLUME_NAME_MAX + 1, name);
}

static int take_kind(const struct sayings *s, struct volume *v, struct err *e)
{
	const char *kind = s->kind ? s->kind : "", *medium = s->medium ? s->medium : "";
	if (volume_kind_parse(kind, "", &v->kind) < 0)
		return err_set(e, -EINVAL, "kind=%.80s is none (empty, host and block are)", kind);
	if (*medium && volume_has_source(v))
		return err_set(e, -EINVAL, "kind=%s has no medium", kind);
	if (*medium && strcmp(medium, "memory") != 0)
		return err_set(e, -EINVAL, "medium=%.80s is none (medium=memory is)", medium);
	return volume_kind_parse(kind, medium, &v->kind);
}

static int take_size(const struct sayings *s, struct volume *v, struct err *e)
{
	uint64_t size = 0;
	if (!s->size)
		return 0;
	if (v->kind != VOLUME_MEMORY)
		return err_set(e, -EOPNOTSUPP,
			       "size= needs medium=memory (the pod's disk has a size of its own)");
	if (size_parse(s->size, 4096, INT64_MAX, &size) < 0)
		return err_set(e, -EINVAL, "size=%.80s is not a size of at least 4096 bytes",
			       s->size);
	v->size = (int64_t)size;
	return 0;
}

/* What is made in an empty volume. */
static int take_directory(const struct sayings *s, struct volume *v, struct err *e)
{
	if (s->source || s->recursive || s->format || s->cache)
		return err_set(e, -EINVAL, "kind=empty has no source, and nothing that is of one");
	int r = take_size(s, v, e);
	if (r == 0)
		r = take_id("uid", s->uid, &v->uid, e);
	if (r == 0)
		r = take_id("gid", s->gid, &v->gid, e);
	if (r == 0 && s->mode && volume_mode_parse(s->mode, &v->mode) < 0)
		r = err_set(e, -EINVAL, "mode=%.80s are no octal digits like 0755", s->mode);
	return r;
}

/* What is there on the host. */
static int take_source(const struct sayings *s, struct volume *v, struct err *e)
{
	const char *kind = s->kind, *source = s->source ? s->source : "";
	if (s->mode || s->uid || s->gid || s->size)
		return err_set(e, -EINVAL,
			       "kind=%s is as its source is: mode, uid, gid and size are of "
			       "kind=empty",
			       kind);
	if ((s->recursive || s->cache) && v->kind != VOLUME_HOST)
		return err_set(e, -EINVAL, "recursive= and cache= are of kind=host");
	if (s->format && v->kind != VOLUME_BLOCK)
		return err_set(e, -EINVAL, "format= is of kind=block");
	if (s->format && volume_format_parse(s->format, &v->format) < 0)
		return err_set(e, -EINVAL, "format=%.80s is none (raw and qcow2 are)", s->format);
	v->no_cache = s->cache && strcmp(s->cache, "never") == 0;
	if (s->cache && !v->no_cache && strcmp(s->cache, "auto") != 0)
		return err_set(e, -EINVAL, "cache=%.80s is none (auto and never are)", s->cache);
	int r = volume_set_source(v, source);
	if (r == -EINVAL)
		return err_set(e, r, "source=%.80s is not an absolute path in UTF-8", source);
	return r < 0 ? err_sys(e, r, "source")
		     : take_bool("recursive", s->recursive, &v->recursive, e);
}

static int make_volume(const struct sayings *s, struct volume *v, struct err *e)
{
	int r = take_name(s->name, v->name, e);
	if (r == 0)
		r = take_kind(s, v, e);
	if (r == 0)
		r = take_bool("readOnly", s->read_only, &v->read_only, e);
	v->says_read_only = s->read_only;
	if (r < 0)
		return r;
	return volume_has_source(v) ? take_source(s, v, e) : take_directory(s, v, e);
}

static int add_volume(struct volumes *list, const struct sayings *s, bool is_own, struct err *e)
{
	CLEANUP(volume_deinit) struct volume v;
	volume_init(&v);
	int r = make_volume(s, &v, e);
	if (r < 0)
		return r;
	if (is_own && v.kind == VOLUME_BLOCK)
		return err_set(e, -EOPNOTSUPP,
			       "kind=block is of a whole pod (--volume of husk run and husk app "
			       "sandbox)");
	if (is_own && s->cache)
		return err_set(e, -EOPNOTSUPP,
			       "cache= is of a whole pod (cache=never of one volume of husk app "
			       "sandbox counts for all)");
	r = volumes_add(list, &v);
	if (r == -EEXIST)
		return err_set(e, r, "duplicate volume name \"%s\"", v.name);
	return r < 0 ? err_sys(e, r, "at most %zu volumes", VOLUMES_MAX) : 0;
}

static int add_mount(struct volume_mounts *list, const struct sayings *s, struct err *e)
{
	char name[AGENT_VOLUME_NAME_MAX + 1];
	const char *target = s->target ? s->target : "";
	bool read_only = false, no_exec = false, no_suid = false;
	int r = take_name(s->volume, name, e);
	if (r == 0)
		r = take_bool("readOnly", s->read_only, &read_only, e);
	if (r == 0)
		r = take_bool("noExec", s->no_exec, &no_exec, e);
	if (r == 0)
		r = take_bool("noSuid", s->no_suid, &no_suid, e);
	if (r < 0)
		return r;
	r = volume_mounts_add(list, name, target, read_only);
	switch (r) {
	case 0:
		list->v[list->n - 1].no_exec = no_exec;
		list->v[list->n - 1].no_suid = no_suid;
		return 0;
	case -EINVAL:
		return err_set(e, r, "target=%.80s is not an absolute path", target);
	case -EPERM:
		return err_set(e, r, "target=%.80s: a volume cannot be /dev, nor in /proc or /sys",
			       target);
	case -EEXIST:
		return err_set(e, r, "target=%.80s: there is a volume at that path already",
			       target);
	default:
		return err_sys(e, r, "at most %d mounts", AGENT_MOUNTS_MAX);
	}
}

int volumes_add_text(struct volumes *list, const char *text, struct err *e)
{
	struct sayings s = { 0 };
	cleanup_free char *copy = NULL, *name = strndup(text, strcspn(text, ","));
	const char *rest = strchr(text, ',');
	if (!name)
		return err_sys(e, -ENOMEM, "--volume");
	int r = rest ? take_pairs(rest + 1, &s, &copy, e)
		     : err_set(e, -EINVAL, "it is not of the form NAME,kind=KIND[,KEY=VALUE...]");
	if (r == 0 && (s.name || s.volume || s.target || s.no_exec || s.no_suid))
		r = err_set(e, -EINVAL, "where it is mounted is said by --mount");
	s.name = name;
	if (r == 0)
		r = add_volume(list, &s, false, e);
	return r < 0 ? err_context(e, "--volume: \"%.80s\"", text) : 0;
}

int volumes_add_mount(struct volume_mounts *list, const char *text, struct err *e)
{
	struct sayings s = { 0 };
	cleanup_free char *copy = NULL;
	int r = take_pairs(text, &s, &copy, e);
	if (r == 0 && (s.name || s.kind || s.medium || s.size || s.mode || s.uid || s.gid ||
		       s.source || s.recursive || s.format || s.cache))
		r = err_set(e, -EINVAL, "it is not of the form volume=NAME,target=PATH");
	if (r == 0)
		r = add_mount(list, &s, e);
	return r < 0 ? err_context(e, "--mount: \"%.80s\"", text) : 0;
}

int volumes_add_both(struct volumes *list, struct volume_mounts *mounts, const char *text,
		     struct err *e)
{
	struct sayings s = { 0 };
	cleanup_free char *copy = NULL;
	int r = take_pairs(text, &s, &copy, e);
	if (r == 0 && s.volume)
		r = err_set(e, -EINVAL, "its name is name=NAME");
	s.volume = s.name;
	if (r == 0)
		r = add_volume(list, &s, true, e);
	if (r == 0)
		r = add_mount(mounts, &s, e);
	return r < 0 ? err_context(e, "--mnt-volume: \"%.80s\"", text) : 0;
}

/* ---- the manifest ---- */

/* A volume of the app's own: the directory of its image. */
static int add_own(struct pod_app *app, const char *name, struct err *e)
{
	struct volume own;
	volume_init(&own);
	own.kind = VOLUME_IMAGE;
	str_copy(own.name, sizeof(own.name), name);
	int r = volumes_add(&app->volumes, &own);
	/* One for two paths: each app has its own directory at each. */
	return r < 0 && r != -EEXIST ? err_sys(e, r, "volumes of app \"%s\"", app->name) : 0;
}

static int add_point(const struct pod_manifest *m, const struct volume_mount *point,
		     struct pod_app *app, struct err *e)
{
	const struct volume *v = pod_manifest_volume(m, app, point->volume);
	/* What an image asks for, no other root directory has. */
	if (volume_mounts_find(&app->mounts, point->path) ||
	    (!v && volume_mounts_root(&app->mounts)))
		return 0;
	int r = v ? 0 : add_own(app, point->volume, e);
	if (r < 0)
		return r;
	r = volume_mounts_add(&app->mounts, point->volume, point->path, false);
	return r < 0 ? err_sys(e, r, "mounts of app \"%s\"", app->name) : 0;
}

static int dangling(const struct volume_mount *m, struct err *e)
{
	return err_set(e, -ENOENT, "dangling mount point \"%s\": volume \"%s\" not found", m->path,
		       m->volume);
}

int volumes_check_source(const struct volume *v, bool read_only, struct err *e)
{
	int r = 0;
	if (v->kind == VOLUME_HOST) {
		r = volume_source_check(v->source, e);
	} else if (v->kind == VOLUME_BLOCK) {
		cleanup_fd int fd =
			volume_source_open(v->source, read_only, v->format == VOLUME_QCOW2, e);
		r = MIN(fd, 0);
	}
	return r < 0 ? err_context(e, "volume \"%s\"", v->name) : 0;
}

int volumes_check(const struct volumes *pod, const struct volumes *own,
		  const struct volume_mounts *mounts, struct err *e)
{
	for (size_t i = 0; i < mounts->n; i++) {
		const char *name = mounts->v[i].volume;
		if (!volumes_find(pod, name) && !volumes_find(own, name))
			return dangling(&mounts->v[i], e);
	}
	return 0;
}

/* The volume decides, if it says something, else who mounts it, or the image. */
static int settle_mount(const struct pod_manifest *m, const struct pod_app *app,
			struct volume_mount *mount, struct err *e)
{
	const struct volume *v = pod_manifest_volume(m, app, mount->volume);
	const struct volume_mount *point = volume_mounts_find(&app->points, mount->path);
	if (!v)
		return dangling(mount, e);
	if (volume_path_is_root(mount->path) && v->kind != VOLUME_HOST)
		return err_set(e, -EOPNOTSUPP,
			       "app \"%s\": volume \"%s\" cannot be its root directory: only one "
			       "of kind=host can",
			       app->name, v->name);
	if (v->says_read_only)
		mount->read_only |= v->read_only;
	else if (point)
		mount->read_only |= point->read_only;
	return 0;
}

/* Directories and files of the host come with apps into pods that run. */
static bool can_be_own(const struct pod_manifest *m, const struct volume *v)
{
	return !volume_has_source(v) || (m->is_mutable && v->kind == VOLUME_HOST);
}

int volumes_resolve(const struct pod_manifest *m, const struct volume_mounts *common,
		    struct pod_app *app, struct err *e)
{
	for (size_t i = 0; i < app->volumes.n; i++)
		if (!can_be_own(m, &app->volumes.v[i]))
			return err_set(e, -EOPNOTSUPP,
				       "app \"%s\": volume \"%s\" has a source, and so is of a "
				       "whole pod (put it into \"volumes\")",
				       app->name, app->volumes.v[i].name);
	int r = volume_mounts_copy(&app->mounts, common);
	if (r < 0)
		return err_sys(e, r, "mounts of app \"%s\"", app->name);
	for (size_t i = 0; r == 0 && i < app->points.n; i++)
		r = add_point(m, &app->points.v[i], app, e);
	for (size_t i = 0; r == 0 && i < app->mounts.n; i++)
		r = settle_mount(m, app, &app->mounts.v[i], e);
	return r;
}

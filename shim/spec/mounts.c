/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts of a container: those that all apps have, and directories and files of the host and tmpfs,
 * which become volumes that the app brings with it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "shim/spec/oci_spec_int.h"

#define OPTION_MAX 64    /* bytes of a word of fstab(5) */
#define TMPFS_MODE 01777 /* of one of which nothing is said (tmpfs(5)) */

/* Mounts that every app has, by where they are, and of which kind. */
static const struct {
	const char *destination, *type;
} usual[] = {
	{ "/proc", "proc" },
	{ "/dev", "tmpfs" },
	{ "/dev/pts", "devpts" },
	{ "/dev/shm", "tmpfs" },
	{ "/dev/mqueue", "mqueue" },
	{ "/sys", "sysfs" },
	{ "/sys/fs/cgroup", "cgroup" },
};

struct mount {
	const char *destination, *type, *source;
	struct json_object *options; /* a list, or NULL */
};

static int read_mount(struct json_object *from, struct mount *m, struct err *e)
{
	static const char what[] = "a list of objects with a destination, and texts";
	*m = (struct mount){ .type = "", .source = "" };
	m->options = json_member(from, "options");
	if (json_get_str(from, "destination", AGENT_PATH_MAX, &m->destination) < 0 ||
	    (m->options && !json_object_is_type(m->options, json_type_array)))
		return spec_wrong("mounts", what, e);
	int r = spec_optional(json_get_str(from, "type", OPTION_MAX, &m->type), "mounts", what, e);
	return r == 0 ? spec_optional(json_get_str(from, "source", AGENT_PATH_MAX, &m->source),
				      "mounts", what, e)
		      : r;
}

/*
 * Shared memory of the sandbox, which all apps of a pod have: that of the host, which is what who
 * shares IPC with the host would get, has no use in a pod.
 */
static bool is_shared_memory(const struct mount *m, const struct oci_spec *s)
{
	char end[OCI_SPEC_ID_MAX + sizeof("/sandboxes//shm")];
	if (!s->sandbox_id || strcmp(m->destination, "/dev/shm") != 0)
		return false;
	snprintf(end, sizeof(end), "/sandboxes/%s/shm", s->sandbox_id);
	return strcmp(m->source, "/dev/shm") == 0 || str_ends(m->source, end);
}

/* A volume of the app's own, and how it is mounted. */
struct own {
	struct volume volume;
	bool no_exec, no_suid;
};

/* One word; what would be promised, and not kept, is refused. */
static int take_option(const char *option, struct own *o, struct err *e)
{
	static const char *const kept[] = { "bind",     "rbind",   "rw",
					    "nodev",    "private", "rprivate",
					    "relatime", "noatime", "strictatime" };
	static const char *const shared[] = { "shared", "rshared", "slave", "rslave" };
	if (str_is_one_of(option, shared, ARRAY_SIZE(shared)))
		return err_set(e, -EOPNOTSUPP,
			       "mounts do not propagate between the host and a pod (\"%s\")",
			       option);
	if (str_is_one_of(option, kept, ARRAY_SIZE(kept)))
		return 0;
	if (strcmp(option, "noexec") == 0)
		o->no_exec = true;
	else if (strcmp(option, "nosuid") == 0)
		o->no_suid = true;
	/* Read-only is all that is below, too, which is what "rro" wants alone. */
	else if (strcmp(option, "ro") == 0 || strcmp(option, "rro") == 0)
		o->volume.read_only = true;
	else
		return err_set(e, -EOPNOTSUPP, "option \"%.80s\" is not supported", option);
	return 0;
}

/* A size of tmpfs(5): bytes, or with a suffix units of powers of 1024. 0 or -EINVAL. */
static int parse_size(const char *text, int64_t *ret)
{
	static const char units[] = "kmg";
	size_t n = strspn(text, "0123456789");
	char digits[24];
	uint64_t value;
	const char *unit = text[n] ? strchr(units, tolower((unsigned char)text[n])) : NULL;
	const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
	if (n == 0 || n >= sizeof(digits) || (text[n] && (!unit || text[n + 1])))
		return -EINVAL;
	memcpy(digits, text, n);
	digits[n] = '\0';
	/* Zero is no limit at all, which a machine cannot give. */
	if (num_parse_u64(digits, (uint64_t)INT64_MAX >> shift, &value) < 0 || value == 0)
		return -EINVAL;
	*ret = (int64_t)(value << shift);
	return 0;
}

static int parse_id(const char *text, int64_t *ret)
{
	uint64_t id;
	int r = num_parse_u64(text, AGENT_ID_MAX, &id);
	if (r == 0)
		*ret = (int64_t)id;
	return r;
}

/* One word of a tmpfs. */
static int take_tmpfs_option(const char *option, struct own *o, struct err *e)
{
	struct volume *v = &o->volume;
	const struct {
		const char *key;
		int (*parse)(const char *text, int64_t *ret);
		int64_t *to;
	} values[] = {
		{ "size=", parse_size, &v->size },
		{ "mode=", volume_mode_parse, &v->mode },
		{ "uid=", parse_id, &v->uid },
		{ "gid=", parse_id, &v->gid },
	};
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (!str_starts(option, values[i].key))
			continue;
		return values[i].parse(option + strlen(values[i].key), values[i].to) == 0
			       ? 0
			       : err_set(e, -EINVAL, "option \"%.80s\"", option);
	}
	return take_option(option, o, e);
}

static const char *option_at(const struct mount *m, size_t i)
{
	struct json_object *option = json_object_array_get_idx(m->options, i);
	return json_object_is_type(option, json_type_string) ? json_object_get_string(option) : "";
}

static size_t count_options(const struct mount *m)
{
	return m->options ? json_object_array_length(m->options) : 0;
}

static bool has_option(const struct mount *m, const char *option)
{
	size_t i = 0, n = count_options(m);
	while (i < n && strcmp(option_at(m, i), option) != 0)
		i++;
	return i < n;
}

static bool has_size(const struct mount *m)
{
	size_t i = 0, n = count_options(m);
	while (i < n && !str_starts(option_at(m, i), "size="))
		i++;
	return i < n;
}

/* Shared memory with a size is a container's own where it shares that with no other. */
static bool is_own_memory(const struct mount *m, const struct oci_spec *s)
{
	return !s->sandbox_id && strcmp(m->destination, "/dev/shm") == 0 && has_size(m);
}

static bool is_usual(const struct mount *m, const struct oci_spec *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (strcmp(usual[i].destination, m->destination) == 0 &&
		    strcmp(usual[i].type, m->type) == 0)
			return !is_own_memory(m, s);
	return false;
}

/* The option says so, whatever type is said beside it. */
static bool is_bind(const struct mount *m)
{
	return strcmp(m->type, "bind") == 0 || has_option(m, "bind") || has_option(m, "rbind");
}

static int add_volume(const struct mount *m, const struct own *own, struct app_options *o,
		      struct err *e)
{
	const struct volume *v = &own->volume;
	int r = volume_mounts_add(&o->mounts, v->name, m->destination, v->read_only);
	if (r == 0 && volume_path_is_root(o->mounts.v[o->mounts.n - 1].path))
		r = -EPERM;
	if (r == 0) {
		o->mounts.v[o->mounts.n - 1].no_exec = own->no_exec;
		o->mounts.v[o->mounts.n - 1].no_suid = own->no_suid;
		r = volumes_add(&o->volumes, v);
	}
	if (r == -EPERM)
		return err_set(e, -EOPNOTSUPP, "no volume can be there");
	if (r == -E2BIG)
		return err_set(e, r, "at most %zu mounts of the host and tmpfs are possible",
			       VOLUMES_MAX);
	return r < 0 ? err_sys(e, r, "volume") : 0;
}

static int take_options(const struct mount *m, struct own *own,
			int (*take)(const char *option, struct own *o, struct err *e),
			struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < count_options(m); i++)
		r = take(option_at(m, i), own, e);
	return r;
}

static int take_bind(const struct mount *m, struct own *own, struct err *e)
{
	own->volume.kind = VOLUME_HOST;
	own->volume.recursive = has_option(m, "rbind");
	int r = take_options(m, own, take_option, e);
	if (r < 0)
		return r;
	r = volume_set_source(&own->volume, m->source);
	if (r == -EINVAL)
		return err_set(e, r, "\"%.255s\" is no absolute path", m->source);
	return r < 0 ? err_sys(e, r, "source") : 0;
}

static int take_tmpfs(const struct mount *m, struct own *own, struct err *e)
{
	own->volume.kind = VOLUME_MEMORY;
	own->volume.mode = TMPFS_MODE;
	return take_options(m, own, take_tmpfs_option, e);
}

/* It is the container's own, as it comes with that and goes with it. */
static int take_own(const struct mount *m, struct app_options *o, struct err *e)
{
	struct own own = { 0 };
	volume_init(&own.volume);
	snprintf(own.volume.name, sizeof(own.volume.name), "mount-%zu", o->volumes.n);
	int r;
	if (is_bind(m))
		r = take_bind(m, &own, e);
	else if (strcmp(m->type, "tmpfs") == 0)
		r = take_tmpfs(m, &own, e);
	else
		r = err_set(e, -EOPNOTSUPP, "\"%.80s\" is not supported there", m->type);
	if (r == 0)
		r = add_volume(m, &own, o, e);
	volume_deinit(&own.volume);
	return r;
}

static int take_mount(struct json_object *from, struct oci_spec *s, struct err *e)
{
	struct mount m;
	int r = read_mount(from, &m, e);
	if (r < 0 || is_usual(&m, s) || is_shared_memory(&m, s))
		return r;
	r = take_own(&m, &s->app, e);
	return r < 0 ? err_context(e, "the mount at \"%.255s\"", m.destination) : 0;
}

int spec_take_mounts(struct json_object *list, struct oci_spec *s, struct err *e)
{
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array))
		return spec_wrong("mounts", "a list", e);
	size_t n = json_object_array_length(list);
	if (n > OCI_SPEC_MOUNTS_MAX)
		return err_set(e, -E2BIG, "\"mounts\" has %zu members, more than %d", n,
			       OCI_SPEC_MOUNTS_MAX);
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = take_mount(json_object_array_get_idx(list, i), s, e);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are visited in place, one after the other, and fields are cut by ':'. A line that lacks
 * fields or whose numbers are none is skipped, as the C library does. How long one is does not
 * matter: a group of a directory service may have thousands of members, and the file is bounded.
 */
#include "guest-agent/app/ids.h"

#include <string.h>

#include "guest-agent/app/idmap.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

/* A piece of text, borrowed. */
struct slice {
	const char *at;
	size_t len;
};

/* Cuts the part before @sep off @s; without @sep that is all of it. */
static struct slice cut(struct slice *s, char sep)
{
	const char *p = s->len ? memchr(s->at, sep, s->len) : NULL;
	struct slice part = { s->at, p ? (size_t)(p - s->at) : s->len };
	size_t used = part.len + (p ? 1 : 0);
	s->at += used;
	s->len -= used;
	return part;
}

/* True and the next line of @rest; false at the end. */
static bool next_line(struct slice *rest, struct slice *ret)
{
	if (rest->len == 0)
		return false;
	*ret = cut(rest, '\n');
	return true;
}

static bool slice_is(struct slice s, const char *text)
{
	return strlen(text) == s.len && memcmp(s.at, text, s.len) == 0;
}

static bool slice_number(struct slice s, unsigned *ret)
{
	char digits[16];
	if (s.len == 0 || s.len >= sizeof(digits))
		return false;
	memcpy(digits, s.at, s.len);
	digits[s.len] = '\0';
	uint64_t n;
	if (strlen(digits) != s.len || num_parse_u64(digits, IDS_VALUE_MAX, &n) < 0)
		return false;
	*ret = (unsigned)n;
	return true;
}

struct passwd_line {
	struct slice name, home;
	unsigned uid, gid;
};

static bool parse_passwd(struct slice line, struct passwd_line *ret)
{
	ret->name = cut(&line, ':');
	cut(&line, ':');
	struct slice uid = cut(&line, ':');
	struct slice gid = cut(&line, ':');
	cut(&line, ':');
	ret->home = cut(&line, ':');
	return ret->name.len > 0 && slice_number(uid, &ret->uid) && slice_number(gid, &ret->gid);
}

struct group_line {
	struct slice name, members;
	unsigned gid;
};

static bool parse_group(struct slice line, struct group_line *ret)
{
	ret->name = cut(&line, ':');
	cut(&line, ':');
	struct slice gid = cut(&line, ':');
	ret->members = line;
	return ret->name.len > 0 && slice_number(gid, &ret->gid);
}

static bool is_member(struct slice members, struct slice name)
{
	while (members.len > 0) {
		struct slice m = cut(&members, ',');
		if (m.len == name.len && memcmp(m.at, name.at, m.len) == 0)
			return true;
	}
	return false;
}

/* Finds the first entry of that name, or with that number if @name is NULL. */
static bool find_user(const struct ids_source *src, const char *name, unsigned uid,
		      struct passwd_line *ret)
{
	struct slice rest = { src->passwd, src->passwd_len }, line;
	while (next_line(&rest, &line)) {
		struct passwd_line p;
		if (parse_passwd(line, &p) && (name ? slice_is(p.name, name) : p.uid == uid)) {
			*ret = p;
			return true;
		}
	}
	return false;
}

static bool find_group(const struct ids_source *src, const char *name, gid_t *ret)
{
	struct slice rest = { src->group, src->group_len }, line;
	while (next_line(&rest, &line)) {
		struct group_line g;
		if (parse_group(line, &g) && slice_is(g.name, name)) {
			*ret = g.gid;
			return true;
		}
	}
	return false;
}

/* Adds the groups that list @name. */
static int add_supplementary(const struct ids_source *src, struct slice name, struct ids *ids,
			     struct fault *f)
{
	struct slice rest = { src->group, src->group_len }, line;
	while (next_line(&rest, &line)) {
		struct group_line g;
		if (!parse_group(line, &g) || g.gid == ids->gid || !is_member(g.members, name))
			continue;
		if (ids->n_groups == IDS_GROUPS_MAX)
			return fault_set(f, AGENT_E_USER, "user %.*s is in more than %d groups",
					 (int)name.len, name.at, IDS_GROUPS_MAX);
		ids->groups[ids->n_groups++] = g.gid;
	}
	return 0;
}

static int no_such(const char *kind, const char *name, struct fault *f)
{
	return fault_set(
		f, AGENT_E_USER,
		"failed to configure %s \"%s\": \"%s\" %s not found (give a number, or a name that "
		"the image has)",
		kind, name, name, kind);
}

static int resolve_path(const struct ids_source *src, const char *kind, const char *path,
			uid_t *ret_uid, gid_t *ret_gid, struct fault *f)
{
	int r = src->owner ? src->owner(src->ctx, path, ret_uid, ret_gid) : -ENOENT;
	if (r == -ENOENT) /* as rkt says it */
		return fault_set(f, AGENT_E_USER,
				 "failed to configure %s \"%s\": no such file or directory", kind,
				 path);
	return r < 0 ? fault_sys(f, AGENT_E_USER, r, "failed to configure %s \"%s\"", kind, path)
		     : 0;
}

/* For the environment; one that does not fit, or would end a text early, is as good as none. */
static void copy_text(struct slice s, char *ret, size_t size)
{
	if (s.len >= size || memchr(s.at, '\0', s.len))
		return;
	memcpy(ret, s.at, s.len);
	ret[s.len] = '\0';
}

/* Fills all but the groups; *ret_name is the user's entry in passwd, or empty. */
static int resolve_user(const struct ids_source *src, const char *user, struct ids *ids,
			struct slice *ret_name, struct fault *f)
{
	unsigned uid = 0;
	bool numeric = true;
	gid_t unused;
	if (user[0] == '/') {
		int r = resolve_path(src, "user", user, &uid, &unused, f);
		if (r != 0)
			return r;
	} else if (user[0]) {
		numeric = slice_number((struct slice){ user, strlen(user) }, &uid);
	}
	struct passwd_line p;
	if (find_user(src, numeric ? NULL : user, uid, &p)) {
		ids->uid = p.uid;
		ids->gid = p.gid;
		copy_text(p.name, ids->name, sizeof(ids->name));
		if (p.home.len > 0 && p.home.at[0] == '/')
			copy_text(p.home, ids->home, sizeof(ids->home));
		*ret_name = p.name;
		return 0;
	}
	if (!numeric && strcmp(user, "root") != 0)
		return no_such("user", user, f);
	ids->uid = uid;
	ids->gid = 0;
	*ret_name = (struct slice){ "", 0 };
	return 0;
}

static int resolve_group(const struct ids_source *src, const char *group, struct ids *ids,
			 struct fault *f)
{
	unsigned gid;
	uid_t unused;
	if (!group[0])
		return 0;
	if (group[0] == '/')
		return resolve_path(src, "group", group, &unused, &ids->gid, f);
	if (slice_number((struct slice){ group, strlen(group) }, &gid)) {
		ids->gid = gid;
		return 0;
	}
	if (find_group(src, group, &ids->gid))
		return 0;
	if (strcmp(group, "root") != 0)
		return no_such("group", group, f);
	ids->gid = 0;
	return 0;
}

int ids_resolve(const struct ids_source *src, const char *user, const char *group, struct ids *ret,
		struct fault *f)
{
	char name[AGENT_USER_MAX + 1];
	if (str_copy(name, sizeof(name), user) < 0)
		return fault_set(f, AGENT_E_USER, "user: longer than %d bytes", AGENT_USER_MAX);
	char *colon = group[0] || name[0] == '/' ? NULL : strchr(name, ':');
	if (colon) {
		*colon = '\0';
		group = colon + 1;
	}
	struct ids ids = { 0 };
	struct slice entry = { "", 0 };
	int r = resolve_user(src, name, &ids, &entry, f);
	if (r == 0)
		r = resolve_group(src, group, &ids, f);
	if (r == 0 && entry.len > 0 && !group[0])
		r = add_supplementary(src, entry, &ids, f);
	if (r == 0)
		r = idmap_check_user(ids.uid, f);
	if (r == 0)
		r = idmap_check_groups(&ids.gid, 1, f);
	if (r == 0)
		r = idmap_check_groups(ids.groups, ids.n_groups, f);
	if (r == 0)
		*ret = ids;
	return r;
}

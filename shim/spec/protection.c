/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container is kept from, beside what every app is. That it asks for nothing of a kind is
 * said, too: then it is kept from nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "shim/spec/oci_spec_int.h"

#define DEVICE_TYPE_MAX 8 /* bytes; the types have one */

static int take_seccomp(struct json_object *linux_, struct isolators *i, struct err *e)
{
	struct json_object *profile = json_member(linux_, "seccomp");
	int r = !profile ? isolators_set(i, ISOLATOR_SECCOMP_PROFILE, "{}", e)
		: json_member(profile, "defaultAction")
			? isolators_set_profile(i, profile, e)
			: err_set(e, -EBADMSG, "it has no \"defaultAction\"");
	return r < 0 ? err_context(e, "\"linux.seccomp\"") : 0;
}

static int take_paths(struct json_object *linux_, const char *key, enum isolator which,
		      struct isolators *i, struct err *e)
{
	char member[64];
	cleanup_strv struct strv paths;
	strv_init(&paths, AGENT_PATHS_MAX);
	snprintf(member, sizeof(member), "linux.%s", key);
	int r = spec_take_list(linux_, key, member, AGENT_PATH_MAX, &paths, e);
	if (r < 0)
		return r;
	r = isolators_set_members(i, which, &paths, e);
	return r < 0 ? err_context(e, "\"%s\"", member) : 0;
}

/* ---- devices ---- */

/* Of those that every app has. */
static bool is_usual_device(const char *path, const char *type, int64_t major, int64_t minor)
{
	static const struct {
		const char *path;
		int64_t major, minor;
	} usual[] = {
		{ "/dev/null", 1, 3 },       { "/dev/zero", 1, 5 },    { "/dev/full", 1, 7 },
		{ "/dev/random", 1, 8 },     { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
		{ "/dev/net/tun", 10, 200 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (strcmp(usual[i].path, path) == 0)
			return *type == 'c' && usual[i].major == major && usual[i].minor == minor;
	return false;
}

static int check_device(struct json_object *device, bool all, struct err *e)
{
	const char *path, *type;
	int64_t major = -1, minor = -1;
	static const char what[] = "a list of objects with path, type, major and minor";
	if (json_get_str(device, "path", AGENT_PATH_MAX, &path) < 0 ||
	    json_get_str(device, "type", DEVICE_TYPE_MAX, &type) < 0)
		return spec_wrong("linux.devices", what, e);
	int r = spec_optional(json_get_int(device, "major", 0, UINT32_MAX, &major), "linux.devices",
			      what, e);
	if (r == 0)
		r = spec_optional(json_get_int(device, "minor", 0, UINT32_MAX, &minor),
				  "linux.devices", what, e);
	if (r < 0 || all || is_usual_device(path, type, major, minor))
		return r;
	return err_set(e, -EOPNOTSUPP,
		       "\"linux.devices\": \"%.255s\" of the host is not to be had in a pod", path);
}

/* A rule that allows everything, which only privileged containers have. */
static bool allows_all(struct json_object *rule)
{
	bool allow = false;
	const char *type = "a";
	int64_t major = -1, minor = -1;
	(void)json_get_bool(rule, "allow", &allow);
	(void)json_get_str(rule, "type", DEVICE_TYPE_MAX, &type);
	(void)json_get_int(rule, "major", INT32_MIN, UINT32_MAX, &major);
	(void)json_get_int(rule, "minor", INT32_MIN, UINT32_MAX, &minor);
	return allow && *type == 'a' && major < 0 && minor < 0;
}

/*
 * All devices, which come with a privileged container, are those of the host where it runs: of the
 * machine, that is, which has no others than the usual ones.
 */
static int check_devices(struct json_object *linux_, struct err *e)
{
	struct json_object *list = json_member(linux_, "devices");
	struct json_object *rules = json_member(json_member(linux_, "resources"), "devices");
	bool all = false;
	int r = 0;
	if ((list && !json_object_is_type(list, json_type_array)) ||
	    (rules && !json_object_is_type(rules, json_type_array)))
		return spec_wrong(list ? "linux.devices" : "linux.resources.devices", "a list", e);
	for (size_t i = 0; rules && i < json_object_array_length(rules); i++)
		all |= allows_all(json_object_array_get_idx(rules, i));
	for (size_t i = 0; r == 0 && list && i < json_object_array_length(list); i++)
		r = check_device(json_object_array_get_idx(list, i), all, e);
	return r;
}

int spec_take_protection(struct json_object *linux_, struct isolators *i, struct err *e)
{
	int r = take_seccomp(linux_, i, e);
	if (r == 0)
		r = take_paths(linux_, "maskedPaths", ISOLATOR_MASKED_PATHS, i, e);
	if (r == 0)
		r = take_paths(linux_, "readonlyPaths", ISOLATOR_READ_ONLY_PATHS, i, e);
	return r == 0 ? check_devices(linux_, e) : r;
}

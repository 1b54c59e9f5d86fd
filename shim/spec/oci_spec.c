/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/spec/oci_spec.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/wire/rlimit.h"
#include "lib/wire/sysctls.h"
#include "shim/spec/oci_spec_int.h"

#define TERMINAL_MAX 4096 /* rows and columns; a large screen has 500 */

void oci_spec_init(struct oci_spec *s)
{
	*s = (struct oci_spec){ .document = NULL, .cpu_period = SPEC_CPU_PERIOD };
	app_options_init(&s->app);
	strv_init(&s->sysctls, SYSCTLS_MAX);
	strv_init(&s->wishes, OCI_SPEC_WISHES_MAX);
}

void oci_spec_deinit(struct oci_spec *s)
{
	app_options_deinit(&s->app);
	strv_deinit(&s->sysctls);
	strv_deinit(&s->wishes);
	json_object_put(s->document);
	*s = (struct oci_spec){ .document = NULL };
}

int spec_wrong(const char *member, const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "\"%s\" is not %s", member, what);
}

int spec_optional(int r, const char *member, const char *what, struct err *e)
{
	if (r == 0 || r == -ENOENT)
		return 0;
	if (r == -ENOMEM || r == -E2BIG)
		return err_sys(e, r, "\"%s\"", member);
	return spec_wrong(member, what, e);
}

int spec_take_list(struct json_object *from, const char *key, const char *member, size_t text_max,
		   struct strv *ret, struct err *e)
{
	int r = json_get_strv(from, key, text_max, ret);
	if (r == -E2BIG)
		return err_set(e, r, "\"%s\" has more than %zu members", member, ret->max);
	if (r == -EBADMSG)
		return err_set(e, r, "\"%s\" is not a list of texts of at most %zu bytes", member,
			       text_max);
	return r < 0 && r != -ENOENT ? err_sys(e, r, "\"%s\"", member) : 0;
}

/* True of what asks for nothing: -1, as a limit, is none. */
static bool is_empty(struct json_object *value)
{
	if (json_object_is_type(value, json_type_array))
		return json_object_array_length(value) == 0;
	if (json_object_is_type(value, json_type_object))
		return json_object_object_length(value) == 0;
	if (json_object_is_type(value, json_type_string))
		return json_object_get_string_len(value) == 0;
	return json_object_get_int64(value) == 0 || json_object_get_int64(value) == -1;
}

/* What somebody would rely on, and not have. */
static int refuse_members(struct json_object *from, const char *path, const char *const *members,
			  size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct json_object *value = json_member(from, members[i]);
		if (value && !is_empty(value))
			return err_set(e, -EOPNOTSUPP, "\"%s%s\" is not supported", path,
				       members[i]);
	}
	return 0;
}

/* ---- process ---- */

static int take_number(struct isolators *i, enum isolator which, int64_t value, const char *member,
		       struct err *e)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, value);
	int r = isolators_set(i, which, text, e);
	return r < 0 ? err_context(e, "\"%s\"", member) : 0;
}

static int take_args(struct json_object *process, struct app_options *o, struct err *e)
{
	int r = spec_take_list(process, "args", "process.args", AGENT_STRING_MAX, &o->args, e);
	if (r < 0)
		return r;
	return o->args.n > 0 && o->args.v[0][0] != '\0'
		       ? 0
		       : spec_wrong("process.args", "a list of texts that begins with a program",
				    e);
}

/* Of variables that are there twice the last one counts, as for execve(2) of most programs. */
static int take_env(struct json_object *process, struct app_options *o, struct err *e)
{
	cleanup_strv struct strv all;
	strv_init(&all, o->env.max);
	int r = spec_take_list(process, "env", "process.env", AGENT_STRING_MAX, &all, e);
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		char *equals = strchr(all.v[i], '=');
		if (!equals || equals == all.v[i])
			continue; /* no program can look for it */
		*equals = '\0';
		r = strv_env_set(&o->env, all.v[i], equals + 1);
		if (r < 0)
			err_sys(e, r, "\"process.env\"");
	}
	return r;
}

/* A decimal number as text, which the document owns from then on. */
static int take_id(struct json_object *user, const char *key, const char *member, const char **ret,
		   struct err *e)
{
	char text[24];
	int64_t id = 0;
	int r = spec_optional(json_get_int(user, key, 0, POD_GROUP_MAX, &id), member, "an ID", e);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), "%" PRId64, id);
	r = json_put(user, member, json_object_new_string(text));
	if (r < 0)
		return err_sys(e, r, "\"%s\"", member);
	*ret = json_object_get_string(json_member(user, member));
	return 0;
}

static int take_groups(struct json_object *user, struct app_options *o, struct err *e)
{
	struct json_object *list = json_member(user, "additionalGids");
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	if (list && n == 0 && !json_object_is_type(list, json_type_array))
		return spec_wrong("process.user.additionalGids", "a list", e);
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		char text[24];
		struct json_object *id = json_object_array_get_idx(list, i);
		if (!json_object_is_type(id, json_type_int))
			return spec_wrong("process.user.additionalGids", "a list of IDs", e);
		snprintf(text, sizeof(text), "%" PRId64, json_object_get_int64(id));
		r = pod_app_add_group(&o->groups, text, e);
	}
	return r < 0 ? err_context(e, "\"process.user.additionalGids\"") : 0;
}

static int take_umask(struct json_object *user, struct isolators *i, struct err *e)
{
	static const char member[] = "process.user.umask";
	int64_t mask = -1;
	int r = spec_optional(json_get_int(user, "umask", 0, AGENT_UMASK_MAX, &mask), member,
			      "a umask", e);
	return r == 0 && mask >= 0 ? take_number(i, ISOLATOR_UMASK, mask, member, e) : r;
}

static int take_user(struct json_object *process, struct app_options *o, struct err *e)
{
	struct json_object *user = json_member(process, "user");
	if (!user) {
		o->user = o->group = "0";
		return 0;
	}
	if (!json_object_is_type(user, json_type_object))
		return spec_wrong("process.user", "an object", e);
	int r = take_umask(user, &o->isolators, e);
	if (r == 0)
		r = take_id(user, "uid", "process.user.uid", &o->user, e);
	if (r == 0)
		r = take_id(user, "gid", "process.user.gid", &o->group, e);
	return r == 0 ? take_groups(user, o, e) : r;
}

/*
 * An app has one set of capabilities: the one that bounds the others. As with execve(2) root has
 * all of it, and others none.
 */
static int take_capabilities(struct json_object *process, struct app_options *o, struct err *e)
{
	struct json_object *sets = json_member(process, "capabilities");
	cleanup_strv struct strv names;
	strv_init(&names, ISOLATOR_CAPS_MAX);
	int r = spec_take_list(sets, "bounding", "process.capabilities.bounding", ISOLATOR_NAME_MAX,
			       &names, e);
	if (r == 0)
		r = isolators_set_members(&o->isolators, ISOLATOR_CAPS_RETAIN, &names, e);
	return r < 0 ? err_context(e, "\"process.capabilities.bounding\"") : 0;
}

static void format_limit(uint64_t value, char out[24])
{
	if (value == RLIMIT_UNLIMITED)
		snprintf(out, 24, "unlimited");
	else
		snprintf(out, 24, "%" PRIu64, value);
}

/* {"type": "RLIMIT_NOFILE", "soft": N, "hard": N} */
static int take_rlimit(struct json_object *limit, struct app_options *o, struct err *e)
{
	static const char prefix[] = "RLIMIT_";
	char text[128], soft[24], hard[24], name[32];
	const char *type;
	struct json_object *s = json_member(limit, "soft"), *h = json_member(limit, "hard");
	if (json_get_str(limit, "type", sizeof(name) - 1, &type) < 0 || !str_starts(type, prefix) ||
	    !json_object_is_type(s, json_type_int) || !json_object_is_type(h, json_type_int))
		return spec_wrong("process.rlimits", "a list of objects with type, soft and hard",
				  e);
	format_limit(json_object_get_uint64(s), soft);
	format_limit(json_object_get_uint64(h), hard);
	size_t len = strlen(type + strlen(prefix));
	for (size_t i = 0; i <= len; i++) {
		char c = type[strlen(prefix) + i];
		name[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	snprintf(text, sizeof(text), "%s=%s:%s", name, soft, hard);
	int r = isolators_set(&o->isolators, ISOLATOR_RLIMITS, text, e);
	return r < 0 ? err_context(e, "\"process.rlimits\"") : 0;
}

static int take_rlimits(struct json_object *process, struct app_options *o, struct err *e)
{
	struct json_object *list = json_member(process, "rlimits");
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array))
		return spec_wrong("process.rlimits", "a list", e);
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_object_array_length(list); i++)
		r = take_rlimit(json_object_array_get_idx(list, i), o, e);
	return r;
}

static int take_flags(struct json_object *process, struct oci_spec *s, struct err *e)
{
	bool no_new_privs = false;
	struct app_options *o = &s->app;
	int64_t score = 0;
	int r = spec_optional(json_get_bool(process, "noNewPrivileges", &no_new_privs),
			      "process.noNewPrivileges", "a boolean", e);
	if (r == 0)
		r = isolators_set(&o->isolators, ISOLATOR_NO_NEW_PRIVS,
				  no_new_privs ? "true" : "false", e);
	if (r == 0)
		r = spec_optional(json_get_int(process, "oomScoreAdj", -ISOLATOR_OOM_SCORE_ADJ_MAX,
					       ISOLATOR_OOM_SCORE_ADJ_MAX, &score),
				  "process.oomScoreAdj", "a number from -1000 to 1000", e);
	if (r == 0 && score != 0)
		r = take_number(&o->isolators, ISOLATOR_OOM_SCORE_ADJ, score, "process.oomScoreAdj",
				e);
	s->oom_score_adj = (int)score;
	return r;
}

static int take_terminal(struct json_object *process, struct oci_spec *s, struct err *e)
{
	struct json_object *size = json_member(process, "consoleSize");
	int64_t rows = 0, columns = 0;
	int r = spec_optional(json_get_bool(process, "terminal", &s->terminal), "process.terminal",
			      "a boolean", e);
	if (r == 0)
		r = spec_optional(json_get_int(size, "height", 0, TERMINAL_MAX, &rows),
				  "process.consoleSize.height", "a number of rows", e);
	if (r == 0)
		r = spec_optional(json_get_int(size, "width", 0, TERMINAL_MAX, &columns),
				  "process.consoleSize.width", "a number of columns", e);
	s->rows = (int)rows;
	s->columns = (int)columns;
	return r;
}

static int take_process(struct json_object *process, struct oci_spec *s, struct err *e)
{
	static const char *const refused[] = { "ioPriority", "scheduler", "execCPUAffinity" };
	struct app_options *o = &s->app;
	if (!json_object_is_type(process, json_type_object))
		return spec_wrong("process", "an object", e);
	int r = refuse_members(process, "process.", refused, ARRAY_SIZE(refused), e);
	if (r == 0)
		r = take_args(process, o, e);
	if (r == 0)
		r = take_env(process, o, e);
	if (r == 0)
		r = spec_optional(json_get_str(process, "cwd", AGENT_PATH_MAX, &o->working_dir),
				  "process.cwd", "a path", e);
	if (r == 0)
		r = take_user(process, o, e);
	if (r == 0)
		r = take_capabilities(process, o, e);
	if (r == 0)
		r = take_rlimits(process, o, e);
	if (r == 0)
		r = take_flags(process, s, e);
	return r == 0 ? take_terminal(process, s, e) : r;
}

/* ---- namespaces ---- */

/* What a container has of the host unless it is to have a namespace of that type. */
static const struct {
	const char *type, *what;
} of_host[] = {
	{ "network", "the host's network is" },
	{ "pid", "the host's processes are" },
	{ "ipc", "the host's shared memory is" },
};

/* *there: bit N if there is one of kind N. */
static int take_namespace(struct json_object *ns, struct oci_spec *s, unsigned *there,
			  struct err *e)
{
	const char *type, *path = NULL;
	if (json_get_str(ns, "type", 32, &type) < 0)
		return spec_wrong("linux.namespaces", "a list of objects with a type", e);
	int r = spec_optional(json_get_str(ns, "path", AGENT_PATH_MAX, &path), "linux.namespaces",
			      "a list with paths", e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(of_host); i++)
		*there |= (unsigned)(strcmp(type, of_host[i].type) == 0) << i;
	if (r < 0 || !path || !*path)
		return r;
	if (strcmp(type, "network") == 0)
		s->netns = path;
	else if (!s->sandbox_id)
		return err_set(e, -EOPNOTSUPP,
			       "only a network namespace can be joined, not \"%.32s\"", type);
	else if (strcmp(type, "pid") == 0) /* its sandbox's, which is the only one that it knows */
		r = isolators_set(&s->app.isolators, ISOLATOR_SHARED_PROCESSES, "true", e);
	return r < 0 ? err_context(e, "\"linux.namespaces\"") : 0;
}

static int take_namespaces(struct json_object *linux_, struct oci_spec *s, struct err *e)
{
	struct json_object *list = json_member(linux_, "namespaces");
	unsigned there = 0;
	int r = 0;
	if (list && !json_object_is_type(list, json_type_array))
		return spec_wrong("linux.namespaces", "a list", e);
	for (size_t i = 0; r == 0 && list && i < json_object_array_length(list); i++)
		r = take_namespace(json_object_array_get_idx(list, i), s, &there, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(of_host); i++)
		if (!(there >> i & 1))
			r = err_set(e, -EOPNOTSUPP,
				    "%s not to be had in a pod "
				    "(give the container a %s namespace)",
				    of_host[i].what, of_host[i].type);
	return r;
}

/* ---- resources ---- */

/* A limit that is a number; what says that there is none is none. */
static int take_limit(struct json_object *from, const char *key, const char *member,
		      enum isolator which, struct isolators *i, struct err *e)
{
	int64_t value = 0;
	int r = spec_optional(json_get_int(from, key, INT64_MIN + 1, INT64_MAX, &value), member,
			      "a number", e);
	return r == 0 && value > 0 ? take_number(i, which, value, member, e) : r;
}

int64_t spec_millis_of(int64_t quota, int64_t period)
{
	return MAX(quota * 1000 / period, (int64_t)ISOLATOR_CPU_MIN);
}

/*
 * A quota in each period, both in microseconds, as thousandths of a processor. *period is the one
 * that there is, and becomes the one that is said.
 */
static int take_quota(struct json_object *cpu, int64_t *period, struct isolators *i, struct err *e)
{
	static const int64_t second = 1000000;
	int64_t quota = 0, said = 0;
	char text[24];
	int r = spec_optional(json_get_int(cpu, "quota", -1, second * ISOLATOR_CPU_MAX, &quota),
			      "linux.resources.cpu.quota", "a number of microseconds", e);
	if (r == 0)
		r = spec_optional(json_get_int(cpu, "period", 0, second, &said),
				  "linux.resources.cpu.period", "a number of microseconds", e);
	if (r == 0 && said > 0)
		*period = said;
	if (r < 0 || quota <= 0)
		return r;
	int64_t millis = spec_millis_of(quota, *period);
	snprintf(text, sizeof(text), "%" PRId64 "m", millis);
	r = isolators_set(i, ISOLATOR_CPU, text, e);
	return r < 0 ? err_context(e, "\"linux.resources.cpu.quota\"") : 0;
}

static int take_resources(struct json_object *resources, int64_t *period, struct isolators *i,
			  struct err *e)
{
	struct json_object *cpu = json_member(resources, "cpu");
	int r = take_limit(json_member(resources, "memory"), "limit",
			   "linux.resources.memory.limit", ISOLATOR_MEMORY, i, e);
	if (r == 0)
		r = take_limit(cpu, "shares", "linux.resources.cpu.shares", ISOLATOR_CPU_SHARES, i,
			       e);
	if (r == 0)
		r = take_quota(cpu, period, i, e);
	return r == 0 ? take_limit(json_member(resources, "pids"), "limit",
				   "linux.resources.pids.limit", ISOLATOR_PIDS, i, e)
		      : r;
}

/* ---- the rest ---- */

/* Kernel parameters of the pod's namespaces. */
static int take_sysctls(struct json_object *sysctls, struct oci_spec *s, struct err *e)
{
	if (!sysctls)
		return 0;
	if (!json_object_is_type(sysctls, json_type_object))
		return spec_wrong("linux.sysctl", "an object", e);
	json_object_object_foreach(sysctls, key, value)
	{
		if (!json_object_is_type(value, json_type_string))
			return spec_wrong("linux.sysctl", "an object of texts", e);
		char text[SYSCTL_TEXT_MAX + 2];
		snprintf(text, sizeof(text), "%s=%s", key, json_object_get_string(value));
		int r = sysctls_add(&s->sysctls, text, e);
		if (r < 0)
			return err_context(e, "\"linux.sysctl\"");
	}
	return 0;
}

/* A kubelet has one for each size of a page, for containers that want none. */
static bool forbids_large_pages(struct json_object *limits)
{
	bool is_list = json_object_is_type(limits, json_type_array);
	for (size_t i = 0; is_list && i < json_object_array_length(limits); i++) {
		int64_t limit = -1;
		if (json_get_int(json_object_array_get_idx(limits, i), "limit", 0, INT64_MAX,
				 &limit) < 0 ||
		    limit != 0)
			return false;
	}
	return is_list;
}

/*
 * What a kubelet wants of every container is so of every app: all of its processes go when memory
 * is short, and there is no swap space that could be used, however much it may use.
 */
static bool is_so_anyway(const char *key, const char *value)
{
	return strcmp(key, "memory.swap.max") == 0 ||
	       (strcmp(key, "memory.oom.group") == 0 && strcmp(value, "1") == 0);
}

static int refuse_unified(struct json_object *unified, struct err *e)
{
	if (!json_object_is_type(unified, json_type_object))
		return spec_wrong("linux.resources.unified", "an object", e);
	json_object_object_foreach(unified, key, value)
	{
		const char *text = json_object_is_type(value, json_type_string)
					   ? json_object_get_string(value)
					   : "";
		if (!is_so_anyway(key, text))
			return err_set(e, -EOPNOTSUPP,
				       "\"linux.resources.unified\": \"%.80s\" is not supported",
				       key);
	}
	return 0;
}

/* Limits that nothing in a pod would hold. */
static int refuse_resources(struct json_object *resources, struct err *e)
{
	static const char *const of_all[] = { "blockIO", "network", "rdma" };
	static const char *const of_memory[] = { "kernel", "kernelTCP", "disableOOMKiller" };
	static const char *const of_cpu[] = { "cpus",           "mems", "realtimeRuntime",
					      "realtimePeriod", "idle", "burst" };
	int r = refuse_members(json_member(resources, "memory"), "linux.resources.memory.",
			       of_memory, ARRAY_SIZE(of_memory), e);
	if (r == 0)
		r = refuse_members(json_member(resources, "cpu"), "linux.resources.cpu.", of_cpu,
				   ARRAY_SIZE(of_cpu), e);
	if (r == 0)
		r = refuse_members(resources, "linux.resources.", of_all, ARRAY_SIZE(of_all), e);
	struct json_object *unified = json_member(resources, "unified");
	if (r == 0 && unified)
		r = refuse_unified(unified, e);
	struct json_object *pages = json_member(resources, "hugepageLimits");
	if (r == 0 && pages && !forbids_large_pages(pages))
		r = err_set(e, -EOPNOTSUPP, "\"linux.resources.hugepageLimits\" is not supported");
	return r;
}

static int refuse_rest(struct json_object *doc, struct err *e)
{
	static const char *const of_all[] = { "hooks",   "vm",  "solaris",
					      "windows", "zos", "domainname" };
	static const char *const of_linux[] = { "intelRdt", "personality", "uidMappings",
						"gidMappings" };
	int r = refuse_members(doc, "", of_all, ARRAY_SIZE(of_all), e);
	return r == 0 ? refuse_members(json_member(doc, "linux"), "linux.", of_linux,
				       ARRAY_SIZE(of_linux), e)
		      : r;
}

static int take_root(struct json_object *root, struct oci_spec *s, struct err *e)
{
	s->root = "rootfs";
	int r = spec_optional(json_get_bool(root, "readonly", &s->app.read_only_root),
			      "root.readonly", "a boolean", e);
	return r == 0 ? spec_optional(json_get_str(root, "path", AGENT_PATH_MAX, &s->root),
				      "root.path", "a path", e)
		      : r;
}

/* One in which something runs. */
static int take_app(struct json_object *doc, struct oci_spec *s, struct err *e)
{
	struct json_object *linux_ = json_member(doc, "linux");
	s->app.instead_of_image = s->app.makes_working_dir = true;
	int r = take_process(json_member(doc, "process"), s, e);
	if (r == 0)
		r = take_root(json_member(doc, "root"), s, e);
	if (r == 0)
		r = take_resources(json_member(linux_, "resources"), &s->cpu_period,
				   &s->app.isolators, e);
	if (r == 0)
		r = refuse_resources(json_member(linux_, "resources"), e);
	if (r == 0)
		r = spec_take_mounts(json_member(doc, "mounts"), s, e);
	return r == 0 ? spec_take_protection(linux_, &s->app.isolators, e) : r;
}

/*
 * The control group of the container: a path, or SLICE:PREFIX:NAME, which runc has systemd make,
 * and tools on the host find by that name.
 */
static int take_cgroup(struct json_object *linux_, struct oci_spec *s, struct err *e)
{
	static const char member[] = "linux.cgroupsPath", what[] = "a path of up to 511 bytes";
	const char *path = "";
	int r = spec_optional(json_get_str(linux_, "cgroupsPath", OCI_SPEC_CGROUP_MAX, &path),
			      member, what, e);
	if (r < 0 || !*path)
		return r;
	const char *first = strchr(path, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	int n;
	if (*path == '/' || !second) {
		n = snprintf(s->cgroup, sizeof(s->cgroup), "+%s%s", *path == '/' ? "" : "/", path);
	} else {
		const char *slice = first == path ? "system.slice:" : path;
		int prefix = (int)(second - first - 1);
		n = snprintf(s->cgroup, sizeof(s->cgroup), "+%.*s/%.*s%s%s.scope",
			     (int)strcspn(slice, ":"), slice, prefix, first + 1, prefix ? "-" : "",
			     second + 1);
	}
	return n < 0 || (size_t)n >= sizeof(s->cgroup) ? spec_wrong(member, what, e) : 0;
}

/* Of a sandbox's process, which is there to wait, only that counts which is the pod's. */
static int take_document(struct json_object *doc, struct oci_spec *s, struct err *e)
{
	struct json_object *linux_ = json_member(doc, "linux");
	int r = spec_take_annotations(json_member(doc, "annotations"), s, e);
	if (r == 0)
		r = s->is_sandbox ? take_flags(json_member(doc, "process"), s, e)
				  : take_app(doc, s, e);
	if (r == 0)
		r = spec_optional(json_get_str(doc, "hostname", AGENT_HOSTNAME_MAX, &s->hostname),
				  "hostname", "a host name", e);
	if (r == 0)
		r = take_namespaces(linux_, s, e);
	if (r == 0)
		r = take_sysctls(json_member(linux_, "sysctl"), s, e);
	if (r == 0)
		r = take_cgroup(linux_, s, e);
	if (r == 0)
		r = spec_take_machine(json_member(doc, "annotations"), s, e);
	return r == 0 ? refuse_rest(doc, e) : r;
}

/* The JSON document of @what. */
static int parse_document(const char *text, size_t len, const char *what, struct json_object **ret,
			  struct err *e)
{
	if (len > OCI_SPEC_SIZE_MAX)
		return err_set(e, -E2BIG, "%s: larger than %zu MiB", what, OCI_SPEC_SIZE_MAX >> 20);
	if (json_count_containers(text, len) > OCI_SPEC_CONTAINERS_MAX)
		return err_set(e, -E2BIG, "%s: more than %zu objects and lists", what,
			       OCI_SPEC_CONTAINERS_MAX);
	int r = json_parse(text, len, ret);
	if (r == -EBADMSG)
		return err_set(e, r, "%s: it is not valid JSON", what);
	if (r == 0 && !json_object_is_type(*ret, json_type_object))
		return err_set(e, -EBADMSG, "%s: it is not a JSON object", what);
	return r < 0 ? err_sys(e, r, "%s", what) : 0;
}

int oci_spec_parse(const char *text, size_t len, struct oci_spec *ret, struct err *e)
{
	int r = parse_document(text, len, "config.json", &ret->document, e);
	if (r < 0)
		return r;
	r = take_document(ret->document, ret, e);
	return r < 0 ? err_context(e, "config.json") : 0;
}

int oci_annotations_parse(const char *text, size_t len, struct oci_spec *ret, struct err *e)
{
	int r = parse_document(text, len, "config.json", &ret->document, e);
	if (r < 0)
		return r;
	r = spec_take_annotations(json_member(ret->document, "annotations"), ret, e);
	return r < 0 ? err_context(e, "config.json") : 0;
}

/* ---- a further process ---- */

/* Of lists without repetitions, in whatever order they are. */
static bool have_same(const struct strv *a, const struct strv *b)
{
	size_t i = 0;
	while (i < a->n && strv_has(b, a->v[i]))
		i++;
	return i == a->n && a->n == b->n;
}

static int64_t umask_of(const struct isolators *i)
{
	return isolators_has(i, ISOLATOR_UMASK) ? i->umask : 022;
}

/* A pod confines apps, and what runs in them with them. */
static int check_privileges(const struct isolators *own, const struct isolators *of_app,
			    struct err *e)
{
	const char *other = NULL;
	if (!have_same(&own->caps, &of_app->caps))
		other = "capabilities";
	else if (own->rlimits.n > 0 && !have_same(&own->rlimits, &of_app->rlimits))
		other = "rlimits";
	else if (own->no_new_privs != of_app->no_new_privs)
		other = "noNewPrivileges";
	else if (isolators_has(own, ISOLATOR_UMASK) && own->umask != umask_of(of_app))
		other = "user.umask";
	else if (own->oom_score_adj != 0 && own->oom_score_adj != of_app->oom_score_adj)
		other = "oomScoreAdj";
	return other ? err_set(e, -EOPNOTSUPP,
			       "\"process.%s\" is not that of the container, which is not "
			       "supported",
			       other)
		     : 0;
}

int oci_process_parse(const char *text, size_t len, const struct oci_spec *in, struct oci_spec *ret,
		      struct err *e)
{
	int r = parse_document(text, len, "process", &ret->document, e);
	if (r == 0)
		r = take_process(ret->document, ret, e);
	return r == 0 ? check_privileges(&ret->app.isolators, &in->app.isolators, e) : r;
}

/* ---- other limits ---- */

/* What is 0 or absent stays as it is. */
static unsigned changed_by(struct json_object *from, const char *key, enum isolator which)
{
	return json_object_get_int64(json_member(from, key)) != 0 ? 1U << which : 0;
}

int oci_resources_parse(const char *text, size_t len, int64_t *period, struct isolators *ret,
			unsigned *ret_changed, struct err *e)
{
	cleanup_json struct json_object *doc = NULL;
	int64_t said = *period;
	int r = parse_document(text, len, "resources", &doc, e);
	if (r == 0)
		r = take_resources(doc, &said, ret, e);
	if (r == 0)
		r = refuse_resources(doc, e);
	struct json_object *cpu = json_member(doc, "cpu");
	if (r == 0 && said != *period && !changed_by(cpu, "quota", ISOLATOR_CPU))
		r = err_set(
			e, -EOPNOTSUPP,
			"another \"linux.resources.cpu.period\" without a quota is not supported");
	if (r < 0)
		return r;
	*period = said;
	*ret_changed = changed_by(json_member(doc, "memory"), "limit", ISOLATOR_MEMORY) |
		       changed_by(cpu, "shares", ISOLATOR_CPU_SHARES) |
		       changed_by(cpu, "quota", ISOLATOR_CPU) |
		       changed_by(json_member(doc, "pids"), "limit", ISOLATOR_PIDS);
	return 0;
}

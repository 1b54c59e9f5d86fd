/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/appfilter_profile.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <linux/seccomp.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/os/names.h"

#define WORD_MAX  64   /* bytes of a name: the longest system call has 28 */
#define ERRNO_MAX 4095 /* what the kernel's interfaces can return */
#define ARGS_MAX  6

#define NUMBERS_MAX 1024 /* room for the numbers of system calls, which reach 466 */

/* A profile on its way to rules. */
struct profile {
	scmp_filter_ctx ctx; /* owned */
	uint32_t otherwise;  /* the action by default */
	uint32_t youngest;   /* number of a call that it names */
	size_t n_rules;
	size_t n_conditions;
	uint8_t conditional[NUMBERS_MAX]; /* rules with conditions, of each call */
};

/* Another member may be one that narrows what the others say. */
static int check_members(struct json_object *object, const char *const *known, size_t n,
			 struct err *e)
{
	if (!json_object_is_type(object, json_type_object))
		return err_set(e, -EINVAL, "a member of a list is not an object");
	json_object_object_foreach(object, key, value)
	{
		if (value && !str_is_one_of(key, known, n))
			return err_set(e, -EOPNOTSUPP,
				       "\"%.80s\" is no member of an OCI profile (give one in that "
				       "format, not in Docker's)",
				       key);
	}
	return 0;
}

static int not_a(const char *member, const char *what, struct err *e)
{
	return err_set(e, -EINVAL, "\"%s\" is not %s", member, what);
}

/* One of the calls that an app cannot start without. */
static bool is_needed(const char *name)
{
	static const char *const needed[] = { "capset", "execve", "exit_group", "write" };
	return str_is_one_of(name, needed, ARRAY_SIZE(needed));
}

/* ---- actions ---- */

/* The number beside an action, in the member @key of @from; @usual if it is not there. */
static int read_errno(struct json_object *from, const char *key, uint32_t usual, uint32_t *ret,
		      struct err *e)
{
	int64_t n = usual;
	int r = json_get_int(from, key, 0, ERRNO_MAX, &n);
	*ret = (uint32_t)n;
	return r == 0 || r == -ENOENT ? 0 : not_a(key, "an errno", e);
}

static int read_action(struct json_object *from, const char *key, const char *errno_key,
		       uint32_t *ret, struct err *e)
{
	static const struct {
		const char *name;
		uint32_t action;
	} plain[] = {
		{ "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW },
		{ "SCMP_ACT_LOG", SCMP_ACT_LOG },
		{ "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
		{ "SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD },
		{ "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
		{ "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS },
	};
	const char *name;
	uint32_t number;
	if (json_get_str(from, key, WORD_MAX, &name) < 0)
		return not_a(key, "an action", e);
	int r = read_errno(from, errno_key, EPERM, &number, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		if (strcmp(plain[i].name, name) == 0) {
			*ret = plain[i].action;
			return 0;
		}
	}
	if (strcmp(name, "SCMP_ACT_NOTIFY") == 0)
		return err_set(e, -EOPNOTSUPP,
			       "\"SCMP_ACT_NOTIFY\": nobody can be asked from within a pod");
	if (strcmp(name, "SCMP_ACT_ERRNO") == 0)
		*ret = SCMP_ACT_ERRNO(number);
	else if (strcmp(name, "SCMP_ACT_TRACE") == 0)
		*ret = SCMP_ACT_TRACE(number);
	else
		return err_set(e, -EINVAL, "there is no action \"%.80s\"", name);
	return 0;
}

/* ---- conditions ---- */

static int read_operator(struct json_object *from, enum scmp_compare *ret, struct err *e)
{
	static const struct {
		const char *name;
		enum scmp_compare op;
	} operators[] = {
		{ "SCMP_CMP_NE", SCMP_CMP_NE },
		{ "SCMP_CMP_LT", SCMP_CMP_LT },
		{ "SCMP_CMP_LE", SCMP_CMP_LE },
		{ "SCMP_CMP_EQ", SCMP_CMP_EQ },
		{ "SCMP_CMP_GE", SCMP_CMP_GE },
		{ "SCMP_CMP_GT", SCMP_CMP_GT },
		{ "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
	};
	const char *name;
	if (json_get_str(from, "op", WORD_MAX, &name) < 0)
		return not_a("op", "a comparison", e);
	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		if (strcmp(operators[i].name, name) == 0) {
			*ret = operators[i].op;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "there is no comparison \"%.80s\"", name);
}

static int read_operand(struct json_object *from, const char *key, scmp_datum_t *ret, struct err *e)
{
	struct json_object *value = json_member(from, key);
	*ret = value ? json_object_get_uint64(value) : 0;
	/* What is negative becomes 0. */
	if (value && (!json_object_is_type(value, json_type_int) ||
		      (*ret == 0 && json_object_get_int64(value) < 0)))
		return not_a(key, "a number from 0 on", e);
	return 0;
}

static int read_condition(struct json_object *from, struct scmp_arg_cmp *ret, struct err *e)
{
	static const char *const known[] = { "index", "value", "valueTwo", "op" };
	int64_t index;
	int r = check_members(from, known, ARRAY_SIZE(known), e);
	if (r < 0)
		return r;
	if (json_get_int(from, "index", 0, ARGS_MAX - 1, &index) < 0)
		return not_a("index", "the number of an argument, from 0 to 5", e);
	*ret = (struct scmp_arg_cmp){ .arg = (unsigned)index };
	r = read_operator(from, &ret->op, e);
	if (r == 0)
		r = read_operand(from, "value", &ret->datum_a, e);
	return r == 0 ? read_operand(from, "valueTwo", &ret->datum_b, e) : r;
}

struct conditions {
	struct scmp_arg_cmp v[ARGS_MAX];
	unsigned n;
	bool alternatives; /* some are about the same argument, so that one of them is enough */
};

static int read_conditions(struct json_object *list, struct conditions *ret, struct err *e)
{
	unsigned seen = 0;
	int r = 0;
	*ret = (struct conditions){ .n = 0 };
	if (list && !json_object_is_type(list, json_type_array))
		return not_a("args", "a list", e);
	size_t n = list ? json_object_array_length(list) : 0;
	if (n > ARGS_MAX)
		return err_set(e, -E2BIG, "\"args\" has %zu members, more than %d", n, ARGS_MAX);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = read_condition(json_object_array_get_idx(list, i), &ret->v[i], e);
		unsigned bit = r == 0 ? 1U << ret->v[i].arg : 0;
		ret->alternatives |= seen & bit;
		seen |= bit;
		ret->n++;
	}
	return r;
}

/* ---- rules ---- */

static int count_rule(struct profile *p, int number, unsigned n_conditions, struct err *e)
{
	if (++p->n_rules > APPFILTER_PROFILE_RULES_MAX)
		return err_set(e, -E2BIG, "it has more than %d rules", APPFILTER_PROFILE_RULES_MAX);
	if (n_conditions == 0)
		return 0;
	p->n_conditions += n_conditions;
	if (p->n_conditions > APPFILTER_PROFILE_CONDITIONS_MAX)
		return err_set(e, -E2BIG, "it has more than %d conditions",
			       APPFILTER_PROFILE_CONDITIONS_MAX);
	return ++p->conditional[number] > APPFILTER_PROFILE_CONDITIONAL_MAX
		       ? err_set(e, -E2BIG,
				 "it has more than %d rules with conditions for one call",
				 APPFILTER_PROFILE_CONDITIONAL_MAX)
		       : 0;
}

static int add_rule(struct profile *p, uint32_t action, int number, unsigned n,
		    const struct scmp_arg_cmp *conditions, struct err *e)
{
	if (count_rule(p, number, n, e) < 0)
		return -E2BIG;
	int r = seccomp_rule_add_array(p->ctx, action, number, n, conditions);
	return r == 0 || r == -EEXIST ? 0 : err_sys(e, r, "libseccomp");
}

static int add_call(struct profile *p, const char *name, uint32_t action,
		    const struct conditions *c, struct err *e)
{
	int r = 0, number = names_syscall(name);
	if (number < 0 || number >= NUMBERS_MAX)
		return 0;
	p->youngest = MAX(p->youngest, (uint32_t)number);
	if (action == p->otherwise || is_needed(name)) /* libseccomp takes no rule for nothing */
		return 0;
	if (!c->alternatives)
		return add_rule(p, action, number, c->n, c->v, e);
	for (unsigned i = 0; r == 0 && i < c->n; i++)
		r = add_rule(p, action, number, 1, &c->v[i], e);
	return r;
}

/* An entry of "syscalls". */
static int add_entry(struct profile *p, struct json_object *entry, struct err *e)
{
	static const char *const known[] = { "names", "action", "errnoRet", "args" };
	struct json_object *names = json_member(entry, "names");
	struct conditions c;
	uint32_t action = 0;
	int r = check_members(entry, known, ARRAY_SIZE(known), e);
	if (r < 0)
		return r;
	if (!json_object_is_type(names, json_type_array))
		return not_a("names", "a list of system calls", e);
	r = read_action(entry, "action", "errnoRet", &action, e);
	if (r == 0)
		r = read_conditions(json_member(entry, "args"), &c, e);
	for (size_t i = 0; r == 0 && i < json_object_array_length(names); i++) {
		struct json_object *name = json_object_array_get_idx(names, i);
		r = json_object_is_type(name, json_type_string)
			    ? add_call(p, json_object_get_string(name), action, &c, e)
			    : not_a("names", "a list of system calls", e);
	}
	return r;
}

static int add_entries(struct profile *p, struct json_object *list, struct err *e)
{
	int r = 0;
	if (list && !json_object_is_type(list, json_type_array))
		return not_a("syscalls", "a list", e);
	for (size_t i = 0; r == 0 && list && i < json_object_array_length(list); i++)
		r = add_entry(p, json_object_array_get_idx(list, i), e);
	return r < 0 ? err_context(e, "\"syscalls\"") : 0;
}

static bool is_permissive(uint32_t action)
{
	return action == SCMP_ACT_ALLOW || action == SCMP_ACT_LOG;
}

/* What every app needs. */
static int add_needed(struct profile *p, struct err *e)
{
	static const int needed[] = { SCMP_SYS(capset), SCMP_SYS(execve), SCMP_SYS(exit_group),
				      SCMP_SYS(write) };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(needed); i++) {
		p->youngest = MAX(p->youngest, (uint32_t)needed[i]);
		if (!is_permissive(p->otherwise))
			r = add_rule(p, SCMP_ACT_ALLOW, needed[i], 0, NULL, e);
	}
	return r;
}

/* ---- the whole ---- */

static int check_flags(struct json_object *list, struct err *e)
{
	static const char *const harmless[] = { "SECCOMP_FILTER_FLAG_TSYNC",
						"SECCOMP_FILTER_FLAG_LOG",
						"SECCOMP_FILTER_FLAG_SPEC_ALLOW" };
	if (list && !json_object_is_type(list, json_type_array))
		return not_a("flags", "a list", e);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *flag = json_object_array_get_idx(list, i);
		const char *name = json_object_is_type(flag, json_type_string)
					   ? json_object_get_string(flag)
					   : "";
		if (!str_is_one_of(name, harmless, ARRAY_SIZE(harmless)))
			return err_set(e, -EOPNOTSUPP, "flag \"%.80s\" is not supported", name);
	}
	return 0;
}

static int check_rest(struct json_object *doc, struct err *e)
{
	static const char *const known[] = { "defaultAction", "defaultErrnoRet", "architectures",
					     "flags",         "listenerPath",    "listenerMetadata",
					     "syscalls" };
	static const char *const of_listeners[] = { "listenerPath", "listenerMetadata" };
	const char *text;
	int r = check_members(doc, known, ARRAY_SIZE(known), e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(of_listeners); i++)
		if (json_member(doc, of_listeners[i]) &&
		    (json_get_str(doc, of_listeners[i], SIZE_MAX, &text) < 0 || *text))
			return err_set(e, -EOPNOTSUPP,
				       "\"%s\": nobody can be asked from within a pod",
				       of_listeners[i]);
	return check_flags(json_member(doc, "flags"), e);
}

static int make_rules(struct profile *p, struct json_object *doc, struct err *e)
{
	int r = check_rest(doc, e);
	if (r == 0)
		r = read_action(doc, "defaultAction", "defaultErrnoRet", &p->otherwise, e);
	if (r < 0)
		return r;
	p->ctx = seccomp_init(p->otherwise);
	/* A tree by number: the list is long and every call goes through it. */
	r = p->ctx ? seccomp_attr_set(p->ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) : -ENOMEM;
	if (r < 0)
		return err_sys(e, r, "libseccomp");
	r = add_needed(p, e);
	return r == 0 ? add_entries(p, json_member(doc, "syscalls"), e) : r;
}

int appfilter_profile_compile(const char *profile, scmp_filter_ctx *ret, uint32_t *limit,
			      struct err *e)
{
	cleanup_json struct json_object *doc = NULL;
	struct profile p = { .ctx = NULL };
	int r = json_parse(profile, strlen(profile), &doc);
	r = r < 0 ? err_sys(e, r, "profile") : make_rules(&p, doc, e);
	if (r < 0) {
		if (p.ctx)
			seccomp_release(p.ctx);
		return r;
	}
	bool is_traced = (p.otherwise & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRACE;
	*limit = is_permissive(p.otherwise) || is_traced ? UINT32_MAX : p.youngest + 1;
	*ret = p.ctx;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each isolator is a row of a table: its name, the form of its value, where it is kept and its
 * range. Both readers end in the same setters, so a limit is written once.
 */
#include "lib/wire/isolators.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/quantity.h"
#include "lib/base/signame.h"
#include "lib/wire/rlimit.h"

#define ISOLATORS_MEMBER "isolators"
#define WISH_MEMBER      "husk/wish"
#define CAP_PREFIX       "CAP_"

/* Linux' errno values end at 133; the kernel's own interfaces at 4095. */
#define ERRNO_LAST 133

/* Members of "isolators": each kind once. */
#define LIST_MAX ((size_t)ISOLATOR_COUNT_)

enum form {
	FORM_BYTES,  /* {"limit": quantity} */
	FORM_MILLIS, /* {"limit": quantity}, in thousandths */
	FORM_INT,
	FORM_SIGNAL, /* its name, or its number */
	FORM_BOOL,
	FORM_CAPS, /* {"set": [...]} */
	FORM_SECCOMP,
	FORM_RLIMITS,
	FORM_PATHS,
	FORM_PROFILE, /* an object, kept as text */
};

#define BIT(which) (1U << ISOLATOR_##which)

static const struct row {
	const char *name;
	enum form form;
	size_t offset;
	int64_t min, max;
	unsigned rivals; /* bit N: not together with enum isolator N */
} rows[ISOLATOR_COUNT_] = {
#define ROW(which, name, form, member, min, max, rivals)                              \
	[ISOLATOR_##which] = { name, FORM_##form, offsetof(struct isolators, member), \
			       min,  max,         rivals }
	ROW(MEMORY, "resource/memory", BYTES, memory, ISOLATOR_MEMORY_MIN, ISOLATOR_MEMORY_MAX, 0),
	ROW(CPU, "resource/cpu", MILLIS, cpu_millis, ISOLATOR_CPU_MIN, ISOLATOR_CPU_MAX, 0),
	ROW(CPU_SHARES, "os/linux/cpu-shares", INT, cpu_shares, ISOLATOR_CPU_SHARES_MIN,
	    ISOLATOR_CPU_SHARES_MAX, 0),
	ROW(OOM_SCORE_ADJ, "os/linux/oom-score-adj", INT, oom_score_adj,
	    -ISOLATOR_OOM_SCORE_ADJ_MAX, ISOLATOR_OOM_SCORE_ADJ_MAX, 0),
	ROW(NO_NEW_PRIVS, "os/linux/no-new-privileges", BOOL, no_new_privs, 0, 1, 0),
	ROW(CAPS_RETAIN, "os/linux/capabilities-retain-set", CAPS, caps, 0, ISOLATOR_CAPS_MAX,
	    BIT(CAPS_REMOVE)),
	ROW(CAPS_REMOVE, "os/linux/capabilities-remove-set", CAPS, caps, 1, ISOLATOR_CAPS_MAX,
	    BIT(CAPS_RETAIN)),
	ROW(SECCOMP_RETAIN, "os/linux/seccomp-retain-set", SECCOMP, seccomp, 1,
	    ISOLATOR_SECCOMP_MAX, BIT(SECCOMP_REMOVE) | BIT(SECCOMP_PROFILE)),
	ROW(SECCOMP_REMOVE, "os/linux/seccomp-remove-set", SECCOMP, seccomp, 1,
	    ISOLATOR_SECCOMP_MAX, BIT(SECCOMP_RETAIN) | BIT(SECCOMP_PROFILE)),
	ROW(PIDS, "husk/pids-limit", INT, pids_max, 1, ISOLATOR_PIDS_MAX, 0),
	ROW(RLIMITS, "husk/rlimits", RLIMITS, rlimits, 1, AGENT_RLIMITS_MAX, 0),
	ROW(STOP_SIGNAL, "husk/stop-signal", SIGNAL, stop_signal, 1, AGENT_SIGNAL_MAX, 0),
	ROW(INIT, "husk/init", BOOL, with_init, 0, 1, 0),
	ROW(SHARED_PROCESSES, "husk/shared-processes", BOOL, shared_processes, 0, 1, 0),
	ROW(UMASK, "husk/umask", INT, umask, 0, AGENT_UMASK_MAX, 0),
	ROW(MASKED_PATHS, "husk/masked-paths", PATHS, masked_paths, 0, AGENT_PATHS_MAX, 0),
	ROW(READ_ONLY_PATHS, "husk/read-only-paths", PATHS, read_only_paths, 0, AGENT_PATHS_MAX, 0),
	ROW(SECCOMP_PROFILE, "husk/seccomp-profile", PROFILE, profile, 0, 0,
	    BIT(SECCOMP_RETAIN) | BIT(SECCOMP_REMOVE)),
};

const char *const isolators_wildcards[] = {
	ISOLATOR_SECCOMP_ALL,
	ISOLATOR_SECCOMP_EMPTY,
	"@docker/default-blacklist",
	"@docker/default-whitelist",
	"@rkt/default-blacklist",
	"@rkt/default-whitelist",
	"@systemd/clock",
	"@systemd/default-whitelist",
	"@systemd/mount",
	"@systemd/network-io",
	"@systemd/obsolete",
	"@systemd/privileged",
	"@systemd/process",
	"@systemd/raw-io",
	NULL,
};

const char *const isolators_essential_calls[] = {
	"capset", "close",           "execve",       "exit",  "exit_group",
	"prctl",  "restart_syscall", "rt_sigreturn", "write", NULL,
};

enum isolator isolators_not_of_image(const struct isolators *i)
{
	unsigned given = i->given & (BIT(SHARED_PROCESSES) | BIT(UMASK) | BIT(MASKED_PATHS) |
				     BIT(READ_ONLY_PATHS) | BIT(SECCOMP_PROFILE));
	return given ? (enum isolator)__builtin_ctz(given) : ISOLATOR_COUNT_;
}

bool isolators_unconfined(const struct isolators *i)
{
	return i->profile && strcmp(i->profile, "{}") == 0;
}

bool isolators_open_paths(const struct isolators *i)
{
	return isolators_has(i, ISOLATOR_MASKED_PATHS) &&
	       isolators_has(i, ISOLATOR_READ_ONLY_PATHS) && i->masked_paths.n == 0 &&
	       i->read_only_paths.n == 0;
}

const char *isolators_name(enum isolator which)
{
	return rows[which].name;
}

static bool is_set(enum form form)
{
	return form == FORM_CAPS || form == FORM_SECCOMP || form == FORM_RLIMITS ||
	       form == FORM_PATHS;
}

static void *isolators_member(struct isolators *i, const struct row *row)
{
	return (char *)i + row->offset;
}

static const void *const_member(const struct isolators *i, const struct row *row)
{
	return (const char *)i + row->offset;
}

void isolators_init(struct isolators *i)
{
	memset(i, 0, sizeof(*i));
	strv_init(&i->caps, ISOLATOR_CAPS_MAX);
	strv_init(&i->seccomp, ISOLATOR_SECCOMP_MAX);
	strv_init(&i->rlimits, AGENT_RLIMITS_MAX);
	strv_init(&i->masked_paths, AGENT_PATHS_MAX);
	strv_init(&i->read_only_paths, AGENT_PATHS_MAX);
}

void isolators_deinit(struct isolators *i)
{
	if (!i)
		return;
	strv_deinit(&i->caps);
	strv_deinit(&i->seccomp);
	strv_deinit(&i->rlimits);
	strv_deinit(&i->masked_paths);
	strv_deinit(&i->read_only_paths);
	free(i->profile);
	i->profile = NULL;
}

/* Takes the value of the isolator of @row over, where @to has none. */
static int merge_one(struct isolators *to, const struct isolators *from, const struct row *row)
{
	switch (row->form) {
	case FORM_BYTES:
	case FORM_MILLIS:
	case FORM_INT:
	case FORM_SIGNAL:
		*(int64_t *)isolators_member(to, row) = *(const int64_t *)const_member(from, row);
		return 0;
	case FORM_BOOL:
		*(bool *)isolators_member(to, row) = *(const bool *)const_member(from, row);
		return 0;
	case FORM_SECCOMP:
		memcpy(to->seccomp_errno, from->seccomp_errno, sizeof(to->seccomp_errno));
		break;
	case FORM_PROFILE:
		to->profile = strdup(from->profile);
		return to->profile ? 0 : -ENOMEM;
	case FORM_CAPS:
	case FORM_RLIMITS:
	case FORM_PATHS:
		break;
	}
	return strv_extend(isolators_member(to, row), const_member(from, row));
}

int isolators_copy(struct isolators *to, const struct isolators *from)
{
	CLEANUP(isolators_deinit) struct isolators copy;
	isolators_init(&copy);
	for (int which = 0; which < ISOLATOR_COUNT_; which++) {
		int r = isolators_has(from, (enum isolator)which)
				? merge_one(&copy, from, &rows[which])
				: 0;
		if (r < 0)
			return r;
	}
	copy.given = from->given;
	copy.wished = from->wished;
	*to = copy;
	isolators_init(&copy);
	return 0;
}

int isolators_merge(struct isolators *to, const struct isolators *from)
{
	CLEANUP(isolators_deinit) struct isolators all;
	isolators_init(&all);
	int r = isolators_copy(&all, to);
	for (int which = 0; r == 0 && which < ISOLATOR_COUNT_; which++) {
		const struct row *row = &rows[which];
		if (!isolators_has(from, (enum isolator)which) ||
		    isolators_has(&all, (enum isolator)which) || (all.given & row->rivals))
			continue;
		r = merge_one(&all, from, row);
		all.given |= 1U << which;
		all.wished |= 1U << which;
	}
	if (r < 0)
		return r;
	isolators_deinit(to);
	*to = all;
	isolators_init(&all);
	return 0;
}

static bool is_member(const char *const *list, const char *s)
{
	for (; *list; list++)
		if (strcmp(*list, s) == 0)
			return true;
	return false;
}

int isolators_errno(const char *name)
{
	for (int n = 1; n <= ERRNO_LAST; n++) {
		const char *known = strerrorname_np(n);
		if (known && strcmp(known, name) == 0)
			return n;
	}
	return -EINVAL;
}

/* ---- quantities ---- */

static int set_bytes(struct isolators *i, const struct row *row, const char *text, struct err *e)
{
	int64_t n;
	int r = quantity_parse(text, &n);
	if (r == -EINVAL)
		return err_set(e, r,
			       "\"%.80s\" is not an amount of memory (like 64Mi, 64M, 67108864)",
			       text);
	if (r < 0 || n > row->max * QUANTITY_UNIT)
		return err_set(e, -EINVAL, "\"%.80s\" is more than 1 TiB", text);
	if (n < row->min * QUANTITY_UNIT)
		return err_set(e, -EINVAL,
			       "\"%.80s\" is less than %jd bytes (m is a thousandth: write M or "
			       "Mi)",
			       text, (intmax_t)row->min);
	*(int64_t *)isolators_member(i, row) = (n + QUANTITY_UNIT - 1) / QUANTITY_UNIT;
	return 0;
}

static int set_millis(struct isolators *i, const struct row *row, const char *text, struct err *e)
{
	int64_t n;
	if (quantity_parse(text, &n) < 0 || n < row->min || n > row->max)
		return err_set(
			e, -EINVAL,
			"\"%.80s\" is not a number of processors from 0.01 to %jd (like 1.5, "
			"1500m)",
			text, (intmax_t)(row->max / QUANTITY_UNIT));
	*(int64_t *)isolators_member(i, row) = n;
	return 0;
}

/* ---- other forms ---- */

static int set_number(struct isolators *i, const struct row *row, int64_t n, struct err *e)
{
	if (n < row->min || n > row->max)
		return err_set(e, -EINVAL, "%jd is not from %jd to %jd", (intmax_t)n,
			       (intmax_t)row->min, (intmax_t)row->max);
	*(int64_t *)isolators_member(i, row) = n;
	return 0;
}

static int set_int(struct isolators *i, const struct row *row, const char *text, struct err *e)
{
	uint64_t n;
	bool negative = *text == '-';
	if (num_parse_u64(text + negative, INT32_MAX, &n) < 0)
		return err_set(e, -EINVAL, "\"%.80s\" is not a number from %jd to %jd", text,
			       (intmax_t)row->min, (intmax_t)row->max);
	return set_number(i, row, negative ? -(int64_t)n : (int64_t)n, e);
}

static int set_signal(struct isolators *i, const struct row *row, const char *text, struct err *e)
{
	int n = signame_parse(text);
	if (n < 0)
		return err_set(e, n, "\"%.80s\" is no signal (like SIGQUIT, SIGRTMIN+3, 15)", text);
	return set_number(i, row, n, e);
}

static int set_bool(struct isolators *i, const struct row *row, const char *text, struct err *e)
{
	bool on = strcmp(text, "true") == 0;
	if (!on && strcmp(text, "false") != 0)
		return err_set(e, -EINVAL, "\"%.80s\" is neither true nor false", text);
	*(bool *)isolators_member(i, row) = on;
	return 0;
}

/* Appends to a list that is bounded. */
static int isolators_append(struct strv *set, const char *name, struct err *e)
{
	int r = strv_add(set, name);
	if (r == -E2BIG)
		return err_set(e, r, "more than %zu names", set->max);
	return r < 0 ? err_sys(e, r, "\"%.80s\"", name) : 0;
}

/* One more member of a set; a second time is not an error. */
static int add_name(struct strv *set, const char *name, struct err *e)
{
	return strv_has(set, name) ? 0 : isolators_append(set, name, e);
}

/* The kernel's name of a capability from how people write it. */
static int add_capability(struct isolators *i, const char *name, struct err *e)
{
	char full[ISOLATOR_NAME_MAX + 1];
	size_t n = 0;
	bool prefixed = strncasecmp(name, CAP_PREFIX, strlen(CAP_PREFIX)) == 0;
	const char *from = prefixed ? name + strlen(CAP_PREFIX) : name;
	memcpy(full, CAP_PREFIX, strlen(CAP_PREFIX));
	n = strlen(CAP_PREFIX);
	for (; *from && n < ISOLATOR_NAME_MAX; from++) {
		unsigned char c = (unsigned char)*from;
		if (c >= 0x80 || (!isalnum(c) && c != '_'))
			break;
		full[n++] = (char)toupper(c);
	}
	full[n] = '\0';
	if (*from || n == strlen(CAP_PREFIX))
		return err_set(e, -EINVAL, "\"%.80s\" is not a name of a capability", name);
	return add_name(&i->caps, full, e);
}

static int add_call(struct isolators *i, enum isolator which, const char *name, struct err *e)
{
	size_t len = strlen(name);
	if (name[0] == '@') {
		if (!is_member(isolators_wildcards, name))
			return err_set(e, -EINVAL, "there is no wildcard \"%.80s\"", name);
	} else if (len == 0 || len > ISOLATOR_NAME_MAX ||
		   strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != len) {
		return err_set(e, -EINVAL, "\"%.80s\" is not a name of a system call", name);
	}
	if (strcmp(name, which == ISOLATOR_SECCOMP_REMOVE ? ISOLATOR_SECCOMP_ALL
							  : ISOLATOR_SECCOMP_EMPTY) == 0)
		return err_set(e, -EINVAL, "\"%s\" means nothing in a %s set", name,
			       which == ISOLATOR_SECCOMP_REMOVE ? "remove" : "retain");
	if (which == ISOLATOR_SECCOMP_REMOVE && is_member(isolators_essential_calls, name))
		return err_set(e, -EINVAL, "\"%s\" cannot be removed: no app starts without it",
			       name);
	return add_name(&i->seccomp, name, e);
}

static int add_rlimit(struct isolators *i, const char *text, struct err *e)
{
	struct rlimit_spec spec, other;
	if (strlen(text) > AGENT_USER_MAX || rlimit_parse(text, &spec) < 0)
		return err_set(e, -EINVAL,
			       "\"%.80s\" is not a limit of the form NAME=SOFT[:HARD] (like "
			       "nofile=1024:4096)",
			       text);
	for (size_t k = 0; k < i->rlimits.n; k++)
		if (rlimit_parse(i->rlimits.v[k], &other) == 0 && other.resource == spec.resource)
			return err_set(e, -EINVAL, "\"%.80s\": there is \"%s\" already", text,
				       i->rlimits.v[k]);
	return add_name(&i->rlimits, text, e);
}

static int add_path(struct strv *set, const char *path, struct err *e)
{
	if (path[0] != '/' || strlen(path) > AGENT_PATH_MAX)
		return err_set(e, -EINVAL, "\"%.255s\" is not an absolute path of at most %d bytes",
			       path, AGENT_PATH_MAX);
	return add_name(set, path, e);
}

static int add_member(struct isolators *i, enum isolator which, const char *text, struct err *e)
{
	switch (rows[which].form) {
	case FORM_CAPS:
		return add_capability(i, text, e);
	case FORM_SECCOMP:
		return add_call(i, which, text, e);
	case FORM_RLIMITS:
		return add_rlimit(i, text, e);
	case FORM_PATHS:
		return add_path(isolators_member(i, &rows[which]), text, e);
	case FORM_BYTES:
	case FORM_MILLIS:
	case FORM_INT:
	case FORM_SIGNAL:
	case FORM_BOOL:
	case FORM_PROFILE:
		break;
	}
	return err_set(e, -EINVAL, "no set");
}

static int set_errno(struct isolators *i, const char *name, struct err *e)
{
	if (i->seccomp_errno[0])
		return err_set(e, -EINVAL, "errno is given twice");
	if (strlen(name) > ISOLATOR_ERRNO_MAX || isolators_errno(name) < 0)
		return err_set(e, -EINVAL, "\"%.80s\" is not an errno (like EPERM)", name);
	return str_copy(i->seccomp_errno, sizeof(i->seccomp_errno), name);
}

/* ---- texts ---- */

/* The pieces of @text between commas; "" has none. */
static int add_members(struct isolators *i, enum isolator which, const char *text, struct err *e)
{
	bool more = *text != '\0';
	while (more) {
		size_t len = strcspn(text, ",");
		cleanup_free char *piece = strndup(text, len);
		int r = piece ? add_member(i, which, piece, e)
			      : err_sys(e, -ENOMEM, "\"%.80s\"", text);
		if (r < 0)
			return r;
		more = text[len] == ',';
		text += len + more;
	}
	return 0;
}

/* An object, which is looked at when it is compiled. */
static int set_profile(struct isolators *i, struct json_object *value, struct err *e)
{
	cleanup_buf struct buf text;
	buf_init(&text, ISOLATOR_PROFILE_MAX + 1);
	if (!json_object_is_type(value, json_type_object))
		return err_set(e, -EINVAL, "it is not an object");
	int r = json_write(value, false, &text);
	if (r == 0)
		r = buf_append(&text, "", 1);
	if (r == -EMSGSIZE)
		return err_set(e, -E2BIG, "it has more than %zu bytes", ISOLATOR_PROFILE_MAX);
	if (r == -EINVAL)
		return err_set(e, r, "it has floating-point numbers, or is nested too deeply");
	if (r == 0)
		i->profile = strdup(buf_data(&text));
	return r == 0 && i->profile ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static int set_profile_text(struct isolators *i, const char *text, struct err *e)
{
	cleanup_json struct json_object *value = NULL;
	int r = json_parse(text, strlen(text), &value);
	if (r == -ENOMEM)
		return err_set(e, r, "out of memory");
	return r < 0 ? err_set(e, -EINVAL, "it is not valid JSON") : set_profile(i, value, e);
}

static int set_from_text(struct isolators *i, enum isolator which, const char *text, struct err *e)
{
	const struct row *row = &rows[which];
	switch (row->form) {
	case FORM_BYTES:
		return set_bytes(i, row, text, e);
	case FORM_MILLIS:
		return set_millis(i, row, text, e);
	case FORM_INT:
		return set_int(i, row, text, e);
	case FORM_SIGNAL:
		return set_signal(i, row, text, e);
	case FORM_BOOL:
		return set_bool(i, row, text, e);
	case FORM_RLIMITS:
		return add_rlimit(i, text, e);
	case FORM_PROFILE:
		return set_profile_text(i, text, e);
	case FORM_CAPS:
	case FORM_SECCOMP:
	case FORM_PATHS:
		break;
	}
	return add_members(i, which, text, e);
}

/* Notes that @which is given, once and without its rival. */
static int claim(struct isolators *i, enum isolator which, struct err *e)
{
	unsigned rivals = i->given & rows[which].rivals;
	if (isolators_has(i, which))
		return err_set(e, -EINVAL, "it is given twice");
	if (rivals)
		return err_set(e, -EINVAL, "it cannot stand beside \"%s\"",
			       rows[__builtin_ctz(rivals)].name);
	i->given |= 1U << which;
	return 0;
}

/* A set has as many members as its row says. */
static int check_count(const struct isolators *i, enum isolator which, struct err *e)
{
	const struct row *row = &rows[which];
	if (!is_set(row->form))
		return 0;
	const struct strv *set = const_member(i, row);
	return set->n < (size_t)row->min ? err_set(e, -EINVAL, "the set is empty") : 0;
}

int isolators_set(struct isolators *i, enum isolator which, const char *text, struct err *e)
{
	bool more = which == ISOLATOR_RLIMITS && isolators_has(i, which);
	int r = more ? 0 : claim(i, which, e);
	size_t max = which == ISOLATOR_SECCOMP_PROFILE ? ISOLATOR_PROFILE_MAX : ISOLATOR_TEXT_MAX;
	if (r == 0 && strnlen(text, max + 1) > max)
		r = err_set(e, -E2BIG, "it is longer than %zu bytes", max);
	if (r == 0)
		r = set_from_text(i, which, text, e);
	return r < 0 ? r : check_count(i, which, e);
}

int isolators_set_members(struct isolators *i, enum isolator which, const struct strv *members,
			  struct err *e)
{
	int r = claim(i, which, e);
	for (size_t k = 0; r == 0 && k < members->n; k++)
		r = add_member(i, which, members->v[k], e);
	return r < 0 ? r : check_count(i, which, e);
}

int isolators_set_profile(struct isolators *i, struct json_object *profile, struct err *e)
{
	int r = claim(i, ISOLATOR_SECCOMP_PROFILE, e);
	return r < 0 ? r : set_profile(i, profile, e);
}

/* A piece of a seccomp text that is not a name. 0: it was one; 1: taken. */
static int take_seccomp_option(struct isolators *i, const char *piece, enum isolator *which,
			       struct err *e)
{
	static const char error[] = "errno=";
	if (strcmp(piece, "mode=retain") == 0) {
		*which = ISOLATOR_SECCOMP_RETAIN;
		return 1;
	}
	if (strcmp(piece, "mode=remove") == 0) {
		*which = ISOLATOR_SECCOMP_REMOVE;
		return 1;
	}
	if (str_starts(piece, "mode="))
		return err_set(e, -EINVAL, "\"%.80s\" is neither mode=retain nor mode=remove",
			       piece);
	if (!str_starts(piece, error))
		return 0;
	int r = set_errno(i, piece + strlen(error), e);
	return r < 0 ? r : 1;
}

/* Takes the options out of @text and leaves the names in @names. */
static int split_seccomp(struct isolators *i, const char *text, struct strv *names,
			 enum isolator *which, struct err *e)
{
	for (;;) {
		size_t len = strcspn(text, ",");
		cleanup_free char *piece = strndup(text, len);
		int r = piece ? take_seccomp_option(i, piece, which, e)
			      : err_sys(e, -ENOMEM, "\"%.80s\"", text);
		if (r == 0)
			r = isolators_append(names, piece, e);
		if (r < 0 || text[len] == '\0')
			return MIN(r, 0);
		text += len + 1;
	}
}

int isolators_set_seccomp(struct isolators *i, const char *text, struct err *e)
{
	cleanup_strv struct strv names;
	enum isolator which = ISOLATOR_SECCOMP_RETAIN;
	strv_init(&names, ISOLATOR_SECCOMP_MAX);
	if (isolators_has(i, ISOLATOR_SECCOMP_RETAIN) || isolators_has(i, ISOLATOR_SECCOMP_REMOVE))
		return err_set(e, -EINVAL, "it is given twice");
	int r = split_seccomp(i, text, &names, &which, e);
	if (r == 0)
		r = claim(i, which, e);
	for (size_t k = 0; r == 0 && k < names.n; k++)
		r = add_call(i, which, names.v[k], e);
	return r < 0 ? r : check_count(i, which, e);
}

/* ---- JSON ---- */

static int read_limit(struct isolators *i, const struct row *row, struct json_object *value,
		      struct err *e)
{
	const char *text;
	if (json_get_str(value, "limit", ISOLATOR_NAME_MAX, &text) < 0)
		return err_set(e, -EBADMSG, "\"limit\" is not a string of at most %d bytes",
			       ISOLATOR_NAME_MAX);
	return row->form == FORM_BYTES ? set_bytes(i, row, text, e) : set_millis(i, row, text, e);
}

static int read_set(struct isolators *i, enum isolator which, struct json_object *value,
		    struct err *e)
{
	cleanup_strv struct strv names;
	const char *error = NULL;
	bool of_paths = rows[which].form == FORM_PATHS;
	strv_init(&names, of_paths ? AGENT_PATHS_MAX : ISOLATOR_SECCOMP_MAX);
	int r = json_get_strv(value, "set", of_paths ? AGENT_PATH_MAX : AGENT_USER_MAX, &names);
	if (r == -ENOMEM)
		return err_sys(e, r, "\"set\"");
	if (r < 0)
		return err_set(e, -EBADMSG, "\"set\" is not a list of at most %zu names",
			       names.max);
	for (size_t k = 0; r == 0 && k < names.n; k++)
		r = add_member(i, which, names.v[k], e);
	if (r < 0 || rows[which].form != FORM_SECCOMP)
		return r;
	r = json_get_str(value, "errno", ISOLATOR_ERRNO_MAX, &error);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"errno\" is not a string of at most %d bytes",
			       ISOLATOR_ERRNO_MAX);
	return error && *error ? set_errno(i, error, e) : 0;
}

static int read_signal(struct isolators *i, const struct row *row, struct json_object *entry,
		       struct err *e)
{
	const char *text;
	int64_t n;
	if (json_get_int(entry, "value", row->min, row->max, &n) == 0)
		return set_number(i, row, n, e);
	if (json_get_str(entry, "value", SIGNAME_MAX, &text) < 0)
		return err_set(e, -EBADMSG, "\"value\" is no signal");
	return set_signal(i, row, text, e);
}

static int read_value(struct isolators *i, enum isolator which, struct json_object *entry,
		      struct err *e)
{
	const struct row *row = &rows[which];
	int64_t n;
	switch (row->form) {
	case FORM_INT:
		if (json_get_int(entry, "value", INT32_MIN, INT32_MAX, &n) < 0)
			return err_set(e, -EBADMSG, "\"value\" is not a number from %jd to %jd",
				       (intmax_t)row->min, (intmax_t)row->max);
		return set_number(i, row, n, e);
	case FORM_SIGNAL:
		return read_signal(i, row, entry, e);
	case FORM_BOOL:
		if (json_get_bool(entry, "value", isolators_member(i, row)) < 0)
			return err_set(e, -EBADMSG, "\"value\" is neither true nor false");
		return 0;
	case FORM_BYTES:
	case FORM_MILLIS:
		return read_limit(i, row, json_member(entry, "value"), e);
	case FORM_PROFILE:
		return set_profile(i, json_member(entry, "value"), e);
	case FORM_CAPS:
	case FORM_SECCOMP:
	case FORM_RLIMITS:
	case FORM_PATHS:
		break;
	}
	int r = read_set(i, which, json_member(entry, "value"), e);
	return r < 0 ? r : check_count(i, which, e);
}

static int read_wish(struct isolators *i, enum isolator which, struct json_object *entry,
		     struct err *e)
{
	bool is_wish = false;
	int r = json_get_bool(entry, WISH_MEMBER, &is_wish);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"" WISH_MEMBER "\" is neither true nor false");
	i->wished |= (unsigned)is_wish << which;
	return 0;
}

/* In a list, the last of a name counts. */
static void forget(struct isolators *i, enum isolator which)
{
	const struct row *row = &rows[which];
	if (is_set(row->form))
		strv_deinit(isolators_member(i, row));
	if (row->form == FORM_SECCOMP)
		i->seccomp_errno[0] = '\0';
	if (row->form == FORM_PROFILE) {
		free(i->profile);
		i->profile = NULL;
	}
	i->given &= ~(1U << which);
	i->wished &= ~(1U << which);
}

void isolators_replace(struct isolators *to, enum isolator which, const struct isolators *from)
{
	forget(to, which);
	merge_one(to, from, &rows[which]); /* of a number it does not fail */
	to->given |= from->given & 1U << which;
	to->wished |= from->wished & 1U << which;
}

static int read_isolator(struct json_object *entry, struct isolators *i, struct err *e)
{
	const char *name;
	if (json_get_str(entry, "name", AGENT_USER_MAX, &name) < 0)
		return err_set(e, -EBADMSG, "\"name\" is missing, or no string of at most %d bytes",
			       AGENT_USER_MAX);
	for (int which = 0; which < ISOLATOR_COUNT_; which++) {
		if (strcmp(rows[which].name, name) != 0)
			continue;
		if (isolators_has(i, (enum isolator)which))
			forget(i, (enum isolator)which);
		int r = claim(i, (enum isolator)which, e);
		if (r == 0)
			r = read_value(i, (enum isolator)which, entry, e);
		if (r == 0)
			r = read_wish(i, (enum isolator)which, entry, e);
		return r < 0 ? err_context(e, "isolator \"%s\"", name) : 0;
	}
	return err_set(e, -EOPNOTSUPP, "isolator \"%s\" is not supported in this version", name);
}

/* What was wrong with a value that somebody wrote into a file is wrong with the file. */
static int as_bad_message(int r)
{
	return r == -EINVAL ? -EBADMSG : r;
}

int isolators_read(struct json_object *run, struct isolators *ret, struct err *e)
{
	struct json_object *list = json_member(run, ISOLATORS_MEMBER);
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > LIST_MAX)
		return err_set(e, -EBADMSG,
			       "\"" ISOLATORS_MEMBER "\" is not a list of at most %zu isolators",
			       LIST_MAX);
	for (size_t k = 0; k < json_object_array_length(list); k++) {
		int r = read_isolator(json_object_array_get_idx(list, k), ret, e);
		if (r < 0) {
			if (e)
				e->code = as_bad_message(r);
			return as_bad_message(r);
		}
	}
	return 0;
}

static struct json_object *write_set(const struct isolators *i, const struct row *row)
{
	cleanup_json struct json_object *value = json_object_new_object();
	if (json_put_strv(value, "set", const_member(i, row)) < 0)
		return NULL;
	if (row->form == FORM_SECCOMP && i->seccomp_errno[0] &&
	    json_put_str(value, "errno", i->seccomp_errno) < 0)
		return NULL;
	return TAKE_PTR(value);
}

static struct json_object *write_limit(const struct isolators *i, const struct row *row)
{
	char text[32]; /* an int64_t and a suffix */
	cleanup_json struct json_object *value = json_object_new_object();
	snprintf(text, sizeof(text), "%" PRId64 "%s", *(const int64_t *)const_member(i, row),
		 row->form == FORM_MILLIS ? "m" : "");
	return json_put_str(value, "limit", text) < 0 ? NULL : TAKE_PTR(value);
}

static struct json_object *write_signal(const struct isolators *i, const struct row *row)
{
	char name[SIGNAME_MAX + 1];
	int n = (int)*(const int64_t *)const_member(i, row);
	return json_object_new_string(signame_format(n, name));
}

static struct json_object *write_profile(const struct isolators *i)
{
	struct json_object *value = NULL;
	return json_parse(i->profile, strlen(i->profile), &value) < 0 ? NULL : value;
}

static struct json_object *write_value(const struct isolators *i, const struct row *row)
{
	switch (row->form) {
	case FORM_INT:
		return json_object_new_int64(*(const int64_t *)const_member(i, row));
	case FORM_SIGNAL:
		return write_signal(i, row);
	case FORM_BOOL:
		return json_object_new_boolean(*(const bool *)const_member(i, row));
	case FORM_BYTES:
	case FORM_MILLIS:
		return write_limit(i, row);
	case FORM_PROFILE:
		return write_profile(i);
	case FORM_CAPS:
	case FORM_SECCOMP:
	case FORM_RLIMITS:
	case FORM_PATHS:
		break;
	}
	return write_set(i, row);
}

static struct json_object *write_isolator(const struct isolators *i, enum isolator which)
{
	const struct row *row = &rows[which];
	cleanup_json struct json_object *entry = json_make(
		"name", json_object_new_string(row->name), "value", write_value(i, row), NULL);
	if (isolators_is_wish(i, which) &&
	    json_put(entry, WISH_MEMBER, json_object_new_boolean(true)) < 0)
		return NULL;
	return TAKE_PTR(entry);
}

int isolators_write(const struct isolators *i, struct json_object *run)
{
	cleanup_json struct json_object *list = json_object_new_array();
	if (i->given == 0)
		return 0;
	for (int which = 0; list && which < ISOLATOR_COUNT_; which++) {
		if (isolators_has(i, (enum isolator)which) &&
		    json_append(list, write_isolator(i, (enum isolator)which)) < 0)
			return -ENOMEM;
	}
	return json_put(run, ISOLATORS_MEMBER, TAKE_PTR(list));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/flag.h"

#include <string.h>

static void *flag_member(void *opts, const struct flag *f)
{
	return (char *)opts + f->offset;
}

int flag_set_bool(void *opts, const struct flag *f, const char *value, struct err *e)
{
	(void)e; /* flag_parse_one() has normalised the value */
	*(bool *)flag_member(opts, f) = strcmp(value, "true") == 0;
	return 0;
}

int flag_set_string(void *opts, const struct flag *f, const char *value, struct err *e)
{
	(void)e;
	*(const char **)flag_member(opts, f) = value;
	return 0;
}

int flag_add_string(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct strv *sv = flag_member(opts, f);
	int r = strv_add(sv, value);
	if (r < 0)
		return err_sys(e, r, "--%s: at most %zu values", f->name, sv->max);
	return 0;
}

const struct flag *flag_next(const struct flag_set *set, const struct flag *f)
{
	for (size_t i = f ? (size_t)(f - set->flags) + 1 : 0; i < set->n; i++)
		if (!set->only || (set->only & set->flags[i].in))
			return &set->flags[i];
	return NULL;
}

const struct flag *flag_find(const struct flag_set *sets, size_t n_sets, const char *name,
			     size_t len, const struct flag_set **ret_set)
{
	for (size_t s = 0; s < n_sets; s++)
		for (const struct flag *f = NULL; (f = flag_next(&sets[s], f));) {
			if (strncmp(f->name, name, len) != 0 || f->name[len] != '\0')
				continue;
			if (ret_set)
				*ret_set = &sets[s];
			return f;
		}
	return NULL;
}

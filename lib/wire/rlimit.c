/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/rlimit.h"

#include <errno.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"

#define VALUE_LEN_MAX 20 /* digits of 2^64 - 1 */

/* By number: RLIMIT_CPU is 0. The numbers are Linux's own on all processors that husk knows. */
static const char *const names[] = {
	"cpu",     "fsize", "data",  "stack",      "core",     "rss",  "nproc",  "nofile",
	"memlock", "as",    "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime",
};

const char *rlimit_name(int resource)
{
	return resource >= 0 && (size_t)resource < ARRAY_SIZE(names) ? names[resource] : NULL;
}

static int find_resource(const char *name, size_t len, int *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0) {
			*ret = (int)i;
			return 0;
		}
	return -EINVAL;
}

static int parse_value(const char *s, size_t len, uint64_t *ret)
{
	char text[VALUE_LEN_MAX + 1];
	if (len > VALUE_LEN_MAX)
		return -ERANGE;
	memcpy(text, s, len);
	text[len] = '\0';
	if (strcmp(text, "unlimited") == 0) {
		*ret = RLIMIT_UNLIMITED;
		return 0;
	}
	/* The largest number is not a number but "unlimited". */
	return num_parse_u64(text, RLIMIT_UNLIMITED - 1, ret);
}

int rlimit_parse(const char *text, struct rlimit_spec *ret)
{
	struct rlimit_spec spec;
	size_t name_len = strcspn(text, "=");
	int r = find_resource(text, name_len, &spec.resource);
	if (r < 0 || text[name_len] == '\0')
		return -EINVAL;
	const char *soft = text + name_len + 1;
	size_t soft_len = strcspn(soft, ":");
	r = parse_value(soft, soft_len, &spec.soft);
	if (r < 0)
		return r;
	spec.hard = spec.soft;
	if (soft[soft_len] == ':')
		r = parse_value(soft + soft_len + 1, strlen(soft + soft_len + 1), &spec.hard);
	if (r < 0)
		return r;
	if (spec.soft > spec.hard)
		return -ERANGE;
	*ret = spec;
	return 0;
}

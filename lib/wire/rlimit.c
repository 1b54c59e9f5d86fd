#include "lib/wire/rlimit.h"

#include <asm/resource.h> /* the kernel's numbers, without a system call */
#include <errno.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"

#define UNLIMITED "unlimited"
#define VALUE_MAX 20 /* digits of UINT64_MAX */

static const struct {
	const char *name;
	int resource;
} resources[] = {
	{ "as", RLIMIT_AS },
	{ "core", RLIMIT_CORE },
	{ "cpu", RLIMIT_CPU },
	{ "data", RLIMIT_DATA },
	{ "fsize", RLIMIT_FSIZE },
	{ "locks", RLIMIT_LOCKS },
	{ "memlock", RLIMIT_MEMLOCK },
	{ "msgqueue", RLIMIT_MSGQUEUE },
	{ "nice", RLIMIT_NICE },
	{ "nofile", RLIMIT_NOFILE },
	{ "nproc", RLIMIT_NPROC },
	{ "rss", RLIMIT_RSS },
	{ "rtprio", RLIMIT_RTPRIO },
	{ "rttime", RLIMIT_RTTIME },
	{ "sigpending", RLIMIT_SIGPENDING },
	{ "stack", RLIMIT_STACK },
};

static int find_resource(const char *name, size_t len, int *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		if (strncmp(resources[i].name, name, len) != 0 || resources[i].name[len] != '\0')
			continue;
		*ret = resources[i].resource;
		return 0;
	}
	return -EINVAL;
}

/* The value in @len bytes of @text. */
static int parse_value(const char *text, size_t len, uint64_t *ret)
{
	char digits[VALUE_MAX + 1];
	if (len == strlen(UNLIMITED) && memcmp(text, UNLIMITED, len) == 0) {
		*ret = RLIM_INFINITY;
		return 0;
	}
	if (len > VALUE_MAX)
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	/* The largest number is how the kernel writes "unlimited". */
	return num_parse_u64(digits, UINT64_MAX - 1, ret) < 0 ? -EINVAL : 0;
}

int rlimit_parse(const char *text, struct rlimit_spec *ret)
{
	struct rlimit_spec spec;
	size_t len = strcspn(text, "=");
	if (text[len] != '=' || find_resource(text, len, &spec.resource) < 0)
		return -EINVAL;
	const char *soft = text + len + 1;
	size_t soft_len = strcspn(soft, ":");
	const char *hard = soft[soft_len] == ':' ? soft + soft_len + 1 : soft;
	size_t hard_len = hard == soft ? soft_len : strlen(hard);
	if (parse_value(soft, soft_len, &spec.soft) < 0 ||
	    parse_value(hard, hard_len, &spec.hard) < 0 || spec.soft > spec.hard)
		return -EINVAL;
	*ret = spec;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/insecure.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	unsigned bits;
} options[] = {
	{ "none", 0 },
	{ "image", INSECURE_IMAGE },
	{ "tls", INSECURE_TLS },
	{ "ondisk", INSECURE_ONDISK },
	{ "http", INSECURE_HTTP },
	{ "pubkey", INSECURE_PUBKEY },
	{ "capabilities", INSECURE_CAPABILITIES },
	{ "paths", INSECURE_PATHS },
	{ "seccomp", INSECURE_SECCOMP },
	{ "all-fetch", INSECURE_ALL_FETCH },
	{ "all-run", INSECURE_ALL_RUN },
	{ "all", INSECURE_ALL },
};

static int find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (strncasecmp(options[i].name, name, len) == 0 && options[i].name[len] == '\0')
			return (int)i;
	return -EINVAL;
}

int insecure_options(const char *text, unsigned *ret, struct err *e)
{
	unsigned seen = 0, bits = 0;
	for (;;) {
		size_t len = strcspn(text, ",");
		int i = find_option(text, len), shown = (int)MIN(len, (size_t)80);
		if (i < 0)
			return err_set(e, -EINVAL, "unknown option \"%.*s\"", shown, text);
		if (seen & (1U << i))
			return err_set(e, -EINVAL, "duplicated option \"%.*s\"", shown, text);
		seen |= 1U << i;
		bits |= options[i].bits;
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	*ret = bits;
	return 0;
}

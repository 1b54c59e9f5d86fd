/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/args.h"

#include <errno.h>
#include <string.h>

#include "lib/base/str.h"

/* The flags that have values, and where these go; those that are for others go nowhere. */
static const char **value_of(struct shim_args *a, const char *name, size_t len, const char **unused)
{
	const struct {
		const char *name;
		const char **value;
	} flags[] = {
		{ "namespace", &a->ns },  { "address", &a->address }, { "id", &a->id },
		{ "bundle", &a->bundle }, { "socket", unused },       { "publish-binary", unused },
	};
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (strlen(flags[i].name) == len && memcmp(flags[i].name, name, len) == 0)
			return flags[i].value;
	return NULL;
}

/* One flag, "-name value" or "-name=value". How many arguments it takes, or -EINVAL and @e. */
static int take_flag(char *const *args, struct shim_args *a, struct err *e)
{
	const char *unused;
	const char *name = args[0] + (args[0][1] == '-' ? 2 : 1);
	size_t len = strcspn(name, "=");
	if (strcmp(name, "debug") == 0)
		return 1;
	const char **value = value_of(a, name, len, &unused);
	if (!value)
		return err_set(e, -EINVAL, "flag \"%.80s\" is not known", args[0]);
	*value = name[len] ? name + len + 1 : args[1];
	if (!*value)
		return err_set(e, -EINVAL, "flag \"%.80s\" needs a value", args[0]);
	return name[len] ? 1 : 2;
}

int shim_args_parse(char *const *args, struct shim_args *ret, struct err *e)
{
	*ret = (struct shim_args){ .ns = "", .address = "", .id = "", .bundle = "" };
	while (*args && **args == '-') {
		if (strcmp(*args, "-v") == 0 || strcmp(*args, "--v") == 0) {
			ret->action = SHIM_VERSION;
			return 0;
		}
		int n = take_flag(args, ret, e);
		if (n < 0)
			return n;
		args += n;
	}
	if (!*args || args[1])
		return err_set(e, -EINVAL, "one action is needed: start or delete");
	if (strcmp(*args, "start") == 0)
		ret->action = SHIM_START;
	else if (strcmp(*args, "delete") == 0)
		ret->action = SHIM_DELETE;
	else
		return err_set(e, -EINVAL, "action \"%.80s\" is neither start nor delete", *args);
	if (!*ret->ns || !*ret->id)
		return err_set(e, -EINVAL, "-namespace and -id are needed");
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/pods.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/data_dir.h"
#include "host/pod/list.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define UUID_FILE_MAX  64 /* a UUID and some white space */
#define EXIT_UUID_FILE 1  /* as rkt: the file of --uuid-file cannot be read */

int cli_open_pods(const struct cli *c, bool for_writing, struct pods **ret, struct err *e)
{
	cleanup_fd int data_fd = cli_open_data_dir(c, false, e);
	return data_fd < 0 ? data_fd : pods_open(data_fd, for_writing, ret, e);
}

int cli_open_pod(const struct cli *c, bool for_writing, const char *prefix, struct pods **ret_ps,
		 struct pod *ret, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	struct uuid uuid;
	if (!*prefix)
		return err_set(e, -EINVAL, "UUID cannot be empty");
	int r = cli_open_pods(c, for_writing, &ps, e);
	if (r == -ENOENT && !ps) /* no data directory: no pods */
		return err_set(e, -ENOENT, "no matches found for \"%.80s\"", prefix);
	if (r == 0)
		r = pods_resolve(ps, prefix, &uuid, e);
	if (r < 0)
		return r;
	r = pod_open(ps, uuid.text, ret, e);
	if (r != 0)
		return r < 0 ? r : err_set(e, -ENOENT, "no matches found for \"%.80s\"", prefix);
	*ret_ps = TAKE_PTR(ps);
	return 0;
}

/* Reads the UUID that `husk run --uuid-file-save` wrote. */
static int read_uuid_file(const char *path, char **ret, struct err *e)
{
	int r = file_read_at(AT_FDCWD, path, UUID_FILE_MAX, ret, NULL);
	if (r < 0)
		return err_sys(e, r, "unable to resolve UUID from file: \"%s\"", path);
	for (char *p = *ret; *p; p++)
		if (*p == '\n' || *p == ' ')
			*p = '\0';
	return 0;
}

int cli_take_uuids(const struct cli *c, const char *file, size_t max, struct strv *operands,
		   struct err *e)
{
	cleanup_free char *uuid = NULL;
	if (file ? operands->n > 0 : operands->n == 0 || operands->n > max)
		return err_set(e, CLI_MISUSE,
			       max == 1 ? "exactly one of UUID and --uuid-file is needed"
					: "either UUIDs or --uuid-file is needed");
	int r = file ? read_uuid_file(file, &uuid, e) : 0;
	if (r == 0 && file && (r = strv_add(operands, uuid)) < 0)
		err_sys(e, r, "--uuid-file");
	if (r == 0)
		return 0;
	cli_fail(c, e);
	return EXIT_UUID_FILE;
}

const char *cli_find_app(const struct cli *c, const struct pod_info *info, const char *name,
			 struct err *e)
{
	if (name && pod_info_find(info, name))
		return name;
	if (!name && info->n_apps == 1)
		return info->apps[0].name;
	if (name)
		err_set(e, -ENOENT, "error: nonexistent app \"%.80s\"", name);
	else if (info->problem.code < 0)
		*e = info->problem;
	else if (info->n_apps == 0)
		err_set(e, -ENOENT, CLI_NO_APPS);
	else
		err_set(e, -EINVAL, "specify app using \"husk %s --app= ...\"",
			command_path(c->cmd));
	return NULL;
}

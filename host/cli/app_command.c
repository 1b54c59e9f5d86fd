/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/app_command.h"

#include <errno.h>
#include <string.h>

#include "host/cli/settings.h"
#include "lib/base/num.h"
#include "lib/wire/stage1.h"

int app_set_grace(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct app_opts *o = opts;
	uint64_t n;
	if (num_parse_u64(value, AGENT_GRACE_MS_MAX / 1000, &n) < 0)
		return err_set(e, -EINVAL, "--%s: \"%.80s\" is not a number of seconds up to %d",
			       f->name, value, AGENT_GRACE_MS_MAX / 1000);
	o->grace_s = (int64_t)n;
	return 0;
}

void app_command_deinit(struct app_command *a)
{
	pods_free(a->pods);
	pod_deinit(&a->pod);
}

bool app_command_open(struct cli *c, struct app_opts *o, char *const *args, const char *missing,
		      bool acts, struct app_command *a, int *ret_exit)
{
	cleanup_strv struct strv operands;
	struct err e = ERR_INIT;
	memset(a, 0, sizeof(*a));
	a->pod = POD_INIT;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, o, args, &operands, ret_exit))
		return false;
	if (operands.n == 0 && !o->uuid_file) {
		err_set(&e, -EINVAL, "must provide the pod UUID");
		*ret_exit = cli_usage_error(c, &e);
		return false;
	}
	if (!cli_take_uuids(c, o->uuid_file, 1, &operands, ret_exit))
		return false;
	*ret_exit = EXIT_HUSK_FAILURE;
	if (!o->app) {
		err_set(&e, -EINVAL, "%s", missing);
		*ret_exit = cli_usage_error(c, &e);
		return false;
	}
	int r = cli_open_pod(c, false, operands.v[0], &a->pods, &a->pod, &e);
	if (r < 0)
		err_context(&e, "problem retrieving pod");
	else if (acts)
		r = cli_pod_stage1(c, &a->pod, &a->stage1, &e);
	a->target = (struct app_target){ a->pods, &a->pod, &a->stage1 };
	if (r < 0)
		cli_fail(c, &e);
	return r == 0;
}

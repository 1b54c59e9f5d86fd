/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/app_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "lib/base/num.h"

const struct app_opts app_defaults = { .grace_s = APP_GRACE_DEFAULT_S };

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
	free(a->stage1);
}

int app_command_open(struct cli *c, const struct app_opts *o, struct strv *operands,
		     const char *missing, bool acts, struct app_command *a, struct err *e)
{
	memset(a, 0, sizeof(*a));
	a->pod = POD_INIT;
	if (operands->n == 0 && !o->uuid_file)
		return err_set(e, CLI_MISUSE, "must provide the pod UUID");
	int r = cli_take_uuids(c, o->uuid_file, 1, operands, e);
	if (r == 0 && missing && !o->app)
		r = err_set(e, CLI_MISUSE, "%s", missing);
	if (r != 0)
		return r;
	r = cli_open_pod(c, false, operands->v[0], &a->pods, &a->pod, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = acts ? cli_pod_stage1(c, &a->pod, &a->stage1, e) : 0;
	a->target = (struct app_target){ a->pods, &a->pod, a->stage1 };
	return r;
}

int app_read_info(struct pods *ps, struct pod *p, struct pod_info *ret, struct err *e)
{
	if (pod_info_read(ps, p, ret) != 0)
		return err_set(e, -ENOENT, "pod \"%s\" is being deleted", p->uuid.text);
	if (ret->problem.code < 0)
		*e = ret->problem;
	return ret->problem.code;
}

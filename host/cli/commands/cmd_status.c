/* SPDX-License-Identifier: Apache-2.0 */
/* husk status */
#include <errno.h>
#include <string.h>

#include "host/cli/data_dir.h"
#include "host/cli/flags/duration.h"
#include "host/cli/format/show.h"
#include "host/cli/pods.h"
#include "host/pod/info.h"
#include "host/pod/wait.h"
#include "lib/os/clock.h"

struct status_opts {
	enum show_format format;
	const char *uuid_file;
	int64_t wait_ns, ready_ns; /* 0: do not wait; INT64_MAX: as long as it takes */
};

/* true, false, or a duration; negative ones mean for ever, as true does. */
static int set_wait(void *opts, const struct flag *f, const char *value, struct err *e)
{
	int64_t *slot = (int64_t *)(void *)((char *)opts + f->offset);
	int64_t ns = 0;
	int r = 0;
	if (strcmp(value, "true") == 0)
		ns = -1;
	else if (strcmp(value, "false") != 0)
		r = duration_parse(value, &ns);
	if (r < 0)
		return err_set(e, r, "--%s: \"%.80s\" is neither true nor false nor a duration",
			       f->name, value);
	*slot = ns < 0 ? INT64_MAX : ns;
	return 0;
}

static const struct flag flags[] = {
	FLAG_FORMAT(struct status_opts, "print JSON instead of lines"),
	FLAG_UUID_FILE(struct status_opts),
	{ .name = "wait",
	  .arg = "DURATION",
	  .bare = "true",
	  .set = set_wait,
	  .offset = offsetof(struct status_opts, wait_ns),
	  .help = "wait until the pod has ended, at most so long if a DURATION is given" },
	{ .name = "wait-ready",
	  .arg = "DURATION",
	  .bare = "true",
	  .set = set_wait,
	  .offset = offsetof(struct status_opts, ready_ns),
	  .help = "wait until all apps of the pod have been started; likewise" },
};

static int print_pod(const struct cli *c, const struct pod_info *info, enum show_format format,
		     struct err *e)
{
	cleanup_buf struct buf out;
	char dir[PATH_MAX];
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r = cli_data_dir(c, dir, e);
	if (r < 0)
		return r;
	r = format == SHOW_TEXT ? show_status(info, &out)
				: show_new_json(show_pod_json(info, dir), format, &out);
	if (r < 0)
		return err_sys(e, r, "cannot print the status");
	cli_print(&out);
	return 0;
}

static int64_t deadline_after(int64_t ns)
{
	return ns == INT64_MAX ? ns : clock_monotonic_ns() + ns;
}

static int wait_for(const struct status_opts *o, struct pods *ps, struct pod *p, struct err *e)
{
	int r = 0;
	if (o->ready_ns > 0)
		r = pod_wait_ready(ps, p, deadline_after(o->ready_ns), e);
	if (r == 0 && o->wait_ns > 0)
		r = pod_wait_finished(ps, p, deadline_after(o->wait_ns), e);
	return r;
}

static int status_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct status_opts *o = opts;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	int r = cli_open_pod(c, false, operands->v[0], &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = wait_for(o, ps, &p, e);
	if (r < 0)
		return r;
	r = pod_info_read(ps, &p, &info);
	if (r > 0)
		return err_set(e, -ENOENT, "pod \"%s\" is being deleted", p.uuid.text);
	if (r < 0)
		return err_sys(e, r, "cannot read pod \"%s\"", p.uuid.text);
	r = print_pod(c, &info, o->format, e);
	if (r == 0 && info.problem.code < 0)
		cli_message(c, "pod \"%s\": %s", p.uuid.text, info.problem.text);
	return r;
}

const struct command cmd_status = {
	.name = "status",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "print the state of a pod and the exit codes of its apps",
	.description =
		"UUID may be shortened as long as it stays unique. The exit status is 0 whatever\n"
		"the apps' exit codes are.",
	COMMAND_FLAGS(flags, struct status_opts),
	.uuids = 1,
	.run = status_run,
};

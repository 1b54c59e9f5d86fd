/* SPDX-License-Identifier: Apache-2.0 */
/* husk doctor */
#include <errno.h>
#include <sys/wait.h>

#include "host/cli/checks.h"
#include "host/cli/cli.h"
#include "host/cli/data_dir.h"
#include "host/cli/format/doctor.h"
#include "host/cli/format/show.h"
#include "host/cli/pods.h"
#include "host/cli/stage1_choice.h"
#include "host/launch/stage1.h"
#include "host/pod/running.h"
#include "host/pod/wait.h"
#include "lib/os/fd.h"

#define EXIT_CANNOT_RUN 1
#define OUTPUT_MAX      ((size_t)1024 * 1024) /* DOCTOR_CHECKS_MAX checks, escaped */

struct doctor_opts {
	enum show_format format;
};

static const struct flag flags[] = {
	FLAG_FORMAT(struct doctor_opts, "print JSON instead of a table"),
};

/* Asks the doctor of @s. *ok becomes false if it says that no pod can run. 0 or -errno and @e. */
static int add_stage1_doctor(const struct cli *c, const struct stage1 *s, struct doctor *d,
			     bool *ok, struct err *e)
{
	cleanup_buf struct buf out;
	struct err said_before = ERR_INIT;
	int status;
	buf_init(&out, STAGE1_OUTPUT_MAX);
	cleanup_fd int data = cli_open_data_dir(c, false, &said_before);
	int r = data < 0 ? stage1_query(s->doctor, NULL, &out, &status, e)
			 : stage1_query_pod(s->doctor, data, NULL, false, &out, &status, e);
	if (r == 0)
		r = doctor_add_json(d, buf_data(&out), buf_len(&out), e);
	if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		*ok = false;
	return r;
}

/* The checks of stage1; that there is one is a check itself. 0 or -errno. */
static int add_stage1(struct cli *c, struct doctor *d, bool *ok)
{
	struct err e = ERR_INIT;
	char version[32];
	cleanup_free struct stage1 *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	int r = stage1_choose(c, NULL, PULL_NEVER, s, &e);
	snprintf(version, sizeof(version), "interface %lld", (long long)s->version);
	if (r == 0)
		r = doctor_add(d, "stage1", true, version, s->dir, NULL);
	if (r == 0 && s->doctor[0])
		r = add_stage1_doctor(c, s, d, ok, &e);
	if (r == 0)
		return 0;
	*ok = false;
	return doctor_add(d, "stage1", false, e.text, NULL, "install the stage1 of this husk");
}

/* What the stage1 of the pod says about it. */
static int add_pod(struct cli *c, const char *prefix, struct doctor *d, bool *ok, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_free struct stage1 *stage1 = NULL;
	cleanup_buf struct buf out;
	buf_init(&out, STAGE1_OUTPUT_MAX);
	int r = cli_open_pod(c, false, prefix, &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = pod_need_running(&p, e);
	if (r == 0)
		r = cli_pod_stage1(c, &p, &stage1, e);
	if (r == 0)
		r = pod_doctor(&p, stage1, &out, ok, e);
	return r < 0 ? r : doctor_add_json(d, buf_data(&out), buf_len(&out), e);
}

static int print_result(const struct doctor *d, bool ok, const char *verdict,
			enum show_format format)
{
	cleanup_buf struct buf out;
	int r;
	buf_init(&out, OUTPUT_MAX);
	if (format == SHOW_TEXT) {
		r = doctor_format(d, &out);
		if (r == 0)
			r = buf_puts(&out, verdict);
	} else {
		r = show_new_json(doctor_json(d, ok), format, &out);
	}
	if (r == 0)
		cli_print(&out);
	return r;
}

static int doctor_of_pod(struct cli *c, const char *prefix, enum show_format format, struct err *e)
{
	CLEANUP(doctor_deinit) struct doctor d = DOCTOR_INIT;
	bool ok = false;
	int r = add_pod(c, prefix, &d, &ok, e);
	if (r < 0)
		return r;
	r = print_result(&d, ok,
			 ok ? "The pod is as it was made.\n" : "The pod is not as it was made.\n",
			 format);
	return r < 0 ? err_sys(e, r, "cannot print") : ok ? 0 : EXIT_CANNOT_RUN;
}

static int doctor_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct doctor_opts *o = opts;
	CLEANUP(doctor_deinit) struct doctor d = DOCTOR_INIT;
	bool data_ok = false, ok = true;
	if (operands->n > 1)
		return err_set(e, CLI_MISUSE, "one pod at a time");
	if (operands->n == 1)
		return doctor_of_pod(c, operands->v[0], o->format, e);
	int r = checks_add(c, &d, &data_ok);
	if (r == 0)
		r = add_stage1(c, &d, &ok);
	ok = ok && data_ok;
	if (r == 0)
		r = print_result(&d, ok, ok ? "A pod can run.\n" : "No pod can run.\n", o->format);
	if (r < 0)
		return err_sys(e, r, "cannot tell what works");
	return ok ? 0 : EXIT_CANNOT_RUN;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "[OPTIONS] [UUID]",
	.summary = "tell whether pods can run here, and what is missing",
	.description =
		"Checks the data directory, the tools and, by asking stage1, what the virtual\n"
		"machines need. Behind each miss stands what to do about it. The exit status is\n"
		"0 if a pod can run, 1 if not. Of a pod that runs it has the plugins of its networks\n"
		"check them; the exit status is 1 if they are not as they were made.",
	COMMAND_FLAGS(flags, struct doctor_opts),
	.run = doctor_run,
};

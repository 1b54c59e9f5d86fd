/* SPDX-License-Identifier: Apache-2.0 */
/* husk export */
#include <errno.h>
#include <string.h>

#include "host/cli/image_app.h"
#include "host/cli/pods.h"
#include "host/cli/stage1_choice.h"
#include "host/pod/disks.h"
#include "host/pod/info.h"
#include "images/images.h"
#include "lib/base/buf.h"
#include "lib/data/target.h"
#include "lib/os/fd.h"

#define ACI_SUFFIX ".aci"
#define NAMES_MAX  ((size_t)512) /* bytes of app names in a message */

struct export_opts {
	const char *app;
	const char *format;
	const char *uuid_file;
	bool overwrite;
};

static const struct flag flags[] = {
	FLAG_STRING("app", "NAME", struct export_opts, app,
		    "the app to export; needed if the pod has several"),
	FLAG_STRING("format", "aci|oci", struct export_opts, format,
		    "the kind of archive: appc image, the default, or OCI image"),
	FLAG_SWITCH("overwrite", struct export_opts, overwrite, "replace FILE if it exists"),
	FLAG_UUID_FILE(struct export_opts),
};

static int parse_format(const char *text, const char *file, enum export_format *ret, struct err *e)
{
	int r = export_format_of(text, EXPORT_ACI, ret, e);
	if (r == 0 && *ret == EXPORT_ACI && !str_ends(file, ACI_SUFFIX))
		return err_set(e, -EINVAL,
			       "extension must be " ACI_SUFFIX
			       " (given %s); --format=oci takes any",
			       file);
	return r;
}

/* Which names there are, for somebody who has to choose. */
static int several_apps(const struct pod_manifest *m, struct err *e)
{
	cleanup_buf struct buf names;
	buf_init(&names, NAMES_MAX);
	for (size_t i = 0; i < m->n_apps; i++)
		if (buf_printf(&names, "%s%s", i > 0 ? ", " : "", m->apps[i].name) < 0)
			break;
	return err_set(e, -EINVAL,
		       "unable to find app: pod contains multiple apps: %.*s (specify one with "
		       "--app=NAME)",
		       (int)buf_len(&names), buf_data(&names));
}

static int find_app(const struct pod_manifest *m, const char *name, const struct pod_app **ret,
		    struct err *e)
{
	if (!name && m->n_apps > 1)
		return several_apps(m, e);
	if (!name && m->n_apps == 0)
		return err_set(e, -ENOENT, "unable to find app: " CLI_NO_APPS);
	*ret = name ? pod_manifest_find(m, name) : m->apps;
	if (*ret)
		return 0;
	return err_set(e, -ENOENT, "unable to find app: app \"%.80s\" is not present in pod", name);
}

/* What is the host's anyway is not in the pod. */
static int check_root(const struct pod_app *app, struct err *e)
{
	const struct volume_mount *root = volume_mounts_root(&app->mounts);
	return root ? err_set(e, -EOPNOTSUPP,
			      "app \"%s\": its root directory is volume \"%s\", and what it has "
			      "written is there",
			      app->name, root->volume)
		    : 0;
}

static void job_deinit(struct export_job *job)
{
	fd_close(job->image);
	fd_close(job->disk);
	fd_close(job->upper);
}

static void export_tell(const struct cli *c, const struct pod *p,
			const struct export_report *report)
{
	if (report->lost > 0)
		cli_message(
			c,
			"warning: pod \"%s\": left out %zu names of files that the virtual machine "
			"did not come to write",
			p->uuid.text, report->lost);
	else if (report->unclean && c->debug)
		cli_message(c, "pod \"%s\": its scratch disk was not completed", p->uuid.text);
}

/* Exports the app of @job->app from the pod @p to @file. */
static int export_app(struct cli *c, const struct pod *p, struct export_job *job, const char *file,
		      bool overwrite, struct err *e)
{
	CLEANUP(target_deinit) struct target target = TARGET_INIT;
	struct export_report report;
	cleanup_free struct stage1 *stage1 = NULL;
	struct pod_disks disks = POD_DISKS_INIT;
	int r = cli_pod_stage1(c, p, &stage1, e);
	if (r == 0)
		r = pod_open_disks(p, stage1, job->app->name, &disks, e);
	if (r < 0)
		return err_context(e, "pod \"%s\"", p->uuid.text);
	job->image = disks.image;
	job->disk = disks.changes;
	job->upper = disks.upper;
	job->marks_are_user = stage1->marks_are_user;
	r = target_open(file, "target file", overwrite, &target, e);
	if (r < 0)
		return r;
	job->out = target.fd;
	r = export_confined(job, &report, e);
	if (r < 0)
		return err_context(e, "pod \"%s\", app \"%s\"", p->uuid.text, job->app->name);
	r = target_publish(&target, e);
	if (r == 0)
		export_tell(c, p, &report);
	return r;
}

static int export_pod(struct cli *c, const char *prefix, const char *file,
		      enum export_format format, const struct export_opts *o, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	CLEANUP(job_deinit)
	struct export_job job = {
		.format = format, .image = -EBADF, .disk = -EBADF, .upper = -EBADF
	};
	pod_manifest_init(&m);
	int r = cli_open_pod(c, false, prefix, &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	if (!pod_is_final(&p))
		return err_set(e, -EINVAL, "pod is not exited. Only exited pods can be exported");
	r = pod_read_manifest(&p, &m, e);
	if (r < 0)
		return err_context(e, "pod \"%s\"", p.uuid.text);
	r = find_app(&m, o->app, &job.app, e);
	if (r == 0)
		r = check_root(job.app, e);
	return r < 0 ? r : export_app(c, &p, &job, file, o->overwrite, e);
}

static int export_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct export_opts *o = opts;
	enum export_format format = EXPORT_ACI;
	if (operands->n != (o->uuid_file ? 1U : 2U))
		return err_set(e, CLI_MISUSE,
			       "exactly one of UUID and --uuid-file, and a FILE are needed");
	operands->n--;
	cleanup_free char *file = TAKE_PTR(operands->v[operands->n]);
	int r = parse_format(o->format, file, &format, e);
	if (r == 0)
		r = cli_take_uuids(c, o->uuid_file, 1, operands, e);
	return r == 0 ? export_pod(c, operands->v[0], file, format, o, e) : r;
}

const struct command cmd_export = {
	.name = "export",
	.usage = "[OPTIONS] UUID FILE | --uuid-file=FILE FILE",
	.summary = "write the root file system of an exited pod's app as an image",
	.description =
		"FILE gets the app's image with all that the app changed in it: an appc image, whose\n"
		"name must end in .aci, or with --format=oci an OCI image archive, which husk run,\n"
		"skopeo and others take. FILE appears when it is complete.",
	COMMAND_FLAGS(flags, struct export_opts),
	.run = export_run,
};

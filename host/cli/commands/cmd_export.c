/* SPDX-License-Identifier: Apache-2.0 */
/* husk export */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/cli/image_app.h"
#include "host/cli/pods.h"
#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "host/export/export.h"
#include "host/export/target.h"
#include "host/pod/info.h"
#include "lib/base/buf.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/wire/stage1.h"

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

/* Opens a regular file of the pod read-only. The descriptor or -errno. */
static int open_file(const struct pod *p, const char *path)
{
	struct stat st;
	cleanup_fd int fd = path_open_beneath(p->fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd >= 0 && fstat(fd, &st) < 0)
		return -errno;
	if (fd >= 0 && !S_ISREG(st.st_mode))
		return -EINVAL;
	return TAKE_FD(fd);
}

static int open_disks(const struct pod *p, const struct stage1 *stage1, struct export_job *job,
		      struct err *e)
{
	char path[AGENT_NAME_MAX + sizeof(POD_DIR_APPS "//" POD_FILE_ROOTFS)];
	snprintf(path, sizeof(path), POD_DIR_APPS "/%s/" POD_FILE_ROOTFS, job->app->name);
	job->image = open_file(p, path);
	if (job->image < 0)
		return err_sys(e, job->image, "cannot open the image of app \"%s\"",
			       job->app->name);
	if (!stage1->changes[0])
		return err_set(e, -EOPNOTSUPP,
			       "its stage1 \"%s\" does not say where changes of apps are",
			       stage1->dir);
	job->disk = open_file(p, stage1->changes);
	if (job->disk == -ENOENT)
		return err_set(e, -ENOENT,
			       "there is no file \"%s\" with changes (the pod never started, or it "
			       "was deleted)",
			       stage1->changes);
	return job->disk < 0 ? err_sys(e, job->disk, "cannot open the file \"%s\" with changes",
				       stage1->changes)
			     : 0;
}

static void job_deinit(struct export_job *job)
{
	fd_close(job->image);
	fd_close(job->disk);
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
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	int r = stage1 ? cli_pod_stage1(c, p, stage1, e) : err_sys(e, -ENOMEM, "stage1");
	if (r == 0)
		r = open_disks(p, stage1, job, e);
	if (r < 0)
		return err_context(e, "pod \"%s\"", p->uuid.text);
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
	struct export_job job = { .format = format, .image = -EBADF, .disk = -EBADF };
	pod_manifest_init(&m);
	int r = cli_open_pod(c, false, prefix, &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	enum pod_state state = pod_state_of(p.phase, p.locked);
	if (state != POD_STATE_EXITED && state != POD_STATE_EXITED_GARBAGE)
		return err_set(e, -EINVAL, "pod is not exited. Only exited pods can be exported");
	r = pod_read_manifest(&p, &m, e);
	if (r < 0)
		return err_context(e, "pod \"%s\"", p.uuid.text);
	r = find_app(&m, o->app, &job.app, e);
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

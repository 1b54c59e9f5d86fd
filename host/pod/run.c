/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of effects: stage1 checked, images opened (and rendered), manifest composed; only then the
 * pod directory: embryo, lock, prepare, UUID file, content, run, exec. Up to the rename into run
 * a failure takes the pod away again; a crash leaves an embryo or an aborted prepare for gc.
 */
#include "host/pod/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "host/launch/abi.h"
#include "host/manifest/open_images.h"
#include "host/manifest/ports.h"
#include "host/manifest/volumes.h"
#include "host/pod/detach.h"
#include "host/pod/info.h"
#include "host/pod/name.h"
#include "host/pod/pod.h"
#include "host/pod/prepare.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define UUID_FILE_MODE 0644

static int save_uuid(const char *path, const struct uuid *uuid, struct err *e)
{
	int r = file_save_path(path, uuid->text, UUID_TEXT_LEN, UUID_FILE_MODE);
	return r < 0 ? err_sys(e, r, "--uuid-file-save: cannot write \"%s\"", path) : 0;
}

/* Takes back a pod that did not get as far as run; what cannot be removed is left to gc. */
static void take_back(struct pods *ps, struct pod *p)
{
	if (pod_discard(ps, p, NULL) == 0)
		pod_delete(ps, p, NULL);
}

typedef int (*move_fn)(struct pods *ps, struct pod *p, struct err *e);

/* Makes the directory of the pod and moves it on with @move. */
static int make_pod(const struct run_request *q, struct pods *ps, bool durable, move_fn move,
		    const struct pod_manifest *m, const struct image_list *images,
		    const struct stage1 *stage1, struct pod *ret, struct err *e)
{
	cleanup_pod struct pod p = POD_INIT;
	int r = pod_create(ps, durable, &p, e);
	if (r < 0)
		return r;
	if (q->name)
		r = pod_name_take(ps, &p, q->name, e);
	if (r == 0 && q->uuid_file)
		r = save_uuid(q->uuid_file, &p.uuid, e);
	if (r == 0 && q->fetch.note)
		q->fetch.note(q->fetch.ctx, "stage0: Writing pod manifest");
	if (r == 0)
		r = pod_prepare(&p, m, images->v, stage1, e);
	if (r == 0)
		r = move(ps, &p, e);
	if (r == POD_GONE)
		return err_set(e, -ENOENT, "pod \"%s\" was taken away during its preparation",
			       p.uuid.text);
	if (r < 0) {
		take_back(ps, &p);
		return r;
	}
	*ret = p;
	p = POD_INIT;
	return 0;
}

/* What is asked of stage1 for the pod @uuid. All is borrowed. */
static struct abi_run wishes(const struct run_request *q, const char *uuid)
{
	return (struct abi_run){
		.uuid = uuid,
		.hostname = q->hostname,
		.private_users = q->private_users,
		.network = &q->network,
		.options = &q->stage1_options,
		.debug = q->debug,
		.interactive = q->interactive,
		.detach = q->detach,
		.is_mutable = q->is_mutable,
		.all_capabilities = q->all_capabilities,
		.open_paths = q->open_paths,
		.no_seccomp = q->no_seccomp,
		.start_ns = q->start_ns,
	};
}

/* Tells what the pod will have to do without. 0, or -errno and @e if it cannot. */
static int check_stage1(const struct run_request *q, const struct pod_ports *ports,
			const struct volumes *volumes, const struct strv *sysctls,
			const struct stage1 *s, struct err *e)
{
	cleanup_strv struct strv lacking;
	struct abi_run run = wishes(q, "");
	run.has_ports = ports->n > 0;
	run.has_blocks = volumes_have(volumes, VOLUME_BLOCK);
	run.has_sysctls = sysctls->n > 0;
	strv_init(&lacking, ABI_LACKING_MAX);
	int r = abi_check_run(s, &run, e);
	if (r < 0)
		return r;
	r = abi_lacking(s, &run, &lacking);
	for (size_t i = 0; q->warn && i < lacking.n; i++)
		q->warn(q->warn_ctx, lacking.v[i]);
	return r < 0 ? err_sys(e, r, "options of stage1") : 0;
}

/*
 * The name is taken with the pod, which comes after its images; who fetches for minutes shall hear
 * of one that is taken before that.
 */
static int check_name(const struct run_request *q, int data_fd, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	if (!q->name)
		return 0;
	int r = pods_open(data_fd, false, &ps, e);
	return r < 0 ? r : pod_name_check(ps, q->name, e);
}

/* Adds to *n_reads and *n_writes how often @mounts have the volume. */
static void count_uses(const struct volume_mounts *mounts, const struct volume *v, size_t *n_reads,
		       size_t *n_writes)
{
	for (size_t i = 0; i < mounts->n; i++)
		if (strcmp(mounts->v[i].volume, v->name) == 0)
			++*(mounts->v[i].read_only ? n_reads : n_writes);
}

/* As far as can be said before the images are there, which may want it, too. */
static bool only_reads(const struct run_request *q, const struct volume *v)
{
	size_t n_reads = 0, n_writes = 0;
	count_uses(&q->mounts, v, &n_reads, &n_writes);
	for (size_t i = 0; i < q->n_apps; i++)
		count_uses(&q->apps[i].mounts, v, &n_reads, &n_writes);
	return v->read_only || (n_reads > 0 && n_writes == 0);
}

/* Before an image is fetched for it. */
static int check_volumes(const struct run_request *q, struct err *e)
{
	static const struct volumes none;
	int r = 0;
	for (size_t i = 0; r == 0 && i < q->volumes.n; i++)
		r = volumes_check_source(&q->volumes.v[i], only_reads(q, &q->volumes.v[i]), e);
	if (r == 0)
		r = volumes_check(&q->volumes, &none, &q->mounts, e);
	for (size_t i = 0; r == 0 && i < q->n_apps; i++)
		r = volumes_check(&q->volumes, &q->apps[i].volumes, &q->apps[i].mounts, e);
	return r;
}

/* What a pod is made of, which must live until stage1 has what it needs of it. */
struct made {
	struct pod_manifest m;
	struct image_list images;
	struct pods *ps;
	struct pod p;
};

static void made_deinit(struct made *d)
{
	pod_deinit(&d->p);
	pods_free(d->ps);
	image_list_deinit(&d->images);
	pod_manifest_deinit(&d->m);
}

/* Makes the pod of @q and moves it on with @move. */
static int make(const struct run_request *q, int data_fd, const char *data_path, bool durable,
		move_fn move, const struct stage1 *stage1, struct made *d, struct err *e)
{
	d->m.is_mutable = q->is_mutable;
	d->m.exit_policy = q->exit_policy;
	int r = pod_tags_copy(&d->m.tags, &q->tags);
	if (r < 0)
		return err_sys(e, r, "annotations of the pod");
	r = strv_extend(&d->m.sysctls, &q->sysctls);
	if (r < 0)
		return err_sys(e, r, "sysctls of the pod");
	r = volumes_copy(&d->m.volumes, &q->volumes);
	if (r < 0)
		return err_sys(e, r, "volumes of the pod");
	r = check_volumes(q, e);
	if (r == 0)
		r = check_name(q, data_fd, e);
	if (r == 0)
		r = gather_apps(q, data_fd, data_path, &d->m, &d->images, e);
	if (r == 0)
		r = ports_resolve(&q->ports, &d->m, e);
	for (size_t i = 0; r == 0 && i < d->m.n_apps; i++)
		r = volumes_resolve(&d->m, &q->mounts, &d->m.apps[i], e);
	if (r == 0)
		r = pods_open(data_fd, true, &d->ps, e);
	return r == 0 ? make_pod(q, d->ps, durable, move, &d->m, &d->images, stage1, &d->p, e) : r;
}

/* Becomes stage1 for a pod that is in run under our lock. Returns as pod_run() does. */
static int exec_stage1(const struct run_request *q, const struct pod *p, const char *data_path,
		       const struct stage1 *stage1, struct err *e)
{
	cleanup_strv struct strv args;
	char cache[PATH_MAX + sizeof("/" PODS_CACHE_DIR)];
	struct abi_run run = wishes(q, p->uuid.text);
	strv_init(&args, RUN_STAGE1_OPTIONS_MAX + ABI_RUN_ARGS_MAX);
	fetch_note(&q->fetch, "pod %s", p->uuid.text);
	snprintf(cache, sizeof(cache), "%s/" PODS_CACHE_DIR, data_path);
	run.cache_dir = cache;
	int r = abi_run_args(stage1, &run, &args);
	if (r < 0)
		return err_sys(e, r, "arguments of stage1");
	r = q->detach ? pod_detach(p, e) : 0;
	if (r == DETACH_READY)
		return RUN_DETACHED;
	return r < 0 ? r : stage1_exec_run(stage1, p->fd, &args, e);
}

int pod_run(const struct run_request *q, int data_fd, const char *data_path,
	    const struct stage1 *stage1, struct uuid *ret, struct err *e)
{
	CLEANUP(made_deinit) struct made d = { .p = POD_INIT };
	pod_manifest_init(&d.m);
	int r = check_stage1(q, &q->ports, &q->volumes, &q->sysctls, stage1, e);
	if (r == 0)
		r = make(q, data_fd, data_path, false, pod_start, stage1, &d, e);
	if (r < 0)
		return r;
	*ret = d.p.uuid;
	return exec_stage1(q, &d.p, data_path, stage1, e);
}

int pod_prepare_only(const struct run_request *q, int data_fd, const char *data_path,
		     const struct stage1 *stage1, struct uuid *ret, struct err *e)
{
	CLEANUP(made_deinit) struct made d = { .p = POD_INIT };
	pod_manifest_init(&d.m);
	if (q->hostname && str_copy(d.m.hostname, sizeof(d.m.hostname), q->hostname) < 0)
		return err_sys(e, -ENAMETOOLONG, "--hostname");
	d.m.private_users = q->private_users;
	int r = make(q, data_fd, data_path, true, pod_finish_prepare, stage1, &d, e);
	if (r == 0)
		*ret = d.p.uuid;
	return r;
}

int pod_run_prepared(const struct run_request *q, struct pods *ps, struct pod *p,
		     const char *data_path, const struct stage1 *stage1, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	struct run_request run = *q;
	pod_manifest_init(&m);
	if (p->phase != POD_PREPARED)
		return err_set(e, -EINVAL, "pod \"%s\" is not prepared", p->uuid.text);
	int r = pod_read_manifest(p, &m, e);
	run.private_users |= m.private_users;
	if (r == 0)
		r = check_stage1(&run, &m.ports, &m.volumes, &m.sysctls, stage1, e);
	if (r == 0 && !run.hostname && m.hostname[0])
		run.hostname = m.hostname;
	if (r == 0 && q->interactive && m.n_apps > 1)
		return err_set(e, -EINVAL, "interactive option only supports pods with one app");
	if (r == 0)
		r = pod_lock(ps, p, e);
	p->durable = false; /* from here on a power cut ends the pod */
	if (r == 0)
		r = pod_start(ps, p, e);
	if (r > 0)
		return err_set(e, -EINVAL, "pod \"%s\" is not prepared: it has moved on",
			       p->uuid.text);
	return r < 0 ? r : exec_stage1(&run, p, data_path, stage1, e);
}

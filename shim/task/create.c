/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a container: its pod starts while its root directory becomes an image; then it is added to
 * the pod as an app, and what joins its streams is started, before anything runs: the app's output
 * waits for it with the agent.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "shim/job/oom_score.h"
#include "shim/task/task_int.h"

/* What containerd's name of a container makes an app be called. */
static void name_app(const char *id, char out[AGENT_NAME_MAX + 1])
{
	size_t n = 0;
	for (size_t i = 0; id[i] && n < AGENT_NAME_MAX; i++) {
		char c = id[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		if (plain || (n > 0 && out[n - 1] != '-'))
			out[n++] = plain ? c : '-';
	}
	while (n > 0 && out[n - 1] == '-')
		n--;
	out[n] = '\0';
	if (n == 0)
		str_copy(out, AGENT_NAME_MAX + 1, "app");
}

/* ---- jobs: in a child ---- */

static int job_pod(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	struct container *c = ctx;
	char path[PATH_MAX];
	struct uuid uuid;
	snprintf(path, sizeof(path), "%s/" BUNDLE_POD_FILE, c->bundle);
	int r = oom_score_set(c->spec.oom_score_adj); /* ours is that of containerd */
	if (r < 0 && r != -EACCES)                    /* in a container it may go no lower */
		return err_sys(e, r, "\"process.oomScoreAdj\"");
	r = husk_start_pod(&c->shim->place, &c->spec, path, &uuid, e);
	return r == 0 ? str_copy(text, JOB_TEXT_MAX + 1, uuid.text) : r;
}

static int job_pack(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	struct container *c = ctx;
	char path[PATH_MAX];
	int n = c->spec.root[0] == '/'
			? snprintf(path, sizeof(path), "%s", c->spec.root)
			: snprintf(path, sizeof(path), "%s/%s", c->bundle, c->spec.root);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "root directory");
	return husk_pack_root(&c->shim->place, path, c->mounts, c->n_mounts, text, e);
}

static int job_add(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	struct container *c = ctx;
	(void)text;
	return husk_add_app(&c->shim->place, c->shim->uuid, &c->spec, c->app, c->image,
			    c->init.terminal, e);
}

/* After a failure nothing is left of a pod that was made for it. */
static int job_end(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	(void)text;
	return husk_end_pod(&c->shim->place, c->shim->uuid, e);
}

/* ---- in the shim ---- */

static void release_request(struct container *c)
{
	free(c->mounts);
	c->mounts = NULL;
	if (c->request)
		task__create_request__free_unpacked(c->request, &c->arena.allocator);
	c->request = NULL;
}

static void on_given_up(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	(void)end;
	c->job = NULL;
	c->shim->uuid[0] = '\0';
	shim_refuse(c->shim, c->token, &c->failure);
	shim_forget(c);
}

static void give_up(struct container *c)
{
	struct shim *s = c->shim;
	if (c->next || !s->uuid[0] ||
	    job_start(s->loop, job_end, c, 0, on_given_up, c, &c->job) < 0) {
		shim_refuse(s, c->token, &c->failure);
		shim_forget(c);
	}
}

static void publish_created(const struct container *c)
{
	const Task__CreateRequest *q = c->request;
	Task__TaskIO io;
	Task__TaskCreate m;
	task__task_io__init(&io);
	task__task_create__init(&m);
	io.stdin = q->stdin;
	io.stdout = q->stdout;
	io.stderr = q->stderr;
	io.terminal = q->terminal;
	m.container_id = c->id;
	m.bundle = c->bundle;
	m.n_rootfs = q->n_rootfs;
	m.rootfs = q->rootfs;
	m.io = &io;
	m.pid = (uint32_t)c->init.pid;
	publisher_publish(c->shim->publisher, "/tasks/create", "containerd.events.TaskCreate",
			  &m.base);
}

static void on_added(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	c->job = NULL;
	if (end->result < 0)
		c->failure = *end->e;
	else if (c->shim->pod_is_over)
		err_set(&c->failure, -ESRCH, "the pod has ended");
	else
		c->was_added = true;
	if (!c->was_added || container_attach(c, &c->failure) < 0) {
		give_up(c);
		return;
	}
	c->init.pid = c->shim->pod_pid;
	publish_created(c);
	release_request(c);
	Task__CreateResponse m;
	task__create_response__init(&m);
	m.pid = (uint32_t)c->init.pid;
	answer_with(c->shim->server, c->token, &m.base);
}

/* Both halves are there, or one of them has failed. */
static void join_halves(struct container *c)
{
	struct shim *s = c->shim;
	if (c->n_pending > 0)
		return;
	if (c->failure.code == 0 && shim_watch(s, &c->failure) == 0) {
		int r = job_start(s->loop, job_add, c, JOB_BOUND, on_added, c, &c->job);
		if (r == 0)
			return;
		err_sys(&c->failure, r, "cannot create a process");
	}
	give_up(c);
}

static void half_done(struct container *c, const struct job_end *end)
{
	c->n_pending--;
	if (end->result < 0 && c->failure.code == 0)
		c->failure = *end->e;
}

static void on_pod(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	half_done(c, end);
	if (end->result == 0)
		str_copy(c->shim->uuid, sizeof(c->shim->uuid), end->text);
	join_halves(c);
}

static void on_packed(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	half_done(c, end);
	if (end->result == 0)
		str_copy(c->image, sizeof(c->image), end->text);
	join_halves(c);
}

static void begin_half(struct container *c, job_fn fn, job_done done)
{
	int r = job_start(c->shim->loop, fn, c, JOB_BOUND, done, c, NULL);
	if (r == 0)
		c->n_pending++;
	else if (c->failure.code == 0)
		err_sys(&c->failure, r, "cannot create a process");
}

static int read_spec(struct container *c, struct err *e)
{
	char path[PATH_MAX];
	cleanup_free char *text = NULL;
	size_t len = 0;
	int n = snprintf(path, sizeof(path), "%s/config.json", c->bundle);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "bundle");
	int r = file_read_at(AT_FDCWD, path, OCI_SPEC_SIZE_MAX, &text, &len);
	return r < 0 ? err_sys(e, r, "\"%.255s\"", path) : oci_spec_parse(text, len, &c->spec, e);
}

static int take_mounts(struct container *c, struct err *e)
{
	size_t n = c->request->n_rootfs;
	if (n > HUSK_MOUNTS_MAX)
		return err_set(e, -E2BIG, "the root directory is made of %zu mounts, more than %d",
			       n, HUSK_MOUNTS_MAX);
	c->mounts = calloc(MAX(n, (size_t)1), sizeof(*c->mounts));
	if (!c->mounts)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		const Task__Mount *m = c->request->rootfs[i];
		c->mounts[i] = (struct husk_mount){ m->type, m->source, m->target, m->options,
						    m->n_options };
	}
	c->n_mounts = n;
	return 0;
}

/*
 * Where husk is configured, if containerd's configuration says so. Who clears up is told by a file.
 */
static int take_options(struct container *c, struct err *e)
{
	static const char type[] = "runtimeoptions.v1.Options";
	const Task__Any *any = c->request->options;
	struct shim *s = c->shim;
	char path[PATH_MAX];
	if (!any || !str_ends(any->type_url, type))
		return 0;
	Task__Options *o =
		task__options__unpack(&c->arena.allocator, any->value.len, any->value.data);
	int r = o ? str_copy(s->config, sizeof(s->config), o->config_path) : -EBADMSG;
	task__options__free_unpacked(o, &c->arena.allocator);
	if (r < 0 || !*s->config)
		return r < 0 ? err_sys(e, r, "options of the runtime") : 0;
	if (s->config[0] != '/')
		return err_set(e, -EINVAL, "options of the runtime: \"%.255s\" is not absolute",
			       s->config);
	s->place.config = s->config;
	snprintf(path, sizeof(path), "%s/" BUNDLE_CONFIG_FILE, c->bundle);
	r = file_save_path(path, s->config, strlen(s->config), 0600);
	return r < 0 ? err_sys(e, r, "\"%.255s\"", path) : 0;
}

/* What of a request can be looked at before anything is made. */
static int prepare_container(struct container *c, struct err *e)
{
	const Task__CreateRequest *q = c->request;
	if (*q->checkpoint)
		return err_set(e, -EOPNOTSUPP, "checkpoints are not supported");
	c->id = strdup(q->id);
	c->bundle = strdup(q->bundle);
	int r = c->id && c->bundle
			? process_init(&c->init, q->stdin, q->stdout, q->stderr, q->terminal)
			: -ENOMEM;
	if (r < 0)
		return err_set(e, r, "out of memory");
	c->init.container = c;
	name_app(c->id, c->app);
	r = take_options(c, e);
	if (r == 0)
		r = read_spec(c, e);
	if (r == 0 && (c->spec.is_sandbox || c->spec.sandbox_id))
		return err_set(e, -EOPNOTSUPP, "pods of Kubernetes are not supported");
	if (r == 0)
		r = process_open_streams(&c->init, e);
	c->init.rows = c->spec.rows;
	c->init.columns = c->spec.columns;
	return r == 0 ? take_mounts(c, e) : r;
}

static struct container *new_container(struct shim *s, uint64_t token,
				       const struct ttrpc_request *q)
{
	struct container *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct container){ .shim = s, .token = token };
	oci_spec_init(&c->spec);
	proto_arena_init(&c->arena);
	c->request = task__create_request__unpack(&c->arena.allocator, q->len, q->payload);
	c->next = s->containers;
	s->containers = c;
	return c;
}

void shim_create(struct shim *s, uint64_t token, const struct ttrpc_request *q)
{
	struct container *c = new_container(s, token, q);
	if (!c) {
		ttrpc_server_refuse(s->server, token, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	if (!c->request)
		err_set(&c->failure, -EBADMSG, "the request is not understood");
	else if (shim_find(s, c->request->id) || c->next)
		err_set(&c->failure, -EEXIST, "the pod has a container already");
	else if (prepare_container(c, &c->failure) == 0) {
		begin_half(c, job_pod, on_pod);
		begin_half(c, job_pack, on_packed);
	}
	join_halves(c);
}

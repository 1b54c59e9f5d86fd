/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a container: its pod starts while its root directory becomes an image; then it is added to
 * the pod as an app, and what joins its streams is started, before anything runs: the app's output
 * waits for it with the agent. A sandbox is the first half alone, a container in one the second.
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

#define NAME_MAX_OF_TWO 48 /* bytes of the first part of a name of two */

/* What makes a text the name of an app. */
static void name_app(const char *text, char out[AGENT_NAME_MAX + 1])
{
	size_t n = 0;
	for (size_t i = 0; text[i] && n < AGENT_NAME_MAX; i++) {
		char c = text[i];
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

/*
 * After containerd's name, which is unique; in Kubernetes after the one that people know, which its
 * predecessors have, too, until they are deleted.
 */
static void name_container(struct container *c)
{
	char text[AGENT_NAME_MAX + 1];
	const char *name = c->spec.container_name;
	bool of_two = c->spec.sandbox_id && name && *name;
	if (of_two)
		snprintf(text, sizeof(text), "%.*s-%.12s", NAME_MAX_OF_TWO, name, c->id);
	if (!c->spec.is_sandbox)
		name_app(of_two ? text : c->id, c->app);
}

bool container_owns_pod(const struct container *c)
{
	return !c->spec.sandbox_id;
}

int container_need_app(const struct container *c, struct err *e)
{
	return c->spec.is_sandbox
		       ? err_set(e, -EOPNOTSUPP,
				 "nothing runs in the sandbox of a pod (ask one of its containers)")
		       : 0;
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

static int find_root(const struct container *c, char path[PATH_MAX], struct husk_root *ret,
		     struct err *e)
{
	int n = c->spec.root[0] == '/' ? snprintf(path, PATH_MAX, "%s", c->spec.root)
				       : snprintf(path, PATH_MAX, "%s/%s", c->bundle, c->spec.root);
	if (n < 0 || n >= PATH_MAX)
		return err_sys(e, -ENAMETOOLONG, "root directory");
	*ret = (struct husk_root){ path, c->mounts, c->n_mounts };
	return 0;
}

#define ROOT_IS_LIVE " live" /* behind the ID of the image */

static int job_pack(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	char path[PATH_MAX];
	struct husk_root root;
	struct husk_packed packed = { .is_live = false };
	int r = find_root(c, path, &root, e);
	if (r == 0)
		r = husk_pack_root(&c->shim->place, &c->spec, &root, &packed, e);
	if (r == 0)
		snprintf(text, JOB_TEXT_MAX + 1, "%s%s", packed.image_id,
			 packed.is_live ? ROOT_IS_LIVE : "");
	return r;
}

static int job_add(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	char path[PATH_MAX];
	struct husk_app a = { .name = c->app, .packed = &c->packed, .terminal = c->init.terminal };
	int r = find_root(c, path, &a.root, e);
	(void)text;
	for (int i = 0; i < STDIO_COUNT; i++)
		a.streams |= *c->init.paths[i] ? 1U << i : 0;
	return r == 0 ? husk_add_app(&c->shim->place, c->shim->uuid, &c->spec, &a, e) : r;
}

int container_remove(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct container *c = ctx;
	const struct husk_place *h = &c->shim->place;
	(void)text;
	return container_owns_pod(c) ? husk_end_pod(h, c->shim->uuid, e)
				     : husk_remove_app(h, c->shim->uuid, c->app, e);
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

void container_is_removed(const struct container *c)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/" BUNDLE_POD_FILE, c->bundle);
	if (n > 0 && (size_t)n < sizeof(path))
		unlink(path);
}

static void on_given_up(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	c->job = NULL;
	if (end->result == 0)
		container_is_removed(c);
	if (container_owns_pod(c))
		c->shim->uuid[0] = '\0';
	shim_refuse(c->shim, c->token, &c->failure);
	shim_forget(c);
}

static void give_up(struct container *c)
{
	struct shim *s = c->shim;
	bool has_made = c->was_tried && s->uuid[0]; /* a pod that is somebody else's goes on */
	if (!has_made || job_start(s->loop, container_remove, c, 0, on_given_up, c, &c->job) < 0) {
		shim_refuse(s, c->token, &c->failure);
		shim_forget(c);
	}
}

void container_give_up(struct container *c)
{
	if (c && c->request && c->failure.code == 0)
		err_set(&c->failure, -ECANCELED, "the container was deleted while it was made");
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

static void finish(struct container *c)
{
	Task__CreateResponse m;
	task__create_response__init(&m);
	c->init.pid = c->shim->pod_pid;
	publish_created(c);
	release_request(c);
	m.pid = (uint32_t)c->init.pid;
	answer_with(c->shim->server, c->token, &m.base);
}

static void on_added(void *ctx, const struct job_end *end)
{
	struct container *c = ctx;
	c->job = NULL;
	if (end->result == -EEXIST && !container_owns_pod(c))
		c->was_tried = false; /* the app of that name is somebody else's */
	if (end->result < 0 && c->failure.code == 0)
		c->failure = *end->e;
	else if (c->shim->pod_is_over && c->failure.code == 0)
		err_set(&c->failure, -ESRCH, "the pod has ended");
	c->was_added = c->failure.code == 0;
	if (c->was_added && container_attach(c, &c->failure) == 0)
		finish(c);
	else
		give_up(c);
}

/* Adds the app to the pod. 0, or -errno and the failure of @c. */
static int begin_adding(struct container *c)
{
	int r = job_start(c->shim->loop, job_add, c, JOB_BOUND, on_added, c, &c->job);
	c->was_tried = r == 0;
	return r < 0 ? err_sys(&c->failure, r, "cannot create a process") : 0;
}

/* Both halves are there, or one of them has failed. */
static void join_halves(struct container *c)
{
	if (c->n_pending > 0)
		return;
	if (c->failure.code == 0 && container_owns_pod(c))
		shim_watch(c->shim, &c->failure);
	c->was_added = c->failure.code == 0 && c->spec.is_sandbox;
	if (c->was_added)
		finish(c);
	else if (c->failure.code < 0 || begin_adding(c) < 0)
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
	if (end->result == 0) {
		c->packed.is_live = str_ends(end->text, ROOT_IS_LIVE);
		snprintf(c->packed.image_id, sizeof(c->packed.image_id), "%.*s", (int)IMAGE_ID_LEN,
			 end->text);
	}
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

/* ---- where it belongs ---- */

static int save_in_bundle(const struct container *c, const char *name, const char *text,
			  struct err *e)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", c->bundle, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "bundle");
	int r = file_save_path(path, text, strlen(text), 0600);
	return r < 0 ? err_sys(e, r, "\"%.255s\"", path) : 0;
}

/* Where husk is configured, if containerd's configuration says so. */
static int take_options(struct container *c, struct err *e)
{
	static const char type[] = "runtimeoptions.v1.Options";
	const Task__Any *any = c->request->options;
	struct shim *s = c->shim;
	if (!any || !str_ends(any->type_url, type))
		return 0;
	Task__Options *o =
		task__options__unpack(&c->arena.allocator, any->value.len, any->value.data);
	int r = o ? str_copy(s->config, sizeof(s->config), o->config_path) : -EBADMSG;
	task__options__free_unpacked(o, &c->arena.allocator);
	if (r < 0)
		return err_sys(e, r, "options of the runtime");
	if (*s->config && s->config[0] != '/')
		return err_set(e, -EINVAL, "options of the runtime: \"%.255s\" is not absolute",
			       s->config);
	s->place.config = *s->config ? s->config : NULL;
	return 0;
}

/* What all containers of a sandbox have alike, it has set up. */
static int check_shared(const struct oci_spec *s, const struct oci_spec *sandbox, struct err *e)
{
	const char *other = NULL;
	bool names_host = s->hostname && *s->hostname;
	if (!s->netns)
		other = "network namespace";
	else if (s->sysctls.n > 0)
		other = "\"linux.sysctl\"";
	else if (names_host && (!sandbox->hostname || strcmp(s->hostname, sandbox->hostname) != 0))
		other = "\"hostname\"";
	return other ? err_set(e, -EOPNOTSUPP,
			       "a %s of its own, beside its sandbox's, is not supported", other)
		     : 0;
}

/* Who is killed, and what an event is about, is said by the name of an app. */
static int check_name(const struct container *c, struct err *e)
{
	for (const struct container *o = c->shim->containers; o; o = o->next)
		if (o != c && strcmp(o->app, c->app) == 0)
			return err_set(e, -EEXIST,
				       "another container is the app \"%s\", as this would be",
				       c->app);
	return 0;
}

/* Into the sandbox that it names, which is configured already. */
static int enter_sandbox(struct container *c, struct err *e)
{
	const struct shim *s = c->shim;
	const struct container *sandbox = shim_find_made(c->shim, c->spec.sandbox_id);
	if (!sandbox || !sandbox->spec.is_sandbox)
		return err_set(e, -ENOENT, "there is no sandbox \"%.255s\"", c->spec.sandbox_id);
	if (s->pod_is_over)
		return err_set(e, -ESRCH, "the pod has ended");
	if (sandbox->init.status != PROCESS_RUNNING)
		return err_set(e, -EBUSY, "the sandbox was not started, or has ended");
	if (check_shared(&c->spec, &sandbox->spec, e) < 0 || check_name(c, e) < 0)
		return e->code;
	int r = save_in_bundle(c, BUNDLE_APP_FILE, c->app, e);
	return r == 0 ? save_in_bundle(c, BUNDLE_POD_FILE, s->uuid, e) : r;
}

/* For a pod of its own. */
static int found_pod(struct container *c, struct err *e)
{
	struct shim *s = c->shim;
	if (c->next)
		return err_set(e, -EEXIST, "the pod has a container already");
	s->place.data = NULL;
	int r = take_options(c, e);
	if (r == 0)
		r = husk_find_data(&s->place, s->data, e);
	if (r == 0)
		s->place.data = s->data;
	return r;
}

/* Who clears up is told by files, of which that which says that there is something comes last. */
static int find_place(struct container *c, struct err *e)
{
	const struct husk_place *h = &c->shim->place;
	int r = container_owns_pod(c) ? found_pod(c, e) : 0;
	if (r == 0 && h->config)
		r = save_in_bundle(c, BUNDLE_CONFIG_FILE, h->config, e);
	if (r == 0 && h->data)
		r = save_in_bundle(c, BUNDLE_DATA_FILE, h->data, e);
	return r == 0 && !container_owns_pod(c) ? enter_sandbox(c, e) : r;
}

/* ---- the request ---- */

static size_t count_containers(const struct shim *s)
{
	size_t n = 0;
	for (const struct container *c = s->containers; c; c = c->next)
		n++;
	return n;
}

/* What of a request can be looked at before anything is made. */
static int prepare_container(struct container *c, struct err *e)
{
	const Task__CreateRequest *q = c->request;
	if (*q->checkpoint)
		return err_set(e, -EOPNOTSUPP, "checkpoints are not supported");
	if (count_containers(c->shim) > CONTAINERS_MAX)
		return err_set(e, -EBUSY,
			       "a pod has at most %d containers (delete those that have "
			       "ended)",
			       AGENT_APPS_MAX);
	if (shim_find(c->shim, q->id))
		return err_set(e, -EEXIST, "there is such a container already");
	c->id = strdup(q->id);
	c->bundle = strdup(q->bundle);
	int r = c->id && c->bundle
			? process_init(&c->init, q->stdin, q->stdout, q->stderr, q->terminal)
			: -ENOMEM;
	if (r < 0)
		return err_set(e, r, "out of memory");
	c->init.container = c;
	r = read_spec(c, e);
	name_container(c);
	if (r == 0)
		r = find_place(c, e);
	if (r == 0 && !c->spec.is_sandbox)
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
	if (!c->request) {
		err_set(&c->failure, -EBADMSG, "the request is not understood");
	} else if (prepare_container(c, &c->failure) == 0) {
		c->was_tried = container_owns_pod(c);
		if (c->was_tried)
			begin_half(c, job_pod, on_pod);
		if (!c->spec.is_sandbox)
			begin_half(c, job_pack, on_packed);
	}
	join_halves(c);
}

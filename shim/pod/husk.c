/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/pod/husk.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "host/cli/collect.h"
#include "host/cli/data_dir.h"
#include "host/cli/images.h"
#include "host/cli/network_settings.h"
#include "host/cli/pods.h"
#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "host/cli/stage1_options.h"
#include "host/config/config.h"
#include "host/launch/abi.h"
#include "host/pod/app.h"
#include "host/pod/run.h"
#include "host/pod/running.h"
#include "host/pod/wait.h"
#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/sysctls.h"
#include "shim/pod/layers.h"

#define COUNTS_MAX ((size_t)64 * 1024) /* the document of stage1: 2 KiB for one app */

/* What the functions of the command line want to know of it. */
struct context {
	struct cli cli;
	struct config config;
	struct progress progress;
};

static void context_init(struct context *x, const struct husk_place *h)
{
	static const struct command command = { .name = "containerd-shim-husk-v2" };
	*x = (struct context){
		.cli = { .start_ns = clock_monotonic_ns(),
			 .cmd = &command,
			 .stage1_lock = -EBADF,
			 .local_config = h->config,
			 .dir = h->data,
			 .config = &x->config },
	};
	config_init(&x->config);
}

static void context_deinit(struct context *x)
{
	fd_close(x->cli.stage1_lock);
	config_deinit(&x->config);
}

#define cleanup_context CLEANUP(context_deinit)

/* ---- the pod ---- */

/* The network of a pod: the namespace that containerd has set up, or none. */
static int set_network(const struct context *x, const struct oci_spec *s, struct run_request *q,
		       struct err *e)
{
	int r = s->netns ? network_set_netns(&q->network, s->netns, e)
			 : network_add_nets(&q->network, "none", e);
	return r == 0 ? cli_network_settings(&x->cli, &q->network, e) : r;
}

static int fill_request(struct context *x, const struct oci_spec *s, const char *uuid_file,
			struct run_request *q, struct err *e)
{
	q->is_mutable = true;
	q->detach = true;
	q->uuid_file = uuid_file;
	q->hostname = s->hostname && *s->hostname ? s->hostname : NULL;
	q->start_ns = x->cli.start_ns;
	q->fetch = cli_fetch_options(&x->cli, &x->progress, CLI_NOBODY);
	int r = cli_image_settings(&x->cli, &q->images, e);
	return r == 0 ? set_network(x, s, q, e) : r;
}

/*
 * In a namespace that CNI has set up for the pod its root may have any port, as elsewhere, also
 * where it is not root of the users that the namespace belongs to. The last of a name counts.
 */
static int add_sysctls(const struct oci_spec *s, struct strv *sysctls, struct err *e)
{
	int r = s->netns && s->sysctls.n < SYSCTLS_MAX
			? strv_add(sysctls, "net.ipv4.ip_unprivileged_port_start=0")
			: 0;
	if (r == 0)
		r = strv_extend(sysctls, &s->sysctls);
	return r < 0 ? err_sys(e, r, "sysctls") : 0;
}

/* Whether @s knows the option @name, and nobody has configured it. */
static bool is_open(const struct stage1 *s, const struct strv *options, const char *name)
{
	size_t i = 0, len = strlen(name);
	while (i < options->n &&
	       !(str_starts(options->v[i] + 2, name) && options->v[i][2 + len] == '='))
		i++;
	return i == options->n && stage1_find_option(s, name, len);
}

/*
 * What the containers are to have by their limits, those that have some. A container by itself is
 * all there is of its pod.
 */
static int add_sizes(const struct oci_spec *s, const struct stage1 *stage1, struct strv *options)
{
	static const char memory[] = "apps-memory", cpu[] = "apps-cpu";
	const struct isolators *i = &s->app.isolators;
	int64_t bytes = s->is_sandbox ? s->pod_memory : i->memory;
	int64_t millis = s->is_sandbox ? s->pod_cpu_millis : i->cpu_millis;
	int r = 0;
	if (bytes > 0 && stage1_find_option(stage1, memory, strlen(memory)))
		r = strv_addf(options, "--%s=%" PRId64, memory, bytes);
	if (r == 0 && millis > 0 && stage1_find_option(stage1, cpu, strlen(cpu)))
		r = strv_addf(options, "--%s=%" PRId64 "m", cpu, millis);
	return r;
}

/* The option that @wish is for, which the administrator has to allow. */
static int check_wish(const char *wish, const struct strv *allowed, const struct stage1 *stage1,
		      struct err *e)
{
	char name[CONFIG_SETTING_MAX + 1];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(wish, "="), wish);
	if (!strv_has(allowed, name))
		return err_set(
			e, -EPERM,
			"annotation \"husk/%s\": not allowed on this node (its administrator "
			"can, with \"annotations\": [\"%s\"] in a file of stage1.d)",
			name, name);
	return stage1_find_option(stage1, name, strlen(name))
		       ? 0
		       : err_set(e, -EOPNOTSUPP,
				 "annotation \"husk/%s\": pods of this node's stage1 have no \"%s\"",
				 name, name);
}

/* What the annotations of the pod ask for: of an option the last one counts. */
static int add_wishes(const struct context *x, const struct oci_spec *s,
		      const struct stage1 *stage1, struct strv *options, struct err *e)
{
	const struct config *config = NULL;
	int r = cli_config(&x->cli, CONFIG_STAGE1, &config, e);
	for (size_t i = 0; r == 0 && i < s->wishes.n; i++) {
		r = check_wish(s->wishes.v[i], &config->stage1_annotations, stage1, e);
		if (r == 0 && (r = strv_addf(options, "--%s", s->wishes.v[i])) < 0)
			err_sys(e, r, "options of the stage1");
	}
	return r;
}

/* Whether the root directory of @s, if it has one, is to be that of the host: see is_live(). */
static int wants_live_root(const struct context *x, const struct oci_spec *s, bool *ret,
			   struct err *e)
{
	const struct config *config = NULL;
	int r = cli_config(&x->cli, CONFIG_STAGE1, &config, e);
	*ret = r == 0 && !s->app.read_only_root && config->stage1_roots &&
	       strcmp(config->stage1_roots, CONFIG_ROOTS_LIVE) == 0;
	return r;
}

/*
 * Options of the stage1 as they are configured, and what containers need: those that come with
 * directories of the host, which all of Kubernetes do, and those without a profile of system calls,
 * which can have no filter only where the machine's vsock leads to nobody.
 */
static int set_options(const struct context *x, const struct oci_spec *s,
		       const struct stage1 *stage1, struct strv *options, struct err *e)
{
	bool has_volumes = s->is_sandbox || volumes_have(&s->app.volumes, VOLUME_HOST);
	bool live;
	int r = wants_live_root(x, s, &live, e);
	if (r == 0)
		r = stage1_options_add_configured(&x->cli, stage1, options, e);
	if (r == 0)
		r = add_wishes(x, s, stage1, options, e);
	if (r < 0)
		return r;
	if ((has_volumes || live) && is_open(stage1, options, "hot-volumes"))
		r = strv_add(options, "--hot-volumes=always");
	if (r == 0 && is_open(stage1, options, "vsock"))
		r = strv_add(options, "--vsock=user");
	if (r == 0 && *s->cgroup && is_open(stage1, options, "cgroup-parent"))
		r = strv_addf(options, "--cgroup-parent=%s", s->cgroup);
	if (r == 0)
		r = add_sizes(s, stage1, options);
	return r < 0 ? err_sys(e, r, "options of the stage1") : 0;
}

/* The data directory, its path in @path. The descriptor, or -errno and @e. */
static int open_data(const struct context *x, char path[PATH_MAX], struct err *e)
{
	int r = cli_data_dir(&x->cli, path, e);
	return r < 0 ? r : cli_open_data_dir(&x->cli, true, e);
}

int husk_find_data(const struct husk_place *h, char ret[PATH_MAX], struct err *e)
{
	cleanup_context struct context x;
	context_init(&x, h);
	return cli_data_dir(&x.cli, ret, e);
}

int husk_start_pod(const struct husk_place *h, const struct oci_spec *s, const char *uuid_file,
		   struct uuid *ret, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(run_request_deinit) struct run_request q;
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	char path[PATH_MAX];
	context_init(&x, h);
	run_request_init(&q);
	int r = stage1 ? stage1_choose(&x.cli, NULL, PULL_NEW, stage1, e)
		       : err_sys(e, -ENOMEM, "stage1");
	if (r == 0)
		r = fill_request(&x, s, uuid_file, &q, e);
	if (r == 0)
		r = add_sysctls(s, &q.sysctls, e);
	if (r == 0)
		r = set_options(&x, s, stage1, &q.stage1_options, e);
	if (r < 0)
		return r;
	cleanup_fd int data_fd = open_data(&x, path, e);
	if (data_fd < 0)
		return data_fd;
	r = pod_run(&q, data_fd, path, stage1, ret, e);
	return r == RUN_DETACHED ? 0 : r;
}

int husk_open_pods(const struct husk_place *h, struct pods **ret, struct err *e)
{
	cleanup_context struct context x;
	context_init(&x, h);
	return cli_open_pods(&x.cli, true, ret, e);
}

/* A pod, opened, with its stage1. */
struct opened {
	struct pods *pods;
	struct pod pod;
	struct stage1 *stage1;
};

static void opened_deinit(struct opened *o)
{
	pods_free(o->pods);
	pod_deinit(&o->pod);
	free(o->stage1);
}

static int open_pod(struct context *x, const char *uuid, struct opened *ret, struct err *e)
{
	int r = cli_open_pod(&x->cli, false, uuid, &ret->pods, &ret->pod, e);
	return r == 0 ? cli_pod_stage1(&x->cli, &ret->pod, &ret->stage1, e) : r;
}

static struct app_target target_of(const struct opened *o)
{
	return (struct app_target){ o->pods, &o->pod, o->stage1 };
}

static int remove_pod(struct context *x, const char *uuid, struct err *e)
{
	struct collect collect;
	struct gc gc;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	collect_init(&collect, &x->cli, &gc);
	collect.quiet = true;
	int r = cli_open_pod(&x->cli, true, uuid, &ps, &p, e);
	gc.ps = ps;
	return r == 0 ? pod_remove(&gc, &p, e) : r;
}

/* The pod, at once. 0, or POD_STOPPED, or -errno and @e. */
static int stop_opened(const struct opened *o, struct err *e)
{
	struct err ignored = ERR_INIT;
	return pod_may_stop(&o->pod, &ignored) == 0 ? pod_stop(&o->pod, o->stage1, true, false, e)
						    : 0;
}

int husk_stop_pod(const struct husk_place *h, const char *uuid, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	context_init(&x, h);
	int r = open_pod(&x, uuid, &o, e);
	if (r == 0)
		r = stop_opened(&o, e);
	return MIN(r, 0);
}

int husk_end_pod(const struct husk_place *h, const char *uuid, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	context_init(&x, h);
	int r = open_pod(&x, uuid, &o, e);
	if (r == -ENOENT && !o.pods) /* not the stage1 */
		return 0;
	if (r == 0)
		r = stop_opened(&o, e);
	return r < 0 ? r : remove_pod(&x, uuid, e);
}

/* ---- the image ---- */

static int mount_one(const char *root, const struct husk_mount *m, struct err *e)
{
	char path[PATH_MAX];
	struct mount_words words;
	int n = snprintf(path, sizeof(path), "%s%s%s", root, *m->target ? "/" : "", m->target);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "root directory");
	int r = mount_words_parse(m->options, m->n_options, &words, e);
	if (r == 0 && words.dir[0] && chdir(words.dir) < 0)
		r = err_sys(e, -errno, "\"%.255s\"", words.dir);
	if (r == 0 && mount(m->source, path, m->type, words.flags & ~(unsigned long)MS_RDONLY,
			    words.data) < 0)
		r = err_sys(e, -errno, "cannot mount \"%.255s\" (%.80s)", m->source, m->type);
	return r;
}

static int mount_root(const struct husk_root *root, struct err *e)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(e, -errno, "cannot make a mount namespace");
	int r = 0;
	for (size_t i = 0; r == 0 && i < root->n; i++)
		r = mount_one(root->path, &root->mounts[i], e);
	return r;
}

/* What is to be packed, unless it has been. */
struct packing {
	const struct husk_root *root;
	bool is_told, is_packed;
};

static bool identify_root(void *ctx, char *ret)
{
	struct packing *p = ctx;
	return p->is_told = layers_identify(p->root->mounts, p->root->n, ret);
}

static void on_packing(void *ctx, const struct fetch_progress *progress)
{
	struct packing *p = ctx;
	p->is_packed |= progress->ended && !progress->failed;
}

/* The first use of an image costs what this says; the same layers are not read again. */
static void tell_cost(const struct packing *p, const struct image *i, int64_t begin_ns)
{
	if (!p->is_packed)
		return;
	fprintf(stderr,
		"husk: \"%s\": packed in %" PRId64 " ms, an image of %" PRIu64 " KiB for %s\n",
		p->root->path, (clock_monotonic_ns() - begin_ns) / NS_PER_MS, i->size >> 10,
		p->is_told ? "all containers of these layers" : "this container alone");
}

/* Whether nothing can be written to what is mounted there. */
static bool is_read_only(const struct husk_mount *m)
{
	bool has_upper = strcmp(m->type, "overlay") != 0;
	for (size_t i = 0; i < m->n_options; i++) {
		if (strcmp(m->options[i], "ro") == 0)
			return true;
		has_upper |= str_starts(m->options[i], "upperdir=");
	}
	return !has_upper;
}

/*
 * Whether the root directory is used as it is, and what the container writes is there for the host
 * to see. Of one that it only reads there is nothing to see.
 */
static int is_live(const struct context *x, const struct oci_spec *s, const struct husk_root *root,
		   bool *ret, struct err *e)
{
	int r = wants_live_root(x, s, ret, e);
	for (size_t i = 0; i < root->n; i++)
		*ret &= !is_read_only(&root->mounts[i]);
	return r;
}

/* Nothing, always the same. */
static int mount_nothing(const char *path, struct err *e)
{
	static const struct husk_mount nothing = { "tmpfs", "tmpfs", "", NULL, 0 };
	static const struct timespec never[2];
	int r = mount_root(&(struct husk_root){ path, &nothing, 1 }, e);
	return r == 0 && utimensat(AT_FDCWD, path, never, 0) < 0
		       ? err_sys(e, -errno, "root directory")
		       : r;
}

int husk_pack_root(const struct husk_place *h, const struct oci_spec *s,
		   const struct husk_root *root, struct husk_packed *ret, struct err *e)
{
	cleanup_context struct context x;
	cleanup_store struct store *store = NULL;
	cleanup_image struct image *image = NULL;
	context_init(&x, h);
	char reference[PATH_MAX + sizeof("rootfs:")];
	struct packing packing = { .root = root };
	int64_t begin_ns = clock_monotonic_ns();
	snprintf(reference, sizeof(reference), "rootfs:%s", root->path);
	int r = is_live(&x, s, root, &ret->is_live, e);
	if (r == 0)
		r = ret->is_live ? mount_nothing(root->path, e) : mount_root(root, e);
	if (r == 0)
		r = cli_open_store(&x.cli, &store, e);
	if (r < 0)
		return r;
	struct fetch_request q = {
		.reference = reference,
		.policy = PULL_NEW,
		.identify = ret->is_live ? NULL : identify_root,
		.identity_ctx = &packing,
		.options = cli_fetch_options(&x.cli, &x.progress, CLI_NOBODY),
	};
	q.options.insecure_image = true; /* containerd has looked at it */
	q.options.progress = ret->is_live ? NULL : on_packing;
	q.options.ctx = &packing;
	r = fetch_image(store, &q, &image, e);
	if (r < 0)
		return r;
	tell_cost(&packing, image, begin_ns);
	return str_copy(ret->image_id, sizeof(ret->image_id), image->id);
}

/* ---- apps ---- */

/* The volumes of an app whose root directory is one of them. */
static int add_live_root(const struct husk_root *root, struct app_options *app, struct err *e)
{
	CLEANUP(volume_deinit) struct volume v;
	volume_init(&v);
	v.kind = VOLUME_HOST;
	int r = str_copy(v.name, sizeof(v.name), "root");
	if (r == 0)
		r = volume_set_source(&v, root->path);
	if (r == 0)
		r = volumes_add(&app->volumes, &v);
	if (r == 0)
		r = volume_mounts_add(&app->mounts, v.name, "/", false);
	if (r == -E2BIG)
		return err_set(e, r,
			       "at most %zu mounts of the host and tmpfs are possible beside a "
			       "root directory that is live",
			       VOLUMES_MAX - 1);
	return r < 0 ? err_sys(e, r, "root directory") : mount_root(root, e);
}

/* Copies the volumes of @s, which are those of @app otherwise, and adds the root directory. */
static int take_live_root(const struct oci_spec *s, const struct husk_root *root,
			  struct app_options *app, struct err *e)
{
	app->volumes = (struct volumes){ 0 };
	app->mounts = (struct volume_mounts){ 0 };
	int r = volumes_copy(&app->volumes, &s->app.volumes);
	if (r == 0)
		r = volume_mounts_copy(&app->mounts, &s->app.mounts);
	return r < 0 ? err_sys(e, r, "volumes") : add_live_root(root, app, e);
}

static int add_app(struct context *x, const char *uuid, const struct oci_spec *s,
		   struct app_options *app, struct err *e)
{
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	struct run_request q;
	char path[PATH_MAX];
	run_request_init(&q);
	q.apps = app;
	q.n_apps = 1;
	q.pull_policy = PULL_NEVER;
	int r = open_pod(x, uuid, &o, e);
	if (r == 0)
		r = fill_request(x, s, NULL, &q, e);
	cleanup_fd int data_fd = r < 0 ? r : open_data(x, path, e);
	const struct app_target t = target_of(&o);
	r = data_fd < 0 ? data_fd : pod_app_add(&t, &q, data_fd, path, e);
	q.apps = NULL;
	q.n_apps = 0;
	run_request_deinit(&q);
	return r;
}

/* Who reads what nobody writes, or writes what nobody reads, is not to wait for ever. */
static enum stream_mode mode_of(const struct husk_app *a, int fd)
{
	if (a->terminal)
		return STREAM_MODE_TTY;
	return a->streams & 1U << fd ? STREAM_MODE_STREAM : STREAM_MODE_NULL;
}

int husk_add_app(const struct husk_place *h, const char *uuid, const struct oci_spec *s,
		 const struct husk_app *a, struct err *e)
{
	cleanup_context struct context x;
	struct app_options app = s->app; /* which @s owns */
	context_init(&x, h);
	app.image = a->packed->image_id;
	app.name = a->name;
	app.streams = (struct stream_modes){ mode_of(a, STDIN_FILENO), mode_of(a, STDOUT_FILENO),
					     mode_of(a, STDERR_FILENO) };
	int r = a->packed->is_live ? take_live_root(s, &a->root, &app, e) : 0;
	if (r == 0)
		r = add_app(&x, uuid, s, &app, e);
	if (a->packed->is_live) {
		volumes_deinit(&app.volumes);
		volume_mounts_deinit(&app.mounts);
	}
	return r;
}

/* Whether it is gone, or on its way: an app goes with its pod. */
static bool has_ended(const struct context *x, const char *uuid)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	struct err ignored = ERR_INIT;
	int r = cli_open_pod(&x->cli, false, uuid, &ps, &p, &ignored);
	return r == -ENOENT || (r == 0 && pod_need_running(&p, &ignored) < 0);
}

int husk_remove_app(const struct husk_place *h, const char *uuid, const char *name, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	context_init(&x, h);
	int r = open_pod(&x, uuid, &o, e);
	const struct app_target t = target_of(&o);
	if (r == 0 && (r = pod_app_remove(&t, name, 0, e)) == -ENOENT)
		return 0;
	return r < 0 && has_ended(&x, uuid) ? 0 : r;
}

int husk_start_app(const struct husk_place *h, const char *uuid, const char *name, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	context_init(&x, h);
	int r = open_pod(&x, uuid, &o, e);
	const struct app_target t = target_of(&o);
	return r == 0 ? pod_app_start(&t, name, e) : r;
}

/* A pod that runs, to be asked about its app. */
static int open_running(struct context *x, const struct husk_place *h, const char *uuid,
			struct opened *o, struct err *e)
{
	context_init(x, h);
	int r = open_pod(x, uuid, o, e);
	return r == 0 && pod_need_running(&o->pod, e) < 0 ? err_set(e, -ESRCH, "the pod has ended")
							  : r;
}

int husk_signal_app(const struct husk_place *h, const char *uuid, const char *name, int number,
		    bool all, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	int r = open_running(&x, h, uuid, &o, e);
	const struct app_target t = target_of(&o);
	return r == 0 ? pod_app_signal(&t, name, number, all, e) : r;
}

int husk_pause_app(const struct husk_place *h, const char *uuid, const char *name, bool pause,
		   struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	int r = open_running(&x, h, uuid, &o, e);
	const struct app_target t = target_of(&o);
	return r == 0 ? pod_app_pause(&t, name, pause, e) : r;
}

int husk_update_app(const struct husk_place *h, const char *uuid, const char *name,
		    const struct limits_change *l, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	int r = open_running(&x, h, uuid, &o, e);
	const struct app_target t = target_of(&o);
	return r == 0 ? pod_app_update(&t, name, l, e) : r;
}

/* What the document of stage1 says of its only app. */
static int find_counts(const struct buf *document, char *text, size_t size, struct err *e)
{
	cleanup_json struct json_object *doc = NULL;
	const char *why = NULL;
	int r = json_parse(buf_data(document), buf_len(document), &doc);
	struct json_object *apps = json_member(doc, "apps"), *app = NULL;
	if (r == 0 && json_object_is_type(apps, json_type_array))
		app = json_object_array_get_idx(apps, 0);
	if (!app)
		return err_set(e, -EBADMSG, "what stage1 says of the app is not understood");
	if (json_get_str(app, "error", ERR_TEXT_MAX, &why) == 0)
		return err_set(e, -EIO, "%s", why);
	r = str_copy(text, size, json_object_to_json_string_ext(app, JSON_C_TO_STRING_PLAIN));
	return r < 0 ? err_sys(e, r, "what stage1 says of the app") : 0;
}

int husk_count_app(const struct husk_place *h, const char *uuid, const char *name, char *text,
		   size_t size, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	cleanup_buf struct buf out;
	buf_init(&out, COUNTS_MAX);
	int r = open_running(&x, h, uuid, &o, e);
	if (r == 0)
		r = pod_stats(&o.pod, o.stage1, (struct abi_stats){ .app = name }, &out, e);
	if (r < 0)
		return *e->text ? r : err_set(e, r, "stage1 cannot say what the app uses");
	return find_counts(&out, text, size, e);
}

int husk_attach_app(const struct husk_place *h, const char *uuid, const char *name,
		    unsigned int streams, int control_fd, struct err *e)
{
	static const enum abi_end plain[] = { ABI_END_STDIN, ABI_END_STDOUT, ABI_END_STDERR };
	static const enum abi_end of_terminal[] = { ABI_END_TTY_IN, ABI_END_TTY_OUT };
	const enum abi_end *ends = control_fd ? of_terminal : plain;
	const size_t n = control_fd ? ARRAY_SIZE(of_terminal) : ARRAY_SIZE(plain);
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	struct abi_attach q = { .app = name, .control_fd = control_fd };
	context_init(&x, h);
	for (size_t i = 0; i < n; i++)
		if (streams & 1U << i)
			q.ends |= 1U << ends[i];
	int r = open_pod(&x, uuid, &o, e);
	return r == 0 ? pod_attach(&o.pod, o.stage1, &q, e) : r;
}

/* Whom it runs as, all of it said: numbers, of which the image's files say nothing more. */
static int name_user(const struct oci_spec *s, char *out, size_t size, struct strv *groups)
{
	int n = snprintf(out, size, "%s:%s", s->app.user, s->app.group);
	int r = n < 0 || (size_t)n >= size ? -ENAMETOOLONG : strv_extend(groups, &s->app.groups);
	/* No group is what the app's ones would be taken for. */
	return r == 0 && groups->n == 0 ? strv_add(groups, s->app.group) : r;
}

int husk_exec(const struct husk_place *h, const char *uuid, const char *name,
	      const struct oci_spec *s, bool terminal, int control_fd, struct err *e)
{
	cleanup_context struct context x;
	CLEANUP(opened_deinit) struct opened o = { .pod = POD_INIT };
	cleanup_strv struct strv groups;
	char user[2 * AGENT_USER_MAX + 2];
	strv_init(&groups, AGENT_GROUPS_MAX);
	context_init(&x, h);
	int r = name_user(s, user, sizeof(user), &groups);
	if (r < 0)
		return err_sys(e, r, "user");
	r = open_pod(&x, uuid, &o, e);
	if (r == 0)
		r = pod_need_running(&o.pod, e);
	const struct abi_enter q = {
		.app = name,
		.user = user,
		.workdir = s->app.working_dir && *s->app.working_dir ? s->app.working_dir : "/",
		.env = &s->app.env,
		.clear_env = true,
		.tty = terminal ? "true" : "false",
		.groups = &groups,
		.control_fd = control_fd,
		.command = s->app.args.v,
	};
	return r == 0 ? pod_enter(&o.pod, o.stage1, &q, s->app.args.n, e) : r;
}

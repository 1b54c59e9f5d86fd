/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods of runtimes that are called as the command line of runc is: bare, with a configuration of
 * ours and without an engine above them.
 * The image's files lie below an overlay, as engines have it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/contender.h"
#include "bench/volume.h"
#include "lib/base/json.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"

#define CONFIG_MAX  ((size_t)16 << 10) /* bytes of a configuration, which has some 3 KiB */
#define OPTIONS_MAX 6    /* words before the command: the program, two options, --root, its value */
#define SLOT_OF_APP 1000 /* behind those of all pods */

/* Control groups of the host bear the names of containers, so they have this process in them. */
struct container {
	char id[64], bundle[SITE_PATH_MAX + 64];
};

static struct container container_of(const struct contender *c, unsigned slot)
{
	struct container box;
	snprintf(box.id, sizeof(box.id), "husk-bench-%s-%d-%u", c->column->name, (int)getpid(),
		 slot);
	snprintf(box.bundle, sizeof(box.bundle), "%s/%u", c->dir, slot);
	return box;
}

struct prefix {
	char state[SITE_PATH_MAX + 32];
	const char *words[OPTIONS_MAX];
};

static void make_prefix(const struct contender *c, struct prefix *p)
{
	size_t n = 0;
	snprintf(p->state, sizeof(p->state), "%s/state", c->dir);
	p->words[n++] = c->program;
	for (size_t i = 0; c->options[i]; i++)
		p->words[n++] = c->options[i];
	p->words[n++] = "--root";
	p->words[n++] = p->state;
	p->words[n] = NULL;
}

static int oci(struct contender *c, const char *const *words, char **ret_out, struct err *e)
{
	struct prefix p = { 0 };
	make_prefix(c, &p);
	return contender_run(c, p.words, words, ret_out, e);
}

static int mount_image(const struct contender *c)
{
	(void)contender_hide_unified(c);
	return contender_mount_overlay(c);
}

/*
 * A container as the runtime itself proposes it ("spec"), but without a terminal, and with a root
 * that can be written to.
 */
static int read_spec(struct contender *c, struct err *e)
{
	char name[PATH_MAX];
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = oci(c, WORDS("spec", "--bundle", c->dir), NULL, e);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%s/config.json", c->dir);
	r = file_read_at(AT_FDCWD, name, CONFIG_MAX, &text, &len);
	if (r == 0)
		r = json_parse(text, len, &c->spec);
	if (r == 0)
		r = json_put_bool(json_member(c->spec, "process"), "terminal", false);
	snprintf(name, sizeof(name), "%s/" CONTENDER_ROOT, c->dir);
	if (r == 0)
		r = json_put(c->spec, "root",
			     json_make("path", json_object_new_string(name), NULL));
	return r < 0 ? err_sys(e, r, "cannot use what \"spec\" writes") : 0;
}

static int prepare_oci(struct contender *c, struct err *e)
{
	int r = contender_make_dirs(c, e);
	if (r == 0)
		r = contender_unshare(c, mount_image, e);
	return r < 0 ? r : read_spec(c, e);
}

/*
 * A second container of a pod has the network, the names and the IPC of the first; one with a
 * network has the namespace @netns.
 */
static int share_namespaces(struct json_object *spec, pid_t join, const char *netns)
{
	static const char *const shared[][2] = {
		{ "network", "net" },
		{ "ipc", "ipc" },
		{ "uts", "uts" },
	};
	struct json_object *list = json_member(json_member(spec, "linux"), "namespaces");
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	int r = n > 0 ? 0 : -EBADMSG;
	for (size_t i = 0; r == 0 && i < n * ARRAY_SIZE(shared); i++) {
		struct json_object *ns = json_object_array_get_idx(list, i / ARRAY_SIZE(shared));
		const char *const *kind = shared[i % ARRAY_SIZE(shared)], *type;
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)join, kind[1]);
		r = json_get_str(ns, "type", sizeof(path), &type);
		if (r < 0 || strcmp(type, kind[0]) != 0)
			continue;
		json_object_object_del(ns, "path");
		if (join > 0)
			r = json_put_str(ns, "path", path);
		else if (netns && kind == shared[0])
			r = json_put_str(ns, "path", netns);
	}
	return r;
}

/* The same for gVisor, which goes by what containerd would say. */
static int share_sandbox(struct contender *c, pid_t join)
{
	if (join == 0) {
		json_object_object_del(c->spec, "annotations");
		return 0;
	}
	struct container first = container_of(c, 0);
	return json_put(
		c->spec, "annotations",
		json_make("io.kubernetes.cri.container-type", json_object_new_string("container"),
			  "io.kubernetes.cri.sandbox-id", json_object_new_string(first.id), NULL));
}

/* Beside what the runtime proposes; the one of the last bundle is gone. */
static int add_volume(struct contender *c)
{
	struct json_object *mounts = json_member(c->spec, "mounts");
	size_t n =
		json_object_is_type(mounts, json_type_array) ? json_object_array_length(mounts) : 0;
	const char *last = "";
	if (n > 0)
		json_get_str(json_object_array_get_idx(mounts, n - 1), "destination", PATH_MAX,
			     &last);
	if (strcmp(last, VOLUME_TARGET) == 0)
		json_object_array_del_idx(mounts, n - 1, 1);
	if (!c->volume)
		return 0;
	struct json_object *options = json_object_new_array();
	int r = options ? json_append(options, json_object_new_string("rbind")) : -ENOMEM;
	struct json_object *mount =
		json_make("destination", json_object_new_string(VOLUME_TARGET), "type",
			  json_object_new_string("bind"), "source",
			  json_object_new_string(c->source), "options", options, NULL);
	return r < 0 || !mount ? -ENOMEM : json_append(mounts, mount);
}

static int write_bundle(struct contender *c, const struct container *box, const char *const *words,
			pid_t join, const char *netns, struct err *e)
{
	struct json_object *args = json_object_new_array();
	cleanup_buf struct buf text;
	buf_init(&text, CONFIG_MAX);
	int r = args ? 0 : -ENOMEM;
	for (; r == 0 && *words; words++)
		r = json_append(args, json_object_new_string(*words));
	int x = json_put(json_member(c->spec, "process"), "args", args);
	if (r == 0 && x == 0)
		r = share_namespaces(c->spec, join, netns);
	if (r == 0)
		r = share_sandbox(c, join);
	if (r == 0)
		r = add_volume(c);
	if (r == 0)
		r = json_write(c->spec, false, &text);
	cleanup_fd int dir = r < 0 ? r : path_make_dirs(box->bundle, 0755);
	if (dir >= 0)
		r = file_replace_at(dir, "config.json", buf_data(&text), buf_len(&text), 0644);
	r = dir < 0 ? dir : r;
	return r < 0 ? err_sys(e, r, "cannot write a bundle at \"%s\"", box->bundle) : 0;
}

static int run_oci(struct contender *c, unsigned slot, const char *const *words,
		   struct command *command, struct err *e)
{
	struct container box = container_of(c, slot);
	struct prefix p = { 0 };
	make_prefix(c, &p);
	command->namespaces = contender_namespaces(c);
	int r = write_bundle(c, &box, words, 0, NULL, e);
	if (r == 0)
		r = command_words(command, p.words, e);
	return r < 0 ? r : command_words(command, WORDS("run", "--bundle", box.bundle, box.id), e);
}

static int start_in_background(struct contender *c, unsigned slot, const char *const *words,
			       pid_t join, const char *netns, struct err *e)
{
	struct container box = container_of(c, slot);
	int r = write_bundle(c, &box, words, join, netns, e);
	return r < 0 ? r
		     : oci(c, WORDS("run", "--detach", "--bundle", box.bundle, box.id), NULL, e);
}

static int start_oci(struct contender *c, unsigned slot, bool for_apps, struct err *e)
{
	(void)for_apps;
	return start_in_background(c, slot, WORDS(IDLE), 0, NULL, e);
}

#define NETNS  "/run/netns/husk-bench"
#define HOST   "192.0.2.1"
#define SERVER "192.0.2.2"

/* Nothing but a pair of interfaces; nobody outside this contender's namespaces sees it. */
static int serve_oci(struct contender *c, const char *script, char *ret_ip, struct err *e)
{
	static const char make_network[] =
		"[ ! -e " NETNS " ] || exit 0; mkdir -p /run/netns; mount -t tmpfs none /run/netns;"
		"ip netns add husk-bench;"
		"ip link add bench type veth peer name eth0 netns husk-bench;"
		"ip addr add " HOST "/24 dev bench; ip link set bench up;"
		"ip -n husk-bench addr add " SERVER
		"/24 dev eth0; ip -n husk-bench link set eth0 up;"
		"ip -n husk-bench link set lo up";
	snprintf(ret_ip, NETWORK_IP_SIZE, SERVER);
	if (c->options[0])
		return err_set(e, -ENOTSUP, "it is not given a network");
	int r = contender_run(c, WORDS("/bin/sh", "-ec", make_network), NULL, NULL, e);
	return r < 0 ? r : start_in_background(c, 0, WORDS("sh", "-c", script), 0, NETNS, e);
}

static int pid_of_oci(struct contender *c, unsigned slot, pid_t *ret, struct err *e)
{
	struct container box = container_of(c, slot);
	cleanup_free char *text = NULL;
	cleanup_json struct json_object *state = NULL;
	int64_t pid;
	int r = oci(c, WORDS("state", box.id), &text, e);
	if (r < 0)
		return r;
	if (json_parse(text, strlen(text), &state) < 0 ||
	    json_get_int(state, "pid", 1, INT32_MAX, &pid) < 0)
		return err_set(e, -EBADMSG, "it does not say which process the pod has");
	*ret = (pid_t)pid;
	return 0;
}

static int add_oci_app(struct contender *c, struct err *e)
{
	pid_t pid;
	int r = pid_of_oci(c, 0, &pid, e);
	return r < 0 ? r : start_in_background(c, SLOT_OF_APP, WORDS(IDLE), pid, NULL, e);
}

static int exec_oci_app(struct contender *c, struct err *e)
{
	struct container box = container_of(c, SLOT_OF_APP);
	return oci(c, WORDS("exec", box.id, "true"), NULL, e);
}

static int remove_oci_app(struct contender *c, struct err *e)
{
	struct container box = container_of(c, SLOT_OF_APP);
	return oci(c, WORDS("delete", "--force", box.id), NULL, e);
}

static int sweep_oci(struct contender *c, struct err *e)
{
	cleanup_free char *list = NULL;
	int r = oci(c, WORDS("list", "--quiet"), &list, e);
	char *rest = list;
	for (char *id; r == 0 && (id = strsep(&rest, "\n"));)
		if (id[0] != '\0')
			r = oci(c, WORDS("delete", "--force", id), NULL, e);
	return r;
}

static const char *const volumes[] = { "host", NULL };

const struct contender_ops contender_oci = {
	.volumes = volumes,
	.find = contender_find_peer,
	.prepare = prepare_oci,
	.run = run_oci,
	.start = start_oci,
	.app_add = add_oci_app,
	.app_exec = exec_oci_app,
	.app_remove = remove_oci_app,
	.serve = serve_oci,
	.pid = pid_of_oci,
	.sweep = sweep_oci,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of husk, by its command line alone. All stage1s share one data directory, and the image. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bench/contender.h"
#include "bench/volume.h"
#include "lib/base/json.h"
#include "lib/os/path.h"

/* As peers: what networks cost is measured by one suite. */
#define NO_NETWORK "--net=none"

/* The name of pod @slot, which does as well as its UUID. */
struct pod_name {
	char text[32];
};

static struct pod_name name_of(const struct contender *c, unsigned slot)
{
	struct pod_name name;
	snprintf(name.text, sizeof(name.text), "%s-%u", c->column->name, slot);
	return name;
}

/* Words in front of each command of husk. */
struct prefix {
	char dir[SITE_PATH_MAX + 32], stage1[PATH_MAX + 16];
	const char *words[5];
};

static void make_prefix(const struct contender *c, struct prefix *p)
{
	snprintf(p->dir, sizeof(p->dir), "--dir=%s", c->site->data);
	snprintf(p->stage1, sizeof(p->stage1), "--stage1=%s", c->stage1);
	p->words[0] = c->program;
	p->words[1] = p->dir;
	p->words[2] = p->stage1;
	p->words[3] = "--insecure-options=image";
	p->words[4] = NULL;
}

static int husk(struct contender *c, const char *const *words, char **ret_out, struct err *e)
{
	struct prefix p = { 0 };
	make_prefix(c, &p);
	return contender_run(c, p.words, words, ret_out, e);
}

/* The same, and its output as JSON. */
static int husk_json(struct contender *c, const char *const *words, struct json_object **ret,
		     struct err *e)
{
	cleanup_free char *text = NULL;
	int r = husk(c, words, &text, e);
	if (r == 0 && json_parse(text, strlen(text), ret) < 0)
		r = err_set(e, -EBADMSG, "what husk %s says is not JSON", words[0]);
	return r;
}

/* The member @key of the check @name of husk doctor, or "". */
static const char *check_member(struct json_object *doctor, const char *name, const char *key)
{
	struct json_object *checks = json_member(doctor, "checks");
	size_t n =
		json_object_is_type(checks, json_type_array) ? json_object_array_length(checks) : 0;
	for (size_t i = 0; i < n; i++) {
		struct json_object *check = json_object_array_get_idx(checks, i);
		const char *text;
		if (json_get_str(check, "name", RESULTS_TEXT_MAX, &text) == 0 &&
		    strcmp(text, name) == 0)
			return json_get_str(check, key, PATH_MAX, &text) == 0 ? text : "";
	}
	return "";
}

/* What the pods' processor is made of belongs into the title: without it the figures mislead. */
static void note_doctor(struct contender *c, struct json_object *doctor)
{
	struct column *column = c->column;
	const char *accel = check_member(doctor, "acceleration", "value");
	const char *qemu = check_member(doctor, "qemu", "detail");
	if (accel[0] != '\0')
		snprintf(column->title, sizeof(column->title), "%s (%s)", column->name,
			 strcasecmp(accel, "tcg") == 0 ? "TCG" : "KVM");
	column->emulated = strcasecmp(accel, "tcg") == 0;
	if (accel[0] == '\0' || qemu[0] == '\0')
		return;
	char text[2 * RESULTS_TEXT_MAX];
	snprintf(text, sizeof(text), "%s; %s", column->version, qemu);
	results_set_text(column->version, text);
}

/* The directory beside this program is what the name of a stage1 means. */
static int find_husk(struct contender *c, struct err *e)
{
	char suffix[64];
	cleanup_json struct json_object *doctor = NULL;
	memcpy(c->program, c->site->husk, sizeof(c->program));
	snprintf(suffix, sizeof(suffix), "../lib/husk/stage1-%s", c->column->name);
	if (path_from_self(suffix, c->stage1, sizeof(c->stage1)) < 0)
		return err_set(e, -ENOENT, "not installed");
	int r = contender_ask_version(c, e);
	if (r < 0)
		return r;
	/* Its status says whether a pod can run; the first pod will say why not. */
	struct err ignored;
	if (husk_json(c, WORDS("doctor", "--format=json"), &doctor, &ignored) == 0)
		note_doctor(c, doctor);
	return 0;
}

/* Of others than root, pods of this suite have no network. */
static int prepare_husk(struct contender *c, struct err *e)
{
	return geteuid() == 0 ? contender_unshare(c, NULL, e) : 0;
}

static int add_volume(const struct contender *c, struct command *command, struct err *e)
{
	char volume[SITE_PATH_MAX + 128];
	if (!c->volume)
		return 0;
	snprintf(volume, sizeof(volume), "--volume=v,kind=%s%s%s", c->volume,
		 c->source[0] ? ",source=" : "", c->source);
	return command_words(command, WORDS(volume, "--mount=volume=v,target=" VOLUME_TARGET), e);
}

/* --exec, so that an entrypoint of the image does not get the words as its arguments. */
static int run_husk(struct contender *c, unsigned slot, const char *const *words,
		    struct command *command, struct err *e)
{
	struct prefix p = { 0 };
	(void)slot;
	make_prefix(c, &p);
	command->namespaces = contender_namespaces(c);
	int r = command_words(command, p.words, e);
	if (r == 0)
		r = command_words(command, WORDS("run", NO_NETWORK), e);
	if (r == 0)
		r = add_volume(c, command, e);
	if (r == 0)
		r = command_words(command, WORDS(c->site->image, "--exec", words[0], "--"), e);
	return r < 0 ? r : command_words(command, words + 1, e);
}

static int start_husk(struct contender *c, unsigned slot, bool for_apps, struct err *e)
{
	struct pod_name pod = name_of(c, slot);
	if (for_apps)
		return husk(c, WORDS("app", "sandbox", "--detach", NO_NETWORK, "--name", pod.text),
			    NULL, e);
	return husk(c,
		    WORDS("run", "--detach", NO_NETWORK, "--name", pod.text, c->site->image,
			  "--exec", IDLE_PROGRAM, "--", IDLE_ARGUMENT),
		    NULL, e);
}

static int add_husk_app(struct contender *c, struct err *e)
{
	struct pod_name pod = name_of(c, 0);
	int r = husk(c,
		     WORDS("app", "add", pod.text, c->site->image, "--name=app", "--exec",
			   IDLE_PROGRAM, "--", IDLE_ARGUMENT),
		     NULL, e);
	return r < 0 ? r : husk(c, WORDS("app", "start", "--app=app", pod.text), NULL, e);
}

static int exec_husk_app(struct contender *c, struct err *e)
{
	struct pod_name pod = name_of(c, 0);
	return husk(c, WORDS("app", "exec", "--app=app", pod.text, "true"), NULL, e);
}

static int remove_husk_app(struct contender *c, struct err *e)
{
	struct pod_name pod = name_of(c, 0);
	return husk(c, WORDS("app", "rm", "--grace=0", "--app=app", pod.text), NULL, e);
}

/* The first address of its first network. */
static int ip_of(struct contender *c, const char *pod, char *ret_ip, struct err *e)
{
	cleanup_json struct json_object *status = NULL;
	const char *ip;
	int r = husk_json(c, WORDS("status", "--format=json", pod), &status, e);
	if (r < 0)
		return r;
	struct json_object *list = json_member(status, "networks");
	if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) == 0 ||
	    json_get_str(json_object_array_get_idx(list, 0), "ip", NETWORK_IP_SIZE - 1, &ip) < 0)
		return err_set(e, -ENETUNREACH, "the pod has no address");
	return str_copy(ret_ip, NETWORK_IP_SIZE, ip);
}

static int serve_husk(struct contender *c, const char *script, char *ret_ip, struct err *e)
{
	struct pod_name pod = name_of(c, 0);
	int r = husk(c,
		     WORDS("run", "--detach", "--net=default", "--name", pod.text, c->site->image,
			   "--exec", "sh", "--", "-c", script),
		     NULL, e);
	return r < 0 ? r : ip_of(c, pod.text, ret_ip, e);
}

static int pid_of_husk(struct contender *c, unsigned slot, pid_t *ret, struct err *e)
{
	struct pod_name pod = name_of(c, slot);
	cleanup_json struct json_object *status = NULL;
	int64_t pid;
	int r = husk_json(c, WORDS("status", "--format=json", pod.text), &status, e);
	if (r < 0)
		return r;
	if (json_get_int(status, "pid", 1, INT32_MAX, &pid) < 0)
		return err_set(e, -ESRCH, "the pod has ended");
	*ret = (pid_t)pid;
	return 0;
}

/*
 * "husk COMMAND UUID..." of all pods that "husk list --quiet OPTION" prints; the option may be
 * NULL.
 */
static int for_all(struct contender *c, const char *option, const char *const *words, struct err *e)
{
	cleanup_free char *list = NULL;
	cleanup_command struct command command;
	struct prefix p = { 0 };
	command_init(&command);
	command.namespaces = contender_namespaces(c);
	make_prefix(c, &p);
	int r = husk(c, WORDS("list", "--quiet", option), &list, e);
	if (r < 0 || list[0] == '\0')
		return r;
	r = command_words(&command, p.words, e);
	if (r == 0)
		r = command_words(&command, words, e);
	char *rest = list;
	for (char *uuid; r == 0 && (uuid = strsep(&rest, "\n"));)
		if (uuid[0] != '\0')
			r = command_words(&command, WORDS(uuid), e);
	return r < 0 ? r : command_run(c->site->runner, &command, e);
}

static int sweep_husk(struct contender *c, struct err *e)
{
	int r = for_all(c, "--running", WORDS("stop", "--force"), e);
	int x = for_all(c, NULL, WORDS("rm"), e);
	return r < 0 ? r : x;
}

static const char *const volumes[] = { "empty", "host", "block", NULL };

const struct contender_ops contender_husk = {
	.volumes = volumes,
	.find = find_husk,
	.prepare = prepare_husk,
	.run = run_husk,
	.start = start_husk,
	.app_add = add_husk_app,
	.app_exec = exec_husk_app,
	.app_remove = remove_husk_app,
	.serve = serve_husk,
	.pid = pid_of_husk,
	.sweep = sweep_husk,
};

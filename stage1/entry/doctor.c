/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/entry/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/base/uuid.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/entry/husk_net.h"
#include "stage1/pod/mkfs.h"
#include "stage1/pod/pod_cgroup.h"

/* Some 20 checks with every byte of their texts escaped. */
#define DOCUMENT_MAX ((size_t)256 * 1024)

#define EXIT_POD_CANNOT 1

void doctor_init(struct doctor *d)
{
	*d = (struct doctor){ .checks = json_object_new_array(), .can_run = true };
}

/* Adds @text, cut to its maximum; what is then no UTF-8 (a path may be anything) becomes '?'. */
static int put_text(struct json_object *obj, const char *key, const char *text)
{
	char copy[DOCTOR_TEXT_MAX + 1];
	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	if (!str_is_utf8(copy))
		for (char *p = copy; *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
	return json_put_str(obj, key, copy);
}

static int record(struct doctor *d, const struct doctor_check *c)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = put_text(obj, "name", c->name);
	if (r == 0)
		r = json_put_bool(obj, "ok", c->ok);
	if (r == 0)
		r = put_text(obj, "value", c->value);
	if (r == 0)
		r = put_text(obj, "detail", c->detail);
	if (r == 0)
		r = put_text(obj, "remedy", c->ok ? NULL : c->remedy);
	if (r == 0 && json_object_array_add(d->checks, obj) < 0)
		r = -ENOMEM;
	if (r == 0)
		(void)TAKE_PTR(obj);
	return r;
}

void doctor_add(struct doctor *d, const struct doctor_check *c)
{
	int r = d->checks ? record(d, c) : -ENOMEM;
	if (r < 0 && d->error == 0)
		d->error = r;
	if (c->needed && !c->ok)
		d->can_run = false;
}

void doctor_add_mkfs(struct doctor *d)
{
	bool ok = mkfs_is_there();
	doctor_add(d, &(struct doctor_check){ .name = "scratch",
					      .ok = ok,
					      .needed = true,
					      .value = ok ? "yes" : "no",
					      .detail = "mkfs.ext4, which makes scratch disks",
					      .remedy = "apt-get install e2fsprogs" });
}

void doctor_add_cgroups(struct doctor *d, const char *who)
{
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	static const char nobody[] = "00000000-0000-4000-8000-000000000000";
	struct err e = ERR_INIT, ignored = ERR_INIT;
	char detail[DOCTOR_TEXT_MAX + 1];
	bool made = pod_cgroup_make(nobody, "", &g, &e) == 0, ok = made && pod_cgroup_can_limit(&g);
	const char *value = !made ? "no" : pod_cgroup_is_v1(&g) ? "version 1" : "version 2";
	pod_cgroup_remove(nobody, "", &ignored);
	snprintf(detail, sizeof(detail), "%s can have %s", who, ok ? "limits" : "no limits");
	doctor_add(d, &(struct doctor_check){
			      .name = "control-groups",
			      .ok = ok,
			      .value = value,
			      .detail = made ? detail : e.text,
			      .remedy = "run husk as root, or give it a control group in which "
					"no other process is" });
}

void doctor_add_user(struct doctor *d, const char *if_root)
{
	char value[64];
	snprintf(value, sizeof(value), "uid %u, gid %u", (unsigned)geteuid(), (unsigned)getegid());
	doctor_add(d,
		   &(struct doctor_check){
			   .name = "user",
			   .ok = true,
			   .value = value,
			   .detail = geteuid() == 0 ? if_root
						    : "the processes of a pod run as this user" });
}

/* ---- of a pod ---- */

/* What husk-net says, without what stands in front of all that stage1 says. */
static int ask_husk_net(const char *uuid, char *said, size_t size)
{
	static const char prefix[] = "stage1: network: ";
	int pair[2], code = 0;
	snprintf(said, size, "husk-net cannot be asked (install husk again)");
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	cleanup_fd int from = pair[0], to = pair[1];
	int r = husk_net_call(uuid, "--check", to, &code);
	to = fd_close(to);
	ssize_t n = r == 0 ? read(from, said, size - 1) : 0;
	if (n > 0)
		said[n] = '\0';
	said[strcspn(said, "\n")] = '\0';
	if (str_starts(said, prefix))
		memmove(said, said + strlen(prefix), strlen(said) - strlen(prefix) + 1);
	return r < 0 ? r : code != 0 ? -EIO : 0;
}

/* Plugins ask the kernel whether their rules, addresses and routes are as they made them. */
static void add_network(struct doctor *d, const char *uuid)
{
	char said[DOCTOR_TEXT_MAX + 1];
	bool ok = ask_husk_net(uuid, said, sizeof(said)) == 0;
	doctor_add(d, &(struct doctor_check){ .name = "network",
					      .ok = ok,
					      .needed = true,
					      .value = ok ? said : "not as it was made",
					      .detail = ok ? "by the plugins that made them" : said,
					      .remedy = "stop the pod and run it again: only then "
							"are its networks made" });
}

bool doctor_asked_of_pod(int argc, char **argv, int *ret)
{
	struct doctor d;
	static const char option[] = "--uuid=";
	if (argc != 2 || !str_starts(argv[1], option) || !uuid_is_valid(argv[1] + strlen(option)))
		return false;
	doctor_init(&d);
	add_network(&d, argv[1] + strlen(option));
	*ret = doctor_finish(&d);
	return true;
}

/* ---- the document ---- */

static int print_document(struct doctor *d)
{
	cleanup_json struct json_object *doc = json_object_new_object();
	cleanup_buf struct buf text;
	buf_init(&text, DOCUMENT_MAX);
	int r = json_put(doc, "checks", TAKE_PTR(d->checks));
	if (r == 0)
		r = json_write(doc, true, &text);
	if (r == 0)
		r = buf_puts(&text, "\n");
	return r == 0 ? fd_write_all(STDOUT_FILENO, buf_data(&text), buf_len(&text)) : r;
}

int doctor_finish(struct doctor *d)
{
	int r = d->error;
	if (r == 0)
		r = print_document(d);
	json_object_put(d->checks);
	d->checks = NULL;
	if (r < 0) {
		fprintf(stderr, "stage1: doctor: %s\n", strerror(-r));
		return EXIT_HUSK_FAILURE;
	}
	return d->can_run ? EXIT_SUCCESS : EXIT_POD_CANNOT;
}
